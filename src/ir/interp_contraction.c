// Products and convolution: both become [rows, k] x [k, columns] products in the order of contract_order.h.
#include <stdlib.h>
#include <string.h>

#include "ir/contract_order.h"
#include "ir/interp_internal.h"

enum { COLUMNS = 256 };  // of a tile

// Bytes of one lane of this kind, packed.
static size_t lane_size(tn_elem_kind_t lanes) {
  return lanes == TN_ELEM_F32 ? 4 : lanes == TN_ELEM_C128 ? 16 : 8;
}

// Widens |count| elements from |data| into packed lanes.
static void widen(tn_dtype_t dtype, const void* data, int64_t count, uint8_t* out) {
  const size_t size = lane_size(tn_elem_kind(dtype));
  for (int64_t start = 0; start < count; start += TN_CHUNK) {
    const int64_t n = count - start < TN_CHUNK ? count - start : TN_CHUNK;
    tn_elems_t lanes;
    tn_elems_load(dtype, data, start, n, &lanes);
    memcpy(out + (size_t)start * size, &lanes, (size_t)n * size);
  }
}

// acc[j] = fma(x, y[j], acc[j]). The fused instructions round as libm's fma does; they are only faster.
#define ROW_STEPS(suffix, attributes)                                                              \
  attributes static void step_f32##suffix(float x, const float* y, float* acc, int64_t n) {        \
    for (int64_t j = 0; j < n; ++j) acc[j] = __builtin_fmaf(x, y[j], acc[j]);                      \
  }                                                                                                \
  attributes static void step_f64##suffix(double x, const double* y, double* acc, int64_t n) {     \
    for (int64_t j = 0; j < n; ++j) acc[j] = __builtin_fma(x, y[j], acc[j]);                       \
  }                                                                                                \
  attributes static void step_c64##suffix(const float* x, const float* y, float* acc, int64_t n) { \
    for (int64_t j = 0; j < n; ++j) {                                                              \
      acc[2 * j] =                                                                                 \
          __builtin_fmaf(-x[1], y[2 * j + 1], __builtin_fmaf(x[0], y[2 * j], acc[2 * j]));         \
      acc[2 * j + 1] =                                                                             \
          __builtin_fmaf(x[1], y[2 * j], __builtin_fmaf(x[0], y[2 * j + 1], acc[2 * j + 1]));      \
    }                                                                                              \
  }                                                                                                \
  attributes static void step_c128##suffix(const double* x, const double* y, double* acc,          \
                                           int64_t n) {                                            \
    for (int64_t j = 0; j < n; ++j) {                                                              \
      acc[2 * j] = __builtin_fma(-x[1], y[2 * j + 1], __builtin_fma(x[0], y[2 * j], acc[2 * j]));  \
      acc[2 * j + 1] =                                                                             \
          __builtin_fma(x[1], y[2 * j], __builtin_fma(x[0], y[2 * j + 1], acc[2 * j + 1]));        \
    }                                                                                              \
  }
ROW_STEPS(_plain, )
#if defined(__x86_64__)
ROW_STEPS(_fused, __attribute__((target("avx2,fma"), optimize("O3"))))
#define STEP(kind, ...) \
  (has_fma ? step_##kind##_fused(__VA_ARGS__) : step_##kind##_plain(__VA_ARGS__))
#else
#define STEP(kind, ...) step_##kind##_plain(__VA_ARGS__)
#endif

static void step_int(uint64_t x, const uint64_t* y, uint64_t* acc, int64_t n) {
  for (int64_t j = 0; j < n; ++j) acc[j] += x * y[j];
}

// sum = sum + part, or part itself for the first.
static void add_row(tn_elem_kind_t lanes, uint8_t* sum, const uint8_t* part, bool is_first,
                    int64_t n) {
  if (is_first) {
    memcpy(sum, part, (size_t)n * lane_size(lanes));
    return;
  }
  const bool is_single = lanes == TN_ELEM_F32 || lanes == TN_ELEM_C64;
  const int64_t count = lanes == TN_ELEM_C64 || lanes == TN_ELEM_C128 ? 2 * n : n;
  for (int64_t j = 0; j < count; ++j) {
    if (is_single) {
      ((float*)sum)[j] += ((const float*)part)[j];
    } else if (lanes == TN_ELEM_I64 || lanes == TN_ELEM_U64) {
      ((uint64_t*)sum)[j] += ((const uint64_t*)part)[j];
    } else {
      ((double*)sum)[j] += ((const double*)part)[j];
    }
  }
}

static void store_row(tn_elem_kind_t lanes, const uint8_t* row, int64_t n, tn_dtype_t dtype,
                      void* out, int64_t start) {
  const size_t size = lane_size(lanes);
  for (int64_t at = 0; at < n; at += TN_CHUNK) {
    const int64_t count = n - at < TN_CHUNK ? n - at : TN_CHUNK;
    tn_elems_t chunk;
    memcpy(&chunk, row + (size_t)at * size, (size_t)count * size);
    tn_elems_store(dtype, out, start + at, count, &chunk);
  }
}

// Four steps at once, in the same order: the sums stay in registers for longer.
#define FOUR_STEPS(suffix, attributes)                                                             \
  attributes static void four_f32##suffix(const float* x, const float* y, int64_t n, float* acc) { \
    for (int64_t j = 0; j < n; ++j) {                                                              \
      float sum = __builtin_fmaf(x[0], y[j], acc[j]);                                              \
      sum = __builtin_fmaf(x[1], y[j + COLUMNS], sum);                                             \
      sum = __builtin_fmaf(x[2], y[j + 2 * COLUMNS], sum);                                         \
      acc[j] = __builtin_fmaf(x[3], y[j + 3 * COLUMNS], sum);                                      \
    }                                                                                              \
  }
FOUR_STEPS(_plain, )
#if defined(__x86_64__)
FOUR_STEPS(_fused, __attribute__((target("avx2,fma"), optimize("O3"))))
#endif

// acc[n] = the block of |k| products of x[k] with y[k, n]; rows of y are COLUMNS apart.
static void block_row(tn_elem_kind_t lanes, const uint8_t* x, const uint8_t* y, int64_t k,
                      int64_t n, uint8_t* acc) {
  const size_t size = lane_size(lanes);
#if defined(__x86_64__)
  const bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#define FOUR(...) (has_fma ? four_f32_fused(__VA_ARGS__) : four_f32_plain(__VA_ARGS__))
#else
#define FOUR(...) four_f32_plain(__VA_ARGS__)
#endif
  memset(acc, 0, (size_t)n * size);
  int64_t i = 0;
  if (lanes == TN_ELEM_F32) {
    for (; i + 4 <= k; i += 4) {
      FOUR((const float*)(const void*)x + i, (const float*)(const void*)y + i * COLUMNS, n,
           (float*)(void*)acc);
    }
  }
  for (; i < k; ++i) {
    const void *left = x + (size_t)i * size, *right = y + (size_t)(i * COLUMNS) * size;
    void* to = acc;
    switch (lanes) {
      case TN_ELEM_F32: STEP(f32, *(const float*)left, right, to, n); break;
      case TN_ELEM_F64: STEP(f64, *(const double*)left, right, to, n); break;
      case TN_ELEM_I64:
      case TN_ELEM_U64: step_int(*(const uint64_t*)left, right, to, n); break;
      case TN_ELEM_C64: STEP(c64, left, right, to, n); break;
      case TN_ELEM_C128: STEP(c128, left, right, to, n); break;
    }
  }
}

// The same in eight chains; |acc| has room for eight rows of COLUMNS.
static void block_chains(tn_elem_kind_t lanes, const uint8_t* x, const uint8_t* y, int64_t k,
                         int64_t n, uint8_t* acc) {
  const size_t size = lane_size(lanes), row = COLUMNS * size;
  memset(acc, 0, TN_CONTRACT_CHAINS * row);
  for (int64_t i = 0; i < k; ++i) {
    const void *left = x + (size_t)i * size, *right = y + (size_t)i * row;
    void* to = acc + (size_t)(i % TN_CONTRACT_CHAINS) * row;
    if (lanes == TN_ELEM_F32) {
      step_f32_plain(*(const float*)left, right, to, n);
    } else {
      step_f64_plain(*(const double*)left, right, to, n);
    }
  }
  static const int pairs[][2] = {{0, 4}, {2, 6}, {1, 5}, {3, 7}, {0, 2}, {1, 3}, {0, 1}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
    add_row(lanes, acc + (size_t)pairs[i][0] * row, acc + (size_t)pairs[i][1] * row, false, n);
  }
}

// out[m, n] (|dtype|, from element |start|) = x[m, k] y[k, n], packed lanes. Columns are taken in tiles, whose blocks
// of y are copied together and used for all rows. |has_chains|: eight per block, for f32 and f64.
static tn_status_t product(tn_elem_kind_t lanes, const uint8_t* x, const uint8_t* y, int64_t m,
                           int64_t k, int64_t n, int64_t slice_length, bool has_chains,
                           tn_dtype_t dtype, void* out, int64_t start) {
  const size_t size = lane_size(lanes), row = COLUMNS * size;
  void* memory;
  TN_TRY(tn_interp_alloc(TN_CONTRACT_BLOCK + TN_CONTRACT_CHAINS + 2 * m, row, &memory));
  uint8_t *tile = memory, *acc = tile + TN_CONTRACT_BLOCK * row,
          *sums = acc + TN_CONTRACT_CHAINS * row, *slices = sums + (size_t)m * row;
  for (int64_t j = 0; j < n; j += COLUMNS) {
    const int64_t columns = n - j < COLUMNS ? n - j : COLUMNS;
    memset(sums, 0, (size_t)m * row);
    for (int64_t s = 0; s < k; s += slice_length) {
      const int64_t slice_end = k - s < slice_length ? k : s + slice_length;
      for (int64_t b = s; b < slice_end; b += TN_CONTRACT_BLOCK) {
        const int64_t count = slice_end - b < TN_CONTRACT_BLOCK ? slice_end - b : TN_CONTRACT_BLOCK;
        for (int64_t i = 0; i < count; ++i) {
          memcpy(tile + (size_t)i * row, y + (size_t)((b + i) * n + j) * size,
                 (size_t)columns * size);
        }
        for (int64_t r = 0; r < m; ++r) {
          const uint8_t* left = x + (size_t)(r * k + b) * size;
          if (has_chains) {
            block_chains(lanes, left, tile, count, columns, acc);
          } else {
            block_row(lanes, left, tile, count, columns, acc);
          }
          add_row(lanes, slices + (size_t)r * row, acc, b == s, columns);
        }
      }
      for (int64_t r = 0; r < m; ++r)
        add_row(lanes, sums + (size_t)r * row, slices + (size_t)r * row, s == 0, columns);
    }
    for (int64_t r = 0; r < m; ++r)
      store_row(lanes, sums + (size_t)r * row, columns, dtype, out, start + r * n + j);
  }
  free(memory);
  return TN_OK;
}
// Dimensions of one operand of a dot: batch, free and contracting, as extents and strides.
typedef struct tn_dot_side {
  int batch_rank, free_rank, contract_rank;
  int64_t batch, free, contract;
  int64_t dims[3 * TN_MAX_RANK], strides[3 * TN_MAX_RANK];  // in the order wanted
} tn_dot_side_t;

static int append(const tn_type_t* type, const int64_t* strides, int64_t dimension,
                  tn_dot_side_t* side, int rank, int64_t* product) {
  side->dims[rank] = type->dims[dimension];
  side->strides[rank] = strides[dimension];
  *product *= type->dims[dimension];
  return rank + 1;
}

static void read_side(const tn_type_t* type, int64_t batch_count, const int64_t* batch,
                      int64_t contract_count, const int64_t* contract, bool contracts_last,
                      tn_dot_side_t* side) {
  int64_t strides[TN_MAX_RANK];
  tn_interp_strides(type, strides);
  memset(side, 0, sizeof *side);
  side->batch = side->free = side->contract = 1;
  unsigned used = 0;
  int rank = 0;
  for (int64_t i = 0; i < batch_count; ++i) {
    rank = append(type, strides, batch[i], side, rank, &side->batch);
    used |= 1u << batch[i];
  }
  for (int64_t i = 0; i < contract_count; ++i) used |= 1u << contract[i];
  for (int pass = 0; pass < 2; ++pass) {
    if ((pass == 0) != contracts_last) {
      for (int64_t i = 0; i < contract_count; ++i)
        rank = append(type, strides, contract[i], side, rank, &side->contract);
    } else {
      for (int i = 0; i < type->rank; ++i) {
        if (!(used >> i & 1u)) rank = append(type, strides, i, side, rank, &side->free);
      }
    }
  }
}

// The operand as packed lanes in the order of |side|.
static tn_status_t pack_side(const tn_type_t* type, const void* data, const tn_dot_side_t* side,
                             uint8_t** out_data) {
  const int64_t count = tn_type_element_count(type);
  const size_t size = tn_dtype_size(type->dtype);
  void *ordered, *packed;
  *out_data = NULL;
  TN_TRY(tn_interp_alloc(count, size, &ordered));
  tn_status_t status = tn_interp_alloc(count, lane_size(tn_elem_kind(type->dtype)), &packed);
  if (!status) {
    const tn_type_t order = tn_type_make(type->dtype, type->rank, side->dims);
    int64_t to[TN_MAX_RANK];
    tn_interp_strides(&order, to);
    tn_interp_copy(size, type->rank, side->dims, data, side->strides, ordered, to);
    widen(type->dtype, ordered, count, packed);
    *out_data = packed;
  }
  free(ordered);
  return status;
}

tn_status_t tn_interp_dot_general(const tn_node_t* node, const void* const* operands,
                                  void* const* results) {
  const tn_type_t *lhs = &node->operands[0]->types[0], *rhs = &node->operands[1]->types[0],
                  *out = &node->types[0];
  const tn_elem_kind_t lanes = tn_elem_kind(lhs->dtype);
  const size_t size = lane_size(lanes);
  int64_t batch_count, contract_count;
  const int64_t* lhs_batch = tn_node_ints(node, TN_ATTR_LHS_BATCH, &batch_count);
  const int64_t* rhs_batch = tn_node_ints(node, TN_ATTR_RHS_BATCH, NULL);
  const int64_t* lhs_contract = tn_node_ints(node, TN_ATTR_LHS_CONTRACT, &contract_count);
  const int64_t* rhs_contract = tn_node_ints(node, TN_ATTR_RHS_CONTRACT, NULL);
  tn_dot_side_t left, right;
  read_side(lhs, batch_count, lhs_batch, contract_count, lhs_contract, true, &left);
  read_side(rhs, batch_count, rhs_batch, contract_count, rhs_contract, false, &right);
  const int64_t m = left.free, n = right.free, k = left.contract;
  if (left.batch * m * n == 0) return TN_OK;
  const int64_t slice_length = tn_contract_slice_length(lhs->dtype, left.batch * m * n, k);
  uint8_t *x = NULL, *y = NULL;
  const bool has_chains = (m == 1 || n == 1) && (lanes == TN_ELEM_F32 || lanes == TN_ELEM_F64);
  tn_status_t status = pack_side(lhs, operands[0], &left, &x);
  if (!status) status = pack_side(rhs, operands[1], &right, &y);
  for (int64_t b = 0; !status && b < left.batch; ++b) {
    status = product(lanes, x + (size_t)(b * m * k) * size, y + (size_t)(b * k * n) * size, m, k, n,
                     slice_length, has_chains, out->dtype, results[0], b * m * n);
  }
  free(y);
  free(x);
  return status;
}

// The geometry of one convolution.
typedef struct tn_conv_shape {
  int spatial;
  const tn_type_t *lhs, *rhs, *out;
  const int64_t *stride, *low, *lhs_dilation, *rhs_dilation;
  int64_t channels;  // of a group
  int64_t window, positions;
} tn_conv_shape_t;

// column[k, position] for image |n|, channels from |first|; zeros where the window lies outside or in a hole.
static void fill_columns(const tn_conv_shape_t* c, const uint8_t* lhs, size_t size, int64_t n,
                         int64_t first, uint8_t* columns) {
  int64_t area = 1;
  for (int i = 0; i < c->spatial; ++i) area *= c->lhs->dims[2 + i];
  memset(columns, 0, (size_t)(c->channels * c->window * c->positions) * size);
  uint8_t* to = columns;
  for (int64_t channel = 0; channel < c->channels; ++channel) {
    const uint8_t* plane = lhs + (size_t)((n * c->lhs->dims[1] + first + channel) * area) * size;
    int64_t in[3] = {0};
    do {
      int64_t at[3] = {0};
      do {
        int64_t offset = 0;
        for (int i = 0; i < c->spatial && offset >= 0; ++i) {
          int64_t position = at[i] * c->stride[i] + in[i] * c->rhs_dilation[i] - c->low[i];
          bool is_inside = position >= 0;
          if (c->lhs_dilation[i] != 1) {
            is_inside = is_inside && position % c->lhs_dilation[i] == 0;
            position /= c->lhs_dilation[i];
          }
          is_inside = is_inside && position < c->lhs->dims[2 + i];
          offset = is_inside ? offset * c->lhs->dims[2 + i] + position : -1;
        }
        if (offset >= 0) memcpy(to, plane + (size_t)offset * size, size);
        to += size;
      } while (tn_interp_next(c->spatial, c->out->dims + 2, at));
    } while (tn_interp_next(c->spatial, c->rhs->dims + 2, in));
  }
}

tn_status_t tn_interp_convolution(const tn_node_t* node, const void* const* operands,
                                  void* const* results) {
  tn_conv_shape_t c = {.lhs = &node->operands[0]->types[0],
                       .rhs = &node->operands[1]->types[0],
                       .out = &node->types[0],
                       .window = 1,
                       .positions = 1};
  c.spatial = c.lhs->rank - 2;
  c.stride = tn_node_ints(node, TN_ATTR_STRIDE, NULL);
  c.low = tn_node_ints(node, TN_ATTR_LOW, NULL);
  c.lhs_dilation = tn_node_ints(node, TN_ATTR_BASE_DILATION, NULL);
  c.rhs_dilation = tn_node_ints(node, TN_ATTR_WINDOW_DILATION, NULL);
  c.channels = c.rhs->dims[1];
  const int64_t groups = tn_node_int(node, TN_ATTR_GROUPS, 1),
                batch_groups = tn_node_int(node, TN_ATTR_BATCH_GROUPS, 1);
  for (int i = 0; i < c.spatial; ++i)
    c.window *= c.rhs->dims[2 + i], c.positions *= c.out->dims[2 + i];
  const tn_dtype_t dtype = c.lhs->dtype;
  const tn_elem_kind_t lanes = tn_elem_kind(dtype);
  const size_t size = lane_size(lanes);
  const int64_t k = c.channels * c.window, total = tn_type_element_count(c.out);
  if (total == 0) return TN_OK;
  if (k == 0) {
    memset(results[0], 0, (size_t)total * tn_dtype_size(dtype));
    return TN_OK;
  }
  const int64_t slice_length = tn_contract_slice_length(dtype, total, k);
  const int64_t lhs_count = tn_type_element_count(c.lhs), rhs_count = tn_type_element_count(c.rhs);
  void *lhs = NULL, *rhs = NULL, *columns = NULL;
  tn_status_t status = tn_interp_alloc(lhs_count, size, &lhs);
  if (!status) status = tn_interp_alloc(rhs_count, size, &rhs);
  if (!status) status = tn_interp_alloc(k * c.positions, size, &columns);
  if (!status) {
    widen(dtype, operands[0], lhs_count, lhs);
    widen(dtype, operands[1], rhs_count, rhs);
    // output features of one group see the same columns
    const int64_t all_groups = groups * batch_groups, features = c.out->dims[1] / all_groups,
                  images = c.out->dims[0];
    for (int64_t n = 0; n < images && !status; ++n) {
      for (int64_t g = 0; g < all_groups && !status; ++g) {
        const int64_t image = batch_groups > 1 ? g * images + n : n,
                      first = batch_groups > 1 ? 0 : g * c.channels;
        fill_columns(&c, lhs, size, image, first, columns);
        status = product(lanes, (const uint8_t*)rhs + (size_t)(g * features * k) * size, columns,
                         features, k, c.positions, slice_length, false, dtype, results[0],
                         (n * c.out->dims[1] + g * features) * c.positions);
      }
    }
  }
  free(columns);
  free(rhs);
  free(lhs);
  return status;
}
