// Sorting works on records: a key whose unsigned order is the wanted order, and the position. Types up to 32
// bits pack both into one word, whose order is then stable by itself.
#include <string.h>

#include "ir/float_bits.h"
#include "src/kernels/isa/copy_table.h"
#include "src/kernels/isa/index_table.h"
#include "src/kernels/isa/isa_names.h"
#include "src/kernels/isa/order_table.h"
#include "src/kernels/isa/small_float.h"

extern const tn_copy_table_t TN_ISA_NAME(tn_copy_table);
extern const tn_index_table_t TN_ISA_NAME(tn_index_table);

enum { CHUNK = 256, BAND = TN_ORDER_BAND };

static bool is_wide(tn_dtype_t dtype) {
  return dtype == TN_I64 || dtype == TN_U64 || dtype == TN_F64;
}

// The lines [task] of a call: offsets of its first element in x, values and positions; returns how many
// lines.
static int64_t locate(const tn_order_call_t* c, int64_t task, char* out[3]) {
  int64_t rest = task / c->bands, band = task % c->bands * c->band;
  const tn_view_t* views[3] = {c->x, c->values, c->positions};
  for (int v = 0; v < 3; ++v) out[v] = views[v] ? views[v]->data : NULL;
  for (int i = c->rank - 1; i >= 0; --i) {
    const int64_t extent = c->dims[i];
    int64_t at;
    if (i == c->rank - 1) {
      at = band;
    } else {
      at = rest % extent;
      rest /= extent;
    }
    for (int v = 0; v < 3; ++v)
      if (out[v]) out[v] += at * c->strides[v][i];
  }
  const int64_t left = c->dims[c->rank - 1] - band;
  return left < c->band ? left : c->band;
}

// ---- keys -------------------------------------------------------------------------------------------------
static inline uint32_t key_f32(float value, uint32_t nan) {
  const uint32_t bits = tn_f32_bits(value + 0.0f);  // -0 becomes +0
  const uint32_t key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return value != value ? nan : key;
}
static inline uint64_t key_f64(double value, uint64_t nan) {
  uint64_t bits;
  value += 0.0;
  memcpy(&bits, &value, 8);
  const uint64_t key = bits >> 63 ? ~bits : bits | 1ull << 63;
  return value != value ? nan : key;
}

// Up to CHUNK keys of a strided run. |flip| inverts the order (descending); NaNs get the greatest key before
// that, or (|nan_first|) the least.
static void keys_narrow(tn_dtype_t dtype, const char* x, int64_t stride, int64_t count, bool flip,
                        bool nan_first, uint32_t* out) {
  const uint32_t mask = flip ? ~0u : 0, nan = nan_first ? 0 : ~0u;
  char stage[CHUNK * 4] __attribute__((aligned(4))) = {0};
  const int64_t size = dtype == TN_I32 || dtype == TN_U32 || dtype == TN_F32 ? 4
                       : dtype == TN_I16 || dtype == TN_U16 || dtype == TN_F16 || dtype == TN_BF16
                           ? 2
                           : 1;
  if (stride != size) {
    if (size == 4) {
      for (int64_t i = 0; i < count; ++i) memcpy(stage + i * 4, x + i * stride, 4);
    } else if (size == 2) {
      for (int64_t i = 0; i < count; ++i) memcpy(stage + i * 2, x + i * stride, 2);
    } else {
      for (int64_t i = 0; i < count; ++i) stage[i] = x[i * stride];
    }
    x = stage;
  }
  const void* run = x;
#define KEYS(T, expression)                 \
  for (int64_t i = 0; i < count; ++i) {     \
    const T v = ((const T*)run)[i];         \
    out[i] = (uint32_t)(expression) ^ mask; \
  }                                         \
  break
  switch (dtype) {
    case TN_BOOL:
    case TN_U8: KEYS(uint8_t, v);
    case TN_U16: KEYS(uint16_t, v);
    case TN_U32: KEYS(uint32_t, v);
    case TN_I8: KEYS(int8_t, v + 128);
    case TN_I16: KEYS(int16_t, v + 32768);
    case TN_I32: KEYS(int32_t, (uint32_t)v ^ 0x80000000u);
    case TN_F32: KEYS(float, key_f32(v, nan));
    default: {
      float wide[CHUNK];
      tn_load_small(dtype, run, wide, count);
      for (int64_t i = 0; i < count; ++i) out[i] = key_f32(wide[i], nan) ^ mask;
      break;
    }
  }
#undef KEYS
}
static void keys_wide(tn_dtype_t dtype, const char* x, int64_t stride, int64_t count, bool flip,
                      bool nan_first, uint64_t* out) {
  const uint64_t mask = flip ? ~0ull : 0, nan = nan_first ? 0 : ~0ull;
  if (dtype == TN_F64) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = key_f64(*(const double*)(const void*)(x + i * stride), nan) ^ mask;
  } else {
    const uint64_t bias = (dtype == TN_I64 ? 1ull << 63 : 0) ^ mask;
    for (int64_t i = 0; i < count; ++i)
      out[i] = *(const uint64_t*)(const void*)(x + i * stride) ^ bias;
  }
}

// ---- sort -------------------------------------------------------------------------------------------------
typedef struct {
  uint64_t key, position;
} record_t;

static inline bool less_u64(uint64_t a, uint64_t b) { return a < b; }
static inline bool less_record(record_t a, record_t b) {
  return a.key < b.key || (a.key == b.key && a.position < b.position);
}
enum { RUN = 16, RADIX_FROM = 512 };

// Merge sort of sorted runs of RUN; the result is in |a|.
#define MERGE_SORT(name, T, LESS)                                    \
  static void name(T* a, T* b, int64_t n) {                          \
    for (int64_t start = 0; start < n; start += RUN) {               \
      const int64_t stop = start + RUN < n ? start + RUN : n;        \
      for (int64_t i = start + 1; i < stop; ++i) {                   \
        const T v = a[i];                                            \
        int64_t j = i;                                               \
        for (; j > start && LESS(v, a[j - 1]); --j) a[j] = a[j - 1]; \
        a[j] = v;                                                    \
      }                                                              \
    }                                                                \
    T *from = a, *to = b;                                            \
    for (int64_t w = RUN; w < n; w *= 2) {                           \
      for (int64_t start = 0; start < n; start += 2 * w) {           \
        const int64_t middle = start + w < n ? start + w : n,        \
                      stop = middle + w < n ? middle + w : n;        \
        int64_t i = start, j = middle, k = start;                    \
        while (i < middle && j < stop) {                             \
          const bool second = LESS(from[j], from[i]);                \
          to[k++] = second ? from[j] : from[i];                      \
          j += second;                                               \
          i += !second;                                              \
        }                                                            \
        while (i < middle) to[k++] = from[i++];                      \
        while (j < stop) to[k++] = from[j++];                        \
      }                                                              \
      T* swap = from;                                                \
      from = to;                                                     \
      to = swap;                                                     \
    }                                                                \
    if (from != a) memcpy(a, from, sizeof(T) * (size_t)n);           \
  }
MERGE_SORT(merge_sort_u64, uint64_t, less_u64)
MERGE_SORT(merge_sort_record, record_t, less_record)

// Least significant digits first; a digit that is the same everywhere is skipped. Returns where the result
// is.
#define RADIX_SORT(name, T, KEY, BITS, DIGITS)                                        \
  static T* name(T* a, T* b, int64_t n) {                                             \
    enum { buckets = 1 << BITS };                                                     \
    uint32_t count[DIGITS][1 << BITS];                                                \
    memset(count, 0, sizeof count);                                                   \
    for (int64_t i = 0; i < n; ++i)                                                   \
      for (int d = 0; d < DIGITS; ++d)                                                \
        ++count[d][KEY(a[i]) >> (d * BITS) & (uint64_t)(buckets - 1)];                \
    for (int d = 0; d < DIGITS; ++d) {                                                \
      if (count[d][KEY(a[0]) >> (d * BITS) & (uint64_t)(buckets - 1)] == n) continue; \
      uint32_t sum = 0;                                                               \
      for (int k = 0; k < buckets; ++k) {                                             \
        const uint32_t c = count[d][k];                                               \
        count[d][k] = sum;                                                            \
        sum += c;                                                                     \
      }                                                                               \
      for (int64_t i = 0; i < n; ++i)                                                 \
        b[count[d][KEY(a[i]) >> (d * BITS) & (uint64_t)(buckets - 1)]++] = a[i];      \
      T* swap = a;                                                                    \
      a = b;                                                                          \
      b = swap;                                                                       \
    }                                                                                 \
    return a;                                                                         \
  }
#define KEY_PACKED(v) ((v) >> 32)
#define KEY_RECORD(v) ((v).key)
RADIX_SORT(radix_sort_u64, uint64_t, KEY_PACKED, 8, 4)
RADIX_SORT(radix_sort_big, uint64_t, KEY_PACKED, 11, 3)
RADIX_SORT(radix_sort_record, record_t, KEY_RECORD, 8, 8)

static uint64_t* sort_packed(uint64_t* a, uint64_t* b, int64_t n) {
  if (n < RADIX_FROM) {
    merge_sort_u64(a, b, n);
    return a;
  }
  return n < 16384 ? radix_sort_u64(a, b, n) : radix_sort_big(a, b, n);
}
static record_t* sort_records(record_t* a, record_t* b, int64_t n) {
  if (n < RADIX_FROM) {
    merge_sort_record(a, b, n);
    return a;
  }
  return radix_sort_record(a, b, n);
}

static void load_packed(const tn_order_call_t* c, const char* x, uint64_t* out) {
  uint32_t keys[CHUNK];
  for (int64_t i = 0; i < c->n; i += CHUNK) {
    const int64_t n = c->n - i < CHUNK ? c->n - i : CHUNK;
    keys_narrow(c->x->dtype, x + i * c->line_stride[0], c->line_stride[0], n, c->descending, false,
                keys);
    for (int64_t j = 0; j < n; ++j) out[i + j] = (uint64_t)keys[j] << 32 | (uint64_t)(i + j);
  }
}
static void load_records(const tn_order_call_t* c, const char* x, record_t* out) {
  uint64_t keys[CHUNK];
  for (int64_t i = 0; i < c->n; i += CHUNK) {
    const int64_t n = c->n - i < CHUNK ? c->n - i : CHUNK;
    keys_wide(c->x->dtype, x + i * c->line_stride[0], c->line_stride[0], n, c->descending, false,
              keys);
    for (int64_t j = 0; j < n; ++j) out[i + j] = (record_t){keys[j], (uint64_t)(i + j)};
  }
}

static inline void move(int64_t size, char* out, const char* x) {
  switch (size) {
    case 1: *out = *x; break;
    case 2: memcpy(out, x, 2); break;
    case 4: memcpy(out, x, 4); break;
    default: memcpy(out, x, 8); break;
  }
}
static void store_order(const tn_order_call_t* c, const char* x, char* values, char* positions,
                        int64_t i, int64_t from, int64_t size) {
  if (values) move(size, values + i * c->line_stride[1], x + from * c->line_stride[0]);
  if (positions) *(int64_t*)(void*)(positions + i * c->line_stride[2]) = from;
}

static void sort(const tn_order_call_t* c, int64_t begin, int64_t end, char* scratch) {
  const int64_t size = (int64_t)tn_dtype_size(c->x->dtype);
  for (int64_t task = begin; task < end; ++task) {
    char* at[3];
    locate(c, task, at);
    if (is_wide(c->x->dtype)) {
      record_t *a = (record_t*)(void*)scratch, *b = a + c->n;
      load_records(c, at[0], a);
      a = sort_records(a, b, c->n);
      for (int64_t i = 0; i < c->n; ++i)
        store_order(c, at[0], at[1], at[2], i, (int64_t)a[i].position, size);
    } else {
      uint64_t *a = (uint64_t*)(void*)scratch, *b = a + c->n;
      load_packed(c, at[0], a);
      a = sort_packed(a, b, c->n);
      for (int64_t i = 0; i < c->n; ++i)
        store_order(c, at[0], at[1], at[2], i, (int64_t)(uint32_t)a[i], size);
    }
  }
}

// ---- top-k ------------------------------------------------------------------------------------------------
// A heap of the k first so far, last of them on top; most elements fail one comparison with it.
#define SIFT(name, T, LESS)                                             \
  static void name(T* heap, int64_t k, int64_t i) {                     \
    const T v = heap[i];                                                \
    for (;;) {                                                          \
      int64_t child = 2 * i + 1;                                        \
      if (child >= k) break;                                            \
      if (child + 1 < k && LESS(heap[child], heap[child + 1])) ++child; \
      if (!LESS(v, heap[child])) break;                                 \
      heap[i] = heap[child];                                            \
      i = child;                                                        \
    }                                                                   \
    heap[i] = v;                                                        \
  }
SIFT(sift_u64, uint64_t, less_u64)
SIFT(sift_record, record_t, less_record)

static void topk(const tn_order_call_t* c, int64_t begin, int64_t end, char* scratch) {
  const int64_t size = (int64_t)tn_dtype_size(c->x->dtype), k = c->count;
  const bool use_heap = k * 8 < c->n;
  for (int64_t task = begin; task < end; ++task) {
    char* at[3];
    locate(c, task, at);
    if (is_wide(c->x->dtype)) {
      record_t *a = (record_t*)(void*)scratch, *b = a + c->n;
      if (!use_heap) {
        load_records(c, at[0], a);
        a = sort_records(a, b, c->n);
      } else {
        uint64_t keys[CHUNK];
        for (int64_t i = 0; i < c->n; i += CHUNK) {
          const int64_t n = c->n - i < CHUNK ? c->n - i : CHUNK;
          keys_wide(c->x->dtype, at[0] + i * c->line_stride[0], c->line_stride[0], n, c->descending,
                    false, keys);
          for (int64_t j = 0; j < n; ++j) {
            if (i + j < k) {
              a[i + j] = (record_t){keys[j], (uint64_t)(i + j)};
              if (i + j == k - 1)
                for (int64_t h = k / 2; h >= 0; --h) sift_record(a, k, h);
            } else if (keys[j] < a[0].key) {
              a[0] = (record_t){keys[j], (uint64_t)(i + j)};
              sift_record(a, k, 0);
            }
          }
        }
        merge_sort_record(a, b, k);  // not by digits: the heap is not in order of positions
      }
      for (int64_t i = 0; i < k; ++i)
        store_order(c, at[0], at[1], at[2], i, (int64_t)a[i].position, size);
    } else {
      uint64_t *a = (uint64_t*)(void*)scratch, *b = a + c->n;
      if (!use_heap) {
        load_packed(c, at[0], a);
        a = sort_packed(a, b, c->n);
      } else {
        uint32_t keys[CHUNK], limit = ~0u;
        for (int64_t i = 0; i < c->n; i += CHUNK) {
          const int64_t n = c->n - i < CHUNK ? c->n - i : CHUNK;
          keys_narrow(c->x->dtype, at[0] + i * c->line_stride[0], c->line_stride[0], n,
                      c->descending, false, keys);
          if (i >= k) {  // a whole chunk often has nothing
            uint32_t least = ~0u;
            for (int64_t j = 0; j < n; ++j) least = keys[j] < least ? keys[j] : least;
            if (least >= limit) continue;
          }
          for (int64_t j = 0; j < n; ++j) {
            const uint64_t record = (uint64_t)keys[j] << 32 | (uint64_t)(i + j);
            if (i + j < k) {
              a[i + j] = record;
              if (i + j == k - 1)
                for (int64_t h = k / 2; h >= 0; --h) sift_u64(a, k, h);
            } else if (record < a[0]) {
              a[0] = record;
              sift_u64(a, k, 0);
            }
          }
          if (i + n >= k) limit = (uint32_t)(a[0] >> 32);
        }
        merge_sort_u64(a, b, k);
      }
      for (int64_t i = 0; i < k; ++i)
        store_order(c, at[0], at[1], at[2], i, (int64_t)(uint32_t)a[i], size);
    }
  }
}

// ---- first extreme ----------------------------------------------------------------------------------------
// The greatest key wins, so a minimum flips keys; NaNs have the greatest key either way.
static int64_t line_extreme(const tn_order_call_t* c, const char* x) {
  const bool is_min = c->kind == TN_REDUCE_MIN;
  int64_t position = -1;
  if (is_wide(c->x->dtype)) {
    uint64_t keys[CHUNK], best = 0;
    for (int64_t i = 0; i < c->n; i += CHUNK) {
      const int64_t n = c->n - i < CHUNK ? c->n - i : CHUNK;
      keys_wide(c->x->dtype, x + i * c->line_stride[0], c->line_stride[0], n, is_min, is_min, keys);
      uint64_t most = 0;
      for (int64_t j = 0; j < n; ++j) most = keys[j] > most ? keys[j] : most;
      if (position >= 0 && most <= best) continue;
      for (int64_t j = 0; j < n; ++j)
        if (keys[j] == most) {
          position = i + j;
          break;
        }
      best = most;
    }
  } else {
    uint32_t keys[CHUNK], best = 0;
    for (int64_t i = 0; i < c->n; i += CHUNK) {
      const int64_t n = c->n - i < CHUNK ? c->n - i : CHUNK;
      keys_narrow(c->x->dtype, x + i * c->line_stride[0], c->line_stride[0], n, is_min, is_min,
                  keys);
      uint32_t most = 0;
      for (int64_t j = 0; j < n; ++j) most = keys[j] > most ? keys[j] : most;
      if (position >= 0 && most <= best) continue;
      for (int64_t j = 0; j < n; ++j)
        if (keys[j] == most) {
          position = i + j;
          break;
        }
      best = most;
    }
  }
  return position;
}

static void arg_reduce(const tn_order_call_t* c, int64_t begin, int64_t end, char* scratch) {
  (void)scratch;
  const bool is_min = c->kind == TN_REDUCE_MIN;
  const int64_t size = (int64_t)tn_dtype_size(c->x->dtype), step = c->strides[0][c->rank - 1];
  for (int64_t task = begin; task < end; ++task) {
    char* at[3];
    const int64_t lines = locate(c, task, at);
    int64_t position[BAND];
    if (!c->is_banded) {
      position[0] = line_extreme(c, at[0]);
    } else if (is_wide(c->x->dtype)) {
      uint64_t keys[BAND], best[BAND];
      keys_wide(c->x->dtype, at[0], step, lines, is_min, is_min, best);
      memset(position, 0, sizeof position);
      for (int64_t r = 1; r < c->n; ++r) {
        keys_wide(c->x->dtype, at[0] + r * c->line_stride[0], step, lines, is_min, is_min, keys);
        for (int64_t j = 0; j < lines; ++j) {
          position[j] = keys[j] > best[j] ? r : position[j];
          best[j] = keys[j] > best[j] ? keys[j] : best[j];
        }
      }
    } else {
      uint32_t keys[BAND], best[BAND], place[BAND] = {0};
      keys_narrow(c->x->dtype, at[0], step, lines, is_min, is_min, best);
      for (int64_t r = 1; r < c->n; ++r) {
        keys_narrow(c->x->dtype, at[0] + r * c->line_stride[0], step, lines, is_min, is_min, keys);
        for (int64_t j = 0; j < lines; ++j) {
          place[j] = keys[j] > best[j] ? (uint32_t)r : place[j];
          best[j] = keys[j] > best[j] ? keys[j] : best[j];
        }
      }
      for (int64_t j = 0; j < lines; ++j) position[j] = place[j];
    }
    for (int64_t j = 0; j < lines; ++j) {
      if (at[1])
        move(size, at[1] + j * c->strides[1][c->rank - 1],
             at[0] + j * step + position[j] * c->line_stride[0]);
      if (at[2]) *(int64_t*)(void*)(at[2] + j * c->strides[2][c->rank - 1]) = position[j];
    }
  }
}

// ---- scan -------------------------------------------------------------------------------------------------
// f32 for small floats, 64 bits for integers.
static tn_dtype_t wide_type(tn_dtype_t dtype) {
  switch (dtype) {
    case TN_I8:
    case TN_I16:
    case TN_I32:
    case TN_I64: return TN_I64;
    case TN_U8:
    case TN_U16:
    case TN_U32:
    case TN_U64: return TN_U64;
    case TN_F16:
    case TN_BF16:
    case TN_F8E4M3FN:
    case TN_F8E5M2: return TN_F32;
    default: return dtype;
  }
}

#define SCAN(T, expression)             \
  do {                                  \
    T a = *(T*)sum;                     \
    T* v = run;                         \
    if (exclusive) {                    \
      for (int64_t i = 0; i < n; ++i) { \
        const T b = v[i];               \
        v[i] = a;                       \
        a = (T)(expression);            \
      }                                 \
    } else {                            \
      for (int64_t i = 0; i < n; ++i) { \
        const T b = v[i];               \
        v[i] = a = (T)(expression);     \
      }                                 \
    }                                   \
    *(T*)sum = a;                       \
  } while (0)
// Scans |n| elements of the wide type in place, carrying |sum|.
static void scan_run(tn_reduce_kind_t kind, tn_dtype_t wide, bool exclusive, void* sum, void* run,
                     int64_t n) {
  if (wide == TN_F32 && kind == TN_REDUCE_SUM) {
    SCAN(float, a + b);
  } else if (wide == TN_F64 && kind == TN_REDUCE_SUM) {
    SCAN(double, a + b);
  } else if ((wide == TN_I64 || wide == TN_U64) && kind == TN_REDUCE_SUM) {
    SCAN(uint64_t, a + b);
  } else if (wide == TN_F32 && kind == TN_REDUCE_MAX) {
    SCAN(float, (a > b) | (a != a) ? a : b);
  } else if (wide == TN_F32 && kind == TN_REDUCE_MIN) {
    SCAN(float, (a < b) | (a != a) ? a : b);
  } else if (wide == TN_F32 && kind == TN_REDUCE_PROD) {
    SCAN(float, a* b);
  } else if (wide == TN_I64 && kind == TN_REDUCE_MAX) {
    SCAN(int64_t, a > b ? a : b);
  } else if (wide == TN_I64 && kind == TN_REDUCE_MIN) {
    SCAN(int64_t, a < b ? a : b);
  } else if (wide == TN_F64 && kind == TN_REDUCE_MAX) {
    SCAN(double, (a > b) | (a != a) ? a : b);
  } else if (wide == TN_F64 && kind == TN_REDUCE_MIN) {
    SCAN(double, (a < b) | (a != a) ? a : b);
  } else {  // one by one
    const tn_combine_fn_t combine = TN_ISA_NAME(tn_index_table).combine[kind][wide];
    const int64_t size = (int64_t)tn_dtype_size(wide);
    for (int64_t i = 0; i < n; ++i) {
      char value[16], *at = (char*)run + i * size;
      memcpy(value, at, (size_t)size);
      if (exclusive) memcpy(at, sum, (size_t)size);
      combine(1, sum, size, value, size);
      if (!exclusive) memcpy(at, sum, (size_t)size);
    }
  }
}

static void gather(int64_t size, const char* x, int64_t stride, int64_t n, char* out) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t b = 0; b < size; b += size < 8 ? size : 8)
      move(size < 8 ? size : 8, out + i * size + b, x + i * stride + b);
}
static void scatter(int64_t size, const char* x, int64_t n, char* out, int64_t stride) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t b = 0; b < size; b += size < 8 ? size : 8)
      move(size < 8 ? size : 8, out + i * stride + b, x + i * size + b);
}
static const char* load_wide(tn_dtype_t dtype, tn_dtype_t wide, const char* x, int64_t stride,
                             int64_t n, char* stage, char* out) {
  const int64_t size = (int64_t)tn_dtype_size(dtype);
  if (stride != size) {
    gather(size, x, stride, n, stage);
    x = stage;
  }
  TN_ISA_NAME(tn_copy_table).convert(dtype, x, wide, out, n);
  return out;
}
static void store_wide(tn_dtype_t dtype, tn_dtype_t wide, const char* x, int64_t n, char* stage,
                       char* out, int64_t stride) {
  const int64_t size = (int64_t)tn_dtype_size(dtype);
  char* to = stride == size ? out : stage;
  TN_ISA_NAME(tn_copy_table).convert(wide, x, dtype, to, n);
  if (stride != size) scatter(size, stage, n, out, stride);
}

static tn_scalar_t identity(tn_reduce_kind_t kind, tn_dtype_t dtype) {
  const tn_dtype_class_t c = tn_dtype_class(dtype);
  switch (kind) {
    case TN_REDUCE_PROD: return tn_scalar_from_double(dtype, 1);
    case TN_REDUCE_AND:
      return dtype == TN_BOOL ? (tn_scalar_t){.b = 1} : tn_scalar_from_int(dtype, -1);
    case TN_REDUCE_MAX:
      return c == TN_CLASS_FLOAT    ? tn_scalar_from_double(dtype, -__builtin_inf())
             : c == TN_CLASS_SIGNED ? tn_scalar_from_int(dtype, INT64_MIN)
                                    : (tn_scalar_t){0};
    case TN_REDUCE_MIN:
      return c == TN_CLASS_FLOAT    ? tn_scalar_from_double(dtype, __builtin_inf())
             : c == TN_CLASS_BOOL   ? (tn_scalar_t){.b = 1}
             : c == TN_CLASS_SIGNED ? tn_scalar_from_int(dtype, INT64_MAX)
                                    : tn_scalar_from_int(dtype, -1);
    default: return (tn_scalar_t){0};
  }
}

// Running extremes with positions, one line. Keys come in chunks, so that their making is vectors; the extreme is carried
// as a value, so that no step waits for memory.
enum { SCAN_CHUNK = 256 };
#define SCAN_LINE(name, KEY, keys_of, V)                                         \
  static void name(const tn_order_call_t* c, char* const at[3]) {                \
    const bool is_min = c->kind == TN_REDUCE_MIN;                                \
    const int64_t sign = c->reverse ? -1 : 1, first = c->reverse ? c->n - 1 : 0; \
    const int64_t xs = sign * c->line_stride[0], vs = sign * c->line_stride[1],  \
                  ps = sign * c->line_stride[2];                                 \
    const char* x = at[0] + first * c->line_stride[0];                           \
    char *v = at[1] ? at[1] + first * c->line_stride[1] : NULL,                  \
         *p = at[2] ? at[2] + first * c->line_stride[2] : NULL;                  \
    KEY keys[SCAN_CHUNK], best = 0;                                              \
    V value = 0;                                                                 \
    int64_t place = first;                                                       \
    for (int64_t i = 0; i < c->n; i += SCAN_CHUNK) {                             \
      const int64_t m = c->n - i < SCAN_CHUNK ? c->n - i : SCAN_CHUNK;           \
      keys_of(c->x->dtype, x, xs, m, is_min, is_min, keys);                      \
      if (i == 0) value = *(const V*)(const void*)x, best = keys[0];             \
      for (int64_t j = 0; j < m; ++j) {                                          \
        const bool takes = keys[j] >= best; /* the later one among equals */     \
        best = takes ? keys[j] : best;                                           \
        place = takes ? first + sign * (i + j) : place;                          \
        value = takes ? *(const V*)(const void*)(x + j * xs) : value;            \
        if (v) *(V*)(void*)(v + j * vs) = value;                                 \
        if (p) *(int64_t*)(void*)(p + j * ps) = place;                           \
      }                                                                          \
      x += m * xs;                                                               \
      if (v) v += m * vs;                                                        \
      if (p) p += m * ps;                                                        \
    }                                                                            \
  }
SCAN_LINE(scan_line_8, uint32_t, keys_narrow, uint8_t)
SCAN_LINE(scan_line_16, uint32_t, keys_narrow, uint16_t)
SCAN_LINE(scan_line_32, uint32_t, keys_narrow, uint32_t)
SCAN_LINE(scan_line_64, uint64_t, keys_wide, uint64_t)
static void scan_positions(const tn_order_call_t* c, char* const at[3]) {
  if (is_wide(c->x->dtype)) return scan_line_64(c, at);
  switch (tn_dtype_size(c->x->dtype)) {
    case 1: return scan_line_8(c, at);
    case 2: return scan_line_16(c, at);
    default: return scan_line_32(c, at);
  }
}

// Four lines at once, straight from x to the output: their chains of additions overlap.
#define SUM_LINES(name, T)                                                                 \
  static void name(const tn_order_call_t* c, const char* const x[4], char* const out[4]) { \
    const int64_t xs = c->reverse ? -c->line_stride[0] : c->line_stride[0];                \
    const int64_t os = c->reverse ? -c->line_stride[1] : c->line_stride[1];                \
    const int64_t first_x = c->reverse ? (c->n - 1) * c->line_stride[0] : 0;               \
    const int64_t first_out = c->reverse ? (c->n - 1) * c->line_stride[1] : 0, n = c->n;   \
    const char *x0 = x[0] + first_x, *x1 = x[1] + first_x, *x2 = x[2] + first_x,           \
               *x3 = x[3] + first_x;                                                       \
    char *o0 = out[0] + first_out, *o1 = out[1] + first_out, *o2 = out[2] + first_out,     \
         *o3 = out[3] + first_out;                                                         \
    T a = 0, b = 0, d = 0, e = 0;                                                          \
    for (int64_t i = 0; i < n; ++i) {                                                      \
      *(T*)(void*)(o0 + i * os) = a += *(const T*)(const void*)(x0 + i * xs);              \
      *(T*)(void*)(o1 + i * os) = b += *(const T*)(const void*)(x1 + i * xs);              \
      *(T*)(void*)(o2 + i * os) = d += *(const T*)(const void*)(x2 + i * xs);              \
      *(T*)(void*)(o3 + i * os) = e += *(const T*)(const void*)(x3 + i * xs);              \
    }                                                                                      \
  }
SUM_LINES(sum_lines_f32, float)
SUM_LINES(sum_lines_f64, double)
SUM_LINES(sum_lines_i32, uint32_t)
SUM_LINES(sum_lines_i64, uint64_t)
typedef void (*sum_lines_fn_t)(const tn_order_call_t* c, const char* const x[4],
                               char* const out[4]);
static sum_lines_fn_t sum_lines(const tn_order_call_t* c) {
  if (c->kind != TN_REDUCE_SUM || c->exclusive || c->positions || c->is_banded) return NULL;
  switch (c->x->dtype) {
    case TN_F32: return sum_lines_f32;
    case TN_F64: return sum_lines_f64;
    case TN_I32:
    case TN_U32: return sum_lines_i32;
    case TN_I64:
    case TN_U64: return sum_lines_i64;
    default: return NULL;
  }
}

static void scan(const tn_order_call_t* c, int64_t begin, int64_t end, char* scratch) {
  (void)scratch;
  const tn_dtype_t dtype = c->x->dtype, wide = wide_type(dtype);
  const int64_t wide_size = (int64_t)tn_dtype_size(wide);
  const tn_combine_fn_t combine = TN_ISA_NAME(tn_index_table).combine[c->kind][wide];
  tn_scalar_t start = identity(c->kind, wide);
  if (tn_dtype_class(dtype) == TN_CLASS_SIGNED &&
      (c->kind == TN_REDUCE_MAX || c->kind == TN_REDUCE_MIN)) {
    // The extreme of the narrow type, not of the one it is computed in.
    const int unused = 64 - 8 * (int)tn_dtype_size(dtype);
    start = tn_scalar_from_int(wide, (c->kind == TN_REDUCE_MAX ? INT64_MIN : INT64_MAX) >> unused);
  }
  const sum_lines_fn_t four = sum_lines(c);
  for (int64_t task = begin; task < end; ++task) {
    if (four && task + 4 <= end) {
      const char* xs[4];
      char* outs[4];
      for (int k = 0; k < 4; ++k) {
        char* line[3];
        locate(c, task + k, line);
        xs[k] = line[0];
        outs[k] = line[1];
      }
      four(c, xs, outs);
      task += 3;
      continue;
    }
    char *at[3], stage[CHUNK * 16], run[CHUNK * 16];
    const int64_t lines = locate(c, task, at);
    if (c->positions) {
      scan_positions(c, at);
      continue;
    }
    if (c->is_banded) {  // many lines side by side: rows combine into a row of sums
      char sums[BAND * 16];
      for (int64_t j = 0; j < lines; ++j) memcpy(sums + j * wide_size, &start, (size_t)wide_size);
      const int64_t x_step = c->strides[0][c->rank - 1], out_step = c->strides[1][c->rank - 1];
      for (int64_t i = 0; i < c->n; ++i) {
        const int64_t r = c->reverse ? c->n - 1 - i : i;
        load_wide(dtype, wide, at[0] + r * c->line_stride[0], x_step, lines, stage, run);
        char* out = at[1] + r * c->line_stride[1];
        if (c->exclusive) store_wide(dtype, wide, sums, lines, stage, out, out_step);
        combine(lines, sums, wide_size, run, wide_size);
        if (!c->exclusive) store_wide(dtype, wide, sums, lines, stage, out, out_step);
      }
      continue;
    }
    tn_scalar_t sum = start;
    for (int64_t i = 0; i < c->n; i += CHUNK) {
      const int64_t n = c->n - i < CHUNK ? c->n - i : CHUNK;
      const int64_t first = c->reverse ? c->n - 1 - i : i, sign = c->reverse ? -1 : 1;
      load_wide(dtype, wide, at[0] + first * c->line_stride[0], sign * c->line_stride[0], n, stage,
                run);
      scan_run(c->kind, wide, c->exclusive, &sum, run, n);
      store_wide(dtype, wide, run, n, stage, at[1] + first * c->line_stride[1],
                 sign * c->line_stride[1]);
    }
  }
}

const tn_order_table_t TN_ISA_NAME(tn_order_table) = {
    .sort = sort, .topk = topk, .arg_reduce = arg_reduce, .scan = scan};
