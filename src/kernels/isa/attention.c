// Attention over blocks: scores of a block of keys at a time, running maximum and sum, register-tiled
// products.
#pragma GCC optimize("O2")  // the vectors are written out; more would only unroll
#include "src/kernels/isa/attention_table.h"
#include "src/kernels/isa/copy_table.h"
#include "src/kernels/isa/row_types.h"
#include "src/kernels/philox.h"

extern const tn_copy_table_t TN_ISA_NAME(tn_copy_table);

enum {
  GROUP = TN_ATTENTION_GROUP,
  KEYS = TN_ATTENTION_KEYS,
  PANEL = 16,  // columns of the register tile
  PANEL_VECTORS = PANEL / VF_LANES,
  SMALL = 4,       // up to so many query rows work on unpacked keys
  GRAD_ROWS = 66,  // query rows of a block in the backward pass
};

static inline int64_t pad(int64_t n) { return (n + PANEL - 1) / PANEL * PANEL; }
static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- products ---------------------------------------------------------------------------------------------
// A banded product does not visit what causality masks: row r of the scores sees columns <= r + diagonal.
typedef enum band {
  BAND_NONE,
  BAND_COLUMNS,  // the result is the scores: columns beyond are skipped
  BAND_DEPTH,    // the left operand is the scores: the sum ends there
  BAND_ROWS,     // the left operand is the scores transposed: the sum starts there
} band_t;

typedef struct product {
  int64_t m, n, k;  // n is padded to PANEL
  const float* a;   // a[i * a_row + l * a_depth]
  int64_t a_row, a_depth;
  const float* b;  // b[panel * b_panel + l * b_depth + column]
  int64_t b_panel, b_depth;
  float* c;  // c[i * c_row + j]
  int64_t c_row;
  bool add;
  band_t band;
  int64_t diagonal;
} product_t;

static inline __attribute__((always_inline)) void tile(const int rows, int64_t k, const float* a,
                                                       int64_t a_row, int64_t a_depth,
                                                       const float* b, int64_t b_depth, float* c,
                                                       int64_t c_row, bool add) {
  vf sum[GROUP][PANEL_VECTORS];
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < PANEL_VECTORS; ++j)
      sum[i][j] = add ? vf_load(c + i * c_row + j * VF_LANES) : (vf){0};
  for (int64_t l = 0; l < k; ++l, a += a_depth, b += b_depth) {
    vf right[PANEL_VECTORS];
#pragma GCC unroll 4
    for (int j = 0; j < PANEL_VECTORS; ++j) right[j] = vf_load(b + j * VF_LANES);
#pragma GCC unroll 6
    for (int i = 0; i < rows; ++i) {
      const vf left = vf_splat(a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < PANEL_VECTORS; ++j) sum[i][j] = vf_fma(left, right[j], sum[i][j]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < PANEL_VECTORS; ++j) vf_store(c + i * c_row + j * VF_LANES, sum[i][j]);
}

static void multiply(const product_t* p) {
  for (int64_t panel = 0; panel * PANEL < p->n; ++panel) {
    for (int64_t i = 0; i < p->m; i += GROUP) {
      const int64_t rows = min64(GROUP, p->m - i);
      int64_t first = 0, last = p->k;
      if (p->band == BAND_COLUMNS && panel * PANEL > i + rows - 1 + p->diagonal) continue;
      if (p->band == BAND_DEPTH) last = min64(last, i + rows + p->diagonal);
      if (p->band == BAND_ROWS && i - p->diagonal > 0) first = i - p->diagonal;
      const int64_t depth = last > first ? last - first : 0;
      const float* a = p->a + i * p->a_row + first * p->a_depth;
      const float* b = p->b + panel * p->b_panel + first * p->b_depth;
      float* c = p->c + i * p->c_row + panel * PANEL;
#define TILE(rows) tile(rows, depth, a, p->a_row, p->a_depth, b, p->b_depth, c, p->c_row, p->add)
      switch (rows) {
        case 6: TILE(6); break;
        case 5: TILE(5); break;
        case 4: TILE(4); break;
        case 3: TILE(3); break;
        case 2: TILE(2); break;
        default: TILE(1); break;
      }
#undef TILE
    }
  }
}

// ---- rows in and out --------------------------------------------------------------------------------------
static inline const char* at(const void* data, tn_dtype_t dtype, int64_t offset) {
  return (const char*)data + offset * (dtype == TN_F32 ? 4 : 2);
}

// out[i][0..size) = x[i] * scale as f32, zero up to |padded|.
static void load_rows(tn_dtype_t dtype, const void* x, int64_t stride, int64_t rows, int64_t size,
                      float scale, float* out, int64_t padded) {
  const vf s = vf_splat(scale);
  const int width = VF_LANES;
  for (int64_t r = 0; r < rows; ++r) {
    const char* from = at(x, dtype, r * stride);
    float* to = out + r * padded;
    for (int64_t i = size / width * width; i < padded; ++i) to[i] = 0;
    if (dtype == TN_F32) {
      TN_ROW_VECTORS(
          size, st_f32(to + i, ld_f32((const float*)(const void*)from + i, count) * s, count););
    } else if (dtype == TN_BF16) {
      TN_ROW_VECTORS(
          size, st_f32(to + i, ld_bf16((const uint16_t*)(const void*)from + i, count) * s, count););
    } else {
      TN_ROW_VECTORS(
          size, st_f32(to + i, ld_f16((const uint16_t*)(const void*)from + i, count) * s, count););
    }
  }
}
static void store_row(tn_dtype_t dtype, const float* x, int64_t size, float scale, void* out) {
  const vf s = vf_splat(scale);
  const int width = VF_LANES;
  if (dtype == TN_F32) {
    TN_ROW_VECTORS(size, st_f32((float*)out + i, ld_f32(x + i, count) * s, count););
  } else if (dtype == TN_BF16) {
    TN_ROW_VECTORS(size, st_bf16((uint16_t*)out + i, ld_f32(x + i, count) * s, count););
  } else {
    TN_ROW_VECTORS(size, st_f16((uint16_t*)out + i, ld_f32(x + i, count) * s, count););
  }
}
// Panels of 16 rows, transposed: out[panel][i][row]; missing rows are zero.
static void pack_transposed(const float* x, int64_t stride, int64_t rows, int64_t size,
                            float* out) {
  for (int64_t first = 0; first < rows; first += PANEL, out += size * PANEL) {
    const int64_t n = min64(PANEL, rows - first);
    TN_ISA_NAME(tn_copy_table)
        .transpose(4, size, n, x + first * stride, stride * 4, out, PANEL * 4);
    if (n < PANEL)
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = n; j < PANEL; ++j) out[i * PANEL + j] = 0;
  }
}

// ---- scores -----------------------------------------------------------------------------------------------
// Where a block of scores lies: rows first_row.., keys first_key.. of head (batch, head).
typedef struct place {
  int64_t batch, head, first_row, first_key, keys;
} place_t;

// How many of the block's keys row |r| sees.
static inline int64_t visible_keys(const tn_attention_t* att, const place_t* p, int64_t r) {
  if (!att->is_causal) return p->keys;
  const int64_t n = p->first_row + r - p->first_key + 1;
  return n < 0 ? 0 : min64(n, p->keys);
}

static void add_mask(const tn_attention_t* att, const place_t* p, int64_t r, int64_t n,
                     float* score) {
  const int64_t step = att->mask_stride[3];
  const int64_t offset = p->batch * att->mask_stride[0] + p->head * att->mask_stride[1] +
                         (p->first_row + r) * att->mask_stride[2] + p->first_key * step;
  if (att->mask_dtype == TN_BOOL) {
    const uint8_t* mask = (const uint8_t*)att->mask + offset;
    for (int64_t j = 0; j < n; ++j) score[j] = mask[j * step] ? score[j] : -INFINITY;
  } else if (att->mask_dtype == TN_F32) {
    const float* mask = (const float*)att->mask + offset;
    const int width = VF_LANES;
    if (step == 1) {
      TN_ROW_VECTORS(n,
                     st_f32(score + i, ld_f32(score + i, count) + ld_f32(mask + i, count), count););
    } else {
      for (int64_t j = 0; j < n; ++j) score[j] += mask[j * step];
    }
  } else {
    const uint16_t* mask = (const uint16_t*)att->mask + offset;
    for (int64_t j = 0; j < n; ++j)
      score[j] += att->mask_dtype == TN_BF16 ? tn_bf16_to_f32(mask[j * step])
                                             : tn_f16_to_f32(mask[j * step]);
  }
}

// keep[j] = 0 or 1 / (1 - dropout) for one row.
static void dropout_row(const tn_attention_t* att, const place_t* p, int64_t r, int64_t n,
                        float* keep) {
  uint64_t index = (uint64_t)(((p->batch * att->heads + p->head) * att->length + p->first_row + r) *
                                  att->length_kv +
                              p->first_key);
  const bool drops_all = att->dropout >= 1;
  const uint32_t limit = drops_all ? ~0u : (uint32_t)(att->dropout * 0x1p32);
  const float scale = drops_all ? 0 : (float)(1 / (1 - att->dropout));
  uint32_t words[4];
  for (int64_t j = 0; j < n; ++j, ++index) {
    if (j == 0 || index % 4 == 0) tn_philox(att->seed, att->offset + index / 4, words);
    keep[j] = words[index % 4] < limit ? 0 : scale;
  }
}

// Scores of one row to probabilities relative to the running maximum; returns the factor for earlier sums.
static float softmax_row(float* score, int64_t n, int64_t zero_to, float* maximum, float* sum) {
  const int width = VF_LANES;
  vf high = vf_splat(*maximum);
  vi unordered = {0};
  TN_ROW_VECTORS(n, {
    vf s = ld_f32(score + i, count);
    if (count != VF_LANES) s = vf_select(vf_lane_mask(count), s, vf_splat(-INFINITY));
    unordered |= s != s;
    high = vf_most(s, high);
  });
  float top = vf_max_lanes(high);
  if (top == -INFINITY) {  // nothing visible yet, or NaNs
    bool has_nan = false;
    for (int k = 0; k < VF_LANES; ++k) has_nan = has_nan || unordered[k];
    if (has_nan) top = NAN;
  }
  if (top == -INFINITY) {
    for (int64_t j = 0; j < zero_to; ++j) score[j] = 0;
    return 1;
  }
  vf total = {0};
  const vf shift = vf_splat(top);
  TN_ROW_VECTORS(n, {
    vf e = vf_exp_negative(ld_f32(score + i, count) - shift);
    st_f32(score + i, e, count);
    total += count == VF_LANES ? e : vf_select(vf_lane_mask(count), e, (vf){0});
  });
  for (int64_t j = n; j < zero_to; ++j) score[j] = 0;
  const float factor = *maximum == top ? 1 : vf_exp_negative(vf_splat(*maximum - top))[0];
  *sum = *sum * factor + vf_sum_lanes(total);
  *maximum = top;
  return factor;
}

static void scale_row(float* x, int64_t n, float factor) {
  const vf f = vf_splat(factor);
  for (int64_t i = 0; i < n; i += VF_LANES) vf_store(x + i, vf_load(x + i) * f);
}

// ---- forward ----------------------------------------------------------------------------------------------
static int64_t forward_scratch(const tn_attention_t* att) {
  const int64_t rows = tn_attention_block_rows(att->length > 0 ? att->length : 1),
                e = pad(att->size), v = pad(att->size_v);
  return rows * (e + KEYS + v + 2) + KEYS * (2 * e + v) + KEYS + 64;
}

// Products for few rows: keys and values are read once, as they lie.
static void small_scores(const float* q, int64_t q_row, int64_t rows, const float* keys,
                         int64_t key_stride, int64_t n, int64_t size, float* score) {
  const int width = VF_LANES;
  for (int64_t j = 0; j < n; ++j) {
    const float* key = keys + j * key_stride;
    for (int64_t r = 0; r < rows; ++r) {
      const float* left = q + r * q_row;
      vf sum = {0};
      TN_ROW_VECTORS(size, sum = vf_fma(ld_f32(left + i, count), ld_f32(key + i, count), sum););
      score[r * KEYS + j] = vf_sum_lanes(sum);
    }
  }
}
// sums[r] += score[r] values, |columns| a multiple of PANEL.
static void small_sums(const float* score, int64_t rows, const float* values, int64_t stride,
                       int64_t n, int64_t columns, float* sums) {
  enum { WIDE = 8 };  // vectors at a time: enough chains to hide the latency
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; c += WIDE * VF_LANES) {
      const int64_t left = (columns - c) / VF_LANES;
      float* to = sums + r * columns + c;
      if (left >= WIDE) {
        vf sum[WIDE];
#pragma GCC unroll 8
        for (int k = 0; k < WIDE; ++k) sum[k] = vf_load(to + k * VF_LANES);
        for (int64_t j = 0; j < n; ++j) {
          const vf p = vf_splat(score[r * KEYS + j]);
#pragma GCC unroll 8
          for (int k = 0; k < WIDE; ++k)
            sum[k] = vf_fma(p, vf_load(values + j * stride + c + k * VF_LANES), sum[k]);
        }
#pragma GCC unroll 8
        for (int k = 0; k < WIDE; ++k) vf_store(to + k * VF_LANES, sum[k]);
      } else {
        for (int64_t k = 0; k < left; ++k) {
          vf sum = vf_load(to + k * VF_LANES);
          for (int64_t j = 0; j < n; ++j)
            sum = vf_fma(vf_splat(score[r * KEYS + j]),
                         vf_load(values + j * stride + c + k * VF_LANES), sum);
          vf_store(to + k * VF_LANES, sum);
        }
      }
    }
  }
}

static float scale_of(const tn_attention_t* att) {
  return att->scale > 0 || att->scale < 0 ? (float)att->scale : 1.0f / sqrtf((float)att->size);
}

static void forward(const tn_attention_t* att, int64_t task, float* scratch, void* out,
                    const int64_t* out_stride, float* out_lse) {
  const int64_t blocks = tn_attention_block_count(att->length),
                block_rows = tn_attention_block_rows(att->length);
  const int64_t head_index = task / blocks, e = pad(att->size), v = pad(att->size_v);
  place_t p = {head_index / att->heads, head_index % att->heads, task % blocks * block_rows, 0, 0};
  const int64_t rows = min64(block_rows, att->length - p.first_row);
  if (rows <= 0) return;
  const int64_t kv_head = p.head / (att->heads / att->heads_kv);
  float *q = scratch, *score = q + block_rows * e, *sums = score + block_rows * KEYS,
        *packed = sums + block_rows * v;
  float *keys = packed + KEYS * e, *values = keys + KEYS * e, *keep = values + KEYS * v,
        *maximum = keep + KEYS;
  float* total = maximum + block_rows;
  load_rows(
      att->dtype,
      at(att->q, att->dtype,
         p.batch * att->q_stride[0] + p.head * att->q_stride[1] + p.first_row * att->q_stride[2]),
      att->q_stride[2], rows, att->size, scale_of(att), q, e);
  memset(sums, 0, sizeof(float) * (size_t)(rows * v));
  for (int64_t r = 0; r < rows; ++r) maximum[r] = -INFINITY, total[r] = 0;

  const int64_t limit = att->is_causal ? min64(att->length_kv, p.first_row + rows) : att->length_kv;
  for (p.first_key = 0; p.first_key < limit; p.first_key += KEYS) {
    p.keys = min64(KEYS, limit - p.first_key);
    const void* k = at(
        att->k, att->dtype,
        p.batch * att->k_stride[0] + kv_head * att->k_stride[1] + p.first_key * att->k_stride[2]);
    const float* key_rows = k;
    int64_t key_stride = att->k_stride[2];
    if (att->dtype != TN_F32) {
      load_rows(att->dtype, k, key_stride, p.keys, att->size, 1, keys, e);
      key_rows = keys;
      key_stride = e;
    }
    const void* value = at(
        att->v, att->dtype,
        p.batch * att->v_stride[0] + kv_head * att->v_stride[1] + p.first_key * att->v_stride[2]);
    const float* value_rows = value;
    int64_t value_stride = att->v_stride[2];
    if (att->dtype != TN_F32 || att->size_v != v || rows > SMALL) {
      load_rows(att->dtype, value, value_stride, p.keys, att->size_v, 1, values, v);
      value_rows = values;
      value_stride = v;
    }
    const int64_t diagonal = p.first_row - p.first_key;
    const bool is_banded = att->is_causal && p.first_key + p.keys - 1 > p.first_row;
    if (rows <= SMALL) {
      small_scores(q, e, rows, key_rows, key_stride, p.keys, att->size, score);
    } else {
      pack_transposed(key_rows, key_stride, p.keys, att->size, packed);
      multiply(&(product_t){.m = rows,
                            .n = pad(p.keys),
                            .k = att->size,
                            .a = q,
                            .a_row = e,
                            .a_depth = 1,
                            .b = packed,
                            .b_panel = att->size * PANEL,
                            .b_depth = PANEL,
                            .c = score,
                            .c_row = KEYS,
                            .band = is_banded ? BAND_COLUMNS : BAND_NONE,
                            .diagonal = diagonal});
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* row = score + r * KEYS;
      const int64_t n = visible_keys(att, &p, r);
      if (att->mask) add_mask(att, &p, r, n, row);
      const float factor = softmax_row(row, n, p.keys, &maximum[r], &total[r]);
      if (factor != 1) scale_row(sums + r * v, v, factor);
      if (att->dropout > 0) {
        dropout_row(att, &p, r, n, keep);
        for (int64_t j = 0; j < n; ++j) row[j] *= keep[j];
      }
    }
    if (rows <= SMALL) {
      small_sums(score, rows, value_rows, value_stride, p.keys, v, sums);
      continue;
    }
    multiply(&(product_t){.m = rows,
                          .n = v,
                          .k = p.keys,
                          .a = score,
                          .a_row = KEYS,
                          .a_depth = 1,
                          .b = values,
                          .b_panel = PANEL,
                          .b_depth = v,
                          .c = sums,
                          .c_row = v,
                          .add = true,
                          .band = is_banded ? BAND_DEPTH : BAND_NONE,
                          .diagonal = diagonal});
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = p.first_row + r;
    const int64_t offset = p.batch * out_stride[0] + p.head * out_stride[1] + row * out_stride[2];
    store_row(att->dtype, sums + r * v, att->size_v, total[r] == 0 ? 0 : 1 / total[r],
              (void*)(uintptr_t)at(out, att->dtype, offset));
    if (out_lse)
      out_lse[head_index * att->length + row] =
          total[r] == 0 ? -INFINITY : maximum[r] + tn_log_one(total[r]);
  }
}

// ---- backward ---------------------------------------------------------------------------------------------
static int64_t backward_scratch(const tn_attention_t* att) {
  const int64_t e = pad(att->size), v = pad(att->size_v), length = att->length;
  return length * (2 * e + v + 1) + att->length_kv * (e + v) + 2 * GRAD_ROWS * KEYS +
         2 * KEYS * (e + v) + KEYS + 64;
}

// All query heads of one key head, in order; keys in blocks outermost, so dk and dv of a block stay near.
static void backward(const tn_attention_t* att, const tn_attention_grad_t* grad, int64_t task,
                     float* scratch) {
  const int64_t batch = task / att->heads_kv, kv_head = task % att->heads_kv,
                group = att->heads / att->heads_kv;
  const int64_t e = pad(att->size), v = pad(att->size_v), length = att->length;
  float *q = scratch, *dq = q + length * e, *dout = dq + length * e, *delta = dout + length * v;
  float *prob = delta + length, *dprob = prob + GRAD_ROWS * KEYS, *keys = dprob + GRAD_ROWS * KEYS;
  float *keys_t = keys + KEYS * e, *values = keys_t + KEYS * e, *values_t = values + KEYS * v;
  float *keep = values_t + KEYS * v, *dk = keep + KEYS, *dv = dk + att->length_kv * e;
  const float scale = scale_of(att);
  const int width = VF_LANES;

  memset(dk, 0,
         sizeof(float) * (size_t)(att->length_kv *
                                  (e + v)));  // summed over the group in f32, stored at the end
  const int64_t key_blocks = (att->length_kv + KEYS - 1) / KEYS;
  for (int64_t g = 0; g < group; ++g) {
    place_t p = {batch, kv_head * group + g, 0, 0, 0};
    load_rows(att->dtype,
              at(att->q, att->dtype, batch * att->q_stride[0] + p.head * att->q_stride[1]),
              att->q_stride[2], length, att->size, scale, q, e);
    load_rows(
        att->dtype,
        at(grad->dout, att->dtype, batch * grad->dout_stride[0] + p.head * grad->dout_stride[1]),
        grad->dout_stride[2], length, att->size_v, 1, dout, v);
    memset(dq, 0, sizeof(float) * (size_t)(length * e));
    for (int64_t r = 0; r < length; ++r) {  // delta = sum(dout * out)
      const char* o =
          at(grad->out, att->dtype,
             batch * grad->out_stride[0] + p.head * grad->out_stride[1] + r * grad->out_stride[2]);
      load_rows(att->dtype, o, 0, 1, att->size_v, 1, values, v);
      vf sum = {0};
      TN_ROW_VECTORS(
          v, sum = vf_fma(ld_f32(values + i, count), ld_f32(dout + r * v + i, count), sum););
      delta[r] = vf_sum_lanes(sum);
    }
    const float* lse = grad->lse + (batch * att->heads + p.head) * length;
    for (int64_t block = 0; block < key_blocks; ++block) {
      p.first_key = block * KEYS;
      p.keys = min64(KEYS, att->length_kv - p.first_key);
      load_rows(att->dtype,
                at(att->k, att->dtype,
                   batch * att->k_stride[0] + kv_head * att->k_stride[1] +
                       p.first_key * att->k_stride[2]),
                att->k_stride[2], p.keys, att->size, 1, keys, e);
      pack_transposed(keys, e, p.keys, att->size, keys_t);
      load_rows(att->dtype,
                at(att->v, att->dtype,
                   batch * att->v_stride[0] + kv_head * att->v_stride[1] +
                       p.first_key * att->v_stride[2]),
                att->v_stride[2], p.keys, att->size_v, 1, values, v);
      pack_transposed(values, v, p.keys, att->size_v, values_t);
      const int64_t start = att->is_causal ? p.first_key / GRAD_ROWS * GRAD_ROWS : 0;
      for (p.first_row = start; p.first_row < length; p.first_row += GRAD_ROWS) {
        const int64_t rows = min64(GRAD_ROWS, length - p.first_row),
                      diagonal = p.first_row - p.first_key;
        const bool is_banded = att->is_causal && p.first_key + p.keys - 1 > p.first_row;
        const float *q_rows = q + p.first_row * e, *dout_rows = dout + p.first_row * v;
        product_t scores = {.m = rows,
                            .n = pad(p.keys),
                            .k = att->size,
                            .a = q_rows,
                            .a_row = e,
                            .a_depth = 1,
                            .b = keys_t,
                            .b_panel = att->size * PANEL,
                            .b_depth = PANEL,
                            .c = prob,
                            .c_row = KEYS,
                            .band = is_banded ? BAND_COLUMNS : BAND_NONE,
                            .diagonal = diagonal};
        multiply(&scores);
        scores.k = att->size_v, scores.a = dout_rows, scores.a_row = v, scores.b = values_t;
        scores.b_panel = att->size_v * PANEL, scores.c = dprob;
        multiply(&scores);
        for (int64_t r = 0; r < rows; ++r) {
          float *row = prob + r * KEYS, *drow = dprob + r * KEYS;
          const int64_t n = visible_keys(att, &p, r);
          if (att->mask) add_mask(att, &p, r, n, row);
          const float row_lse = lse[p.first_row + r];
          const vf shift = vf_splat(row_lse == -INFINITY ? INFINITY : row_lse),
                   d = vf_splat(delta[p.first_row + r]);
          if (att->dropout > 0) {
            dropout_row(att, &p, r, n, keep);
          }
          TN_ROW_VECTORS(n, {
            vf probability = vf_exp_negative(ld_f32(row + i, count) - shift);
            vf kept = probability;
            vf dprobability = ld_f32(drow + i, count);
            if (att->dropout > 0) {
              const vf factor = ld_f32(keep + i, count);
              kept *= factor;
              dprobability *= factor;
            }
            st_f32(row + i, kept, count);
            st_f32(drow + i, probability * (dprobability - d), count);
          });
          for (int64_t j = n; j < p.keys; ++j) row[j] = drow[j] = 0;
        }
        // dv += prob^T dout, dk += dscore^T q, dq += dscore k
        product_t sum = {.m = p.keys,
                         .n = v,
                         .k = rows,
                         .a = prob,
                         .a_row = 1,
                         .a_depth = KEYS,
                         .b = dout_rows,
                         .b_panel = PANEL,
                         .b_depth = v,
                         .c = dv + p.first_key * v,
                         .c_row = v,
                         .add = true,
                         .band = is_banded ? BAND_ROWS : BAND_NONE,
                         .diagonal = diagonal};
        if (grad->dv) multiply(&sum);
        sum.n = e, sum.a = dprob, sum.b = q_rows, sum.b_depth = e, sum.c = dk + p.first_key * e,
        sum.c_row = e;
        if (grad->dk) multiply(&sum);
        if (grad->dq)
          multiply(&(product_t){.m = rows,
                                .n = e,
                                .k = p.keys,
                                .a = dprob,
                                .a_row = KEYS,
                                .a_depth = 1,
                                .b = keys,
                                .b_panel = PANEL,
                                .b_depth = e,
                                .c = dq + p.first_row * e,
                                .c_row = e,
                                .add = true,
                                .band = is_banded ? BAND_DEPTH : BAND_NONE,
                                .diagonal = diagonal});
      }
    }
    if (grad->dq)
      for (int64_t r = 0; r < length; ++r)
        store_row(att->dtype, dq + r * e, att->size, scale,
                  (void*)(uintptr_t)at(grad->dq, att->dtype,
                                       batch * grad->dq_stride[0] + p.head * grad->dq_stride[1] +
                                           r * grad->dq_stride[2]));
  }
  for (int64_t j = 0; j < att->length_kv; ++j) {
    if (grad->dk)
      store_row(att->dtype, dk + j * e, att->size, 1,
                (void*)(uintptr_t)at(grad->dk, att->dtype,
                                     batch * grad->dk_stride[0] + kv_head * grad->dk_stride[1] +
                                         j * grad->dk_stride[2]));
    if (grad->dv)
      store_row(att->dtype, dv + j * v, att->size_v, 1,
                (void*)(uintptr_t)at(grad->dv, att->dtype,
                                     batch * grad->dv_stride[0] + kv_head * grad->dv_stride[1] +
                                         j * grad->dv_stride[2]));
  }
}

const tn_attention_table_t TN_ISA_NAME(tn_attention_table) = {.forward_scratch = forward_scratch,
                                                              .forward = forward,
                                                              .backward_scratch = backward_scratch,
                                                              .backward = backward};
