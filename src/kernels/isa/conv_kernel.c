// Packing the columns of a convolution's product straight from the image; see kernels/conv_table.h.
#include "kernels/conv_table.h"
#include "kernels/gemm_table.h"
#include "kernels/isa/isa_vec.h"
#include "kernels/isa/small_float.h"

typedef struct position {
  int64_t at[TN_CONV_PIXEL_DIMS];
} position_t;

static position_t position_of(const tn_conv_image_t* m, int64_t pixel) {
  position_t p;
  for (int d = TN_CONV_PIXEL_DIMS - 1; d >= 0; --d) {
    p.at[d] = pixel % m->extent[d];
    pixel /= m->extent[d];
  }
  return p;
}
static void position_advance(const tn_conv_image_t* m, position_t* p) {
  for (int d = TN_CONV_PIXEL_DIMS - 1; d >= 0; --d) {
    if (++p->at[d] < m->extent[d]) return;
    p->at[d] = 0;
  }
}
// Memory offset of the pixel at tap 0, and where it lies on each axis.
static int64_t pixel_offset(const tn_conv_image_t* m, const position_t* p, int64_t* on_axis) {
  int64_t offset = 0;
  for (int a = 0; a < TN_CONV_AXES; ++a) on_axis[a] = m->axes[a].start;
  for (int d = 0; d < TN_CONV_PIXEL_DIMS; ++d) {
    const int axis = m->axis[d];
    if (axis >= 0) {
      on_axis[axis] += p->at[d] * m->axes[axis].step;
    } else {
      offset += p->at[d] * m->in_step[d];
    }
  }
  for (int a = 0; a < TN_CONV_AXES; ++a) offset += on_axis[a] * m->axes[a].in_stride;
  return offset;
}

static void tap_of(const tn_conv_image_t* m, int64_t tap, int64_t* on_axis) {
  for (int a = TN_CONV_AXES - 1; a >= 0; --a) {
    on_axis[a] = tap % m->axes[a].taps;
    tap /= m->axes[a].taps;
  }
}

static bool is_inside(const tn_conv_image_t* m, int axis, int64_t position) {
  return position >= 0 && position < m->axes[axis].in_extent;
}

// ---- any layout, one element at a time --------------------------------------------------------------------------
#define PACK_ANY(T, name)                                                             \
  static void name(const tn_conv_image_t* m, int64_t first, int64_t cols, int64_t k0, \
                   int64_t depth, int panel, T* out) {                                \
    for (int64_t j0 = 0; j0 < cols; j0 += panel, out += depth * panel) {              \
      position_t position = position_of(m, first + j0);                               \
      for (int j = 0; j < panel; ++j) {                                               \
        if (j0 + j >= cols) {                                                         \
          for (int64_t k = 0; k < depth; ++k) out[k * panel + j] = 0;                 \
          continue;                                                                   \
        }                                                                             \
        int64_t on_axis[TN_CONV_AXES], tap[TN_CONV_AXES];                             \
        const int64_t base = pixel_offset(m, &position, on_axis);                     \
        tap_of(m, k0 % m->tap_count, tap);                                            \
        int64_t channel = k0 / m->tap_count;                                          \
        for (int64_t k = 0; k < depth; ++k) {                                         \
          bool inside = true;                                                         \
          int64_t offset = base + channel * m->in_channel;                            \
          for (int a = 0; a < TN_CONV_AXES; ++a) {                                    \
            const int64_t shift = tap[a] * m->axes[a].tap_step;                       \
            inside = inside && is_inside(m, a, on_axis[a] + shift);                   \
            offset += shift * m->axes[a].in_stride;                                   \
          }                                                                           \
          out[k * panel + j] = inside ? ((const T*)m->in)[offset] : 0;                \
          int a = TN_CONV_AXES - 1;                                                   \
          while (a >= 0 && ++tap[a] == m->axes[a].taps) tap[a--] = 0;                 \
          channel += a < 0;                                                           \
        }                                                                             \
        position_advance(m, &position);                                               \
      }                                                                               \
    }                                                                                 \
  }
PACK_ANY(double, pack_f64)
PACK_ANY(float, pack_any_f32)

static void widen(tn_dtype_t dtype, const void* in, int64_t step, float* out, int64_t count) {
  const uint16_t* half = in;
  if (step == 1) {
    tn_load_small(dtype, in, out, count);
  } else if (dtype == TN_BF16) {
    for (int64_t i = 0; i < count; ++i) out[i] = tn_bf16_to_f32(half[i * step]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = tn_f16_to_f32(half[i * step]);
  }
}

#if !defined(TN_ISA_AVX2) && !defined(TN_ISA_AVX512)
#define PACK_F32      pack_any_f32
#define DEPTHWISE_F32 NULL
#else
#define PACK_F32      pack_f32
#define DEPTHWISE_F32 depthwise_f32

// ---- masked loads of 8 ----------------------------------------------------------------------------------------
static const int32_t kMask[24] = {0,  0,  0,  0,  0, 0, 0, 0, -1, -1, -1, -1,
                                  -1, -1, -1, -1, 0, 0, 0, 0, 0,  0,  0,  0};

// Lanes [low, high), 0 <= low <= 8, 0 <= high <= 8.
TN_INLINE __m256i mask_of(int low, int high) {
  return _mm256_and_si256(_mm256_loadu_si256((const void*)(kMask + 8 - low)),
                          _mm256_loadu_si256((const void*)(kMask + 16 - high)));
}
TN_INLINE int clamp_8(int64_t x) { return x < 0 ? 0 : x > 8 ? 8 : (int)x; }
// 8 elements |step| apart, of which only lanes [low, high) are read.
TN_INLINE __m256 load_part(const float* p, int64_t step, int low, int high) {
  if (step == 1) {
    if (low == 0 && high == 8) return _mm256_loadu_ps(p);
    return _mm256_maskload_ps(p, mask_of(low, high));
  }
  float lane[8] = {0};
  for (int i = low; i < high; ++i) lane[i] = p[i * step];
  return _mm256_loadu_ps(lane);
}

TN_INLINE int64_t ceil_div(int64_t a, int64_t b) {  // b > 0
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

// ---- vectors along pixels ---------------------------------------------------------------------------------------
enum { MAX_RUNS = TN_GEMM_PANEL_MAX, MAX_PIECES = 4096 };

typedef struct run {  // neighbouring pixels of a panel along the innermost pixel dimension
  int column, length;
  int64_t base;  // memory offset at tap 0
  int64_t on_axis[TN_CONV_AXES];
} run_t;
typedef struct piece {  // 8 pixels of a run at one tap; lanes [low, high) lie inside
  int64_t offset;
  int16_t column;
  uint8_t low, high;
} piece_t;

// The runs of pixels [first, first + cols); returns their number, and that of vectors of 8 in them.
static int fill_runs(const tn_conv_image_t* m, int64_t first, int cols, run_t* runs,
                     int* out_vectors) {
  const int inner = TN_CONV_PIXEL_DIMS - 1;
  int run_count = 0;
  *out_vectors = 0;
  position_t position = position_of(m, first);
  for (int j = 0; j < cols;) {
    run_t* run = &runs[run_count++];
    const int64_t left = m->extent[inner] - position.at[inner];
    run->column = j;
    run->length = (int)(left < cols - j ? left : cols - j);
    run->base = pixel_offset(m, &position, run->on_axis);
    *out_vectors += (run->length + 7) / 8;
    j += run->length;
    position.at[inner] += run->length - 1;
    position_advance(m, &position);
  }
  return run_count;
}

// The pieces of all runs at the tap that shifts positions by |shift|, memory by |offset|.
static piece_t* fill_pieces(const tn_conv_image_t* m, const run_t* runs, int run_count,
                            const int64_t* shift, int64_t offset, piece_t* piece) {
  const int inner_axis = m->axis[TN_CONV_PIXEL_DIMS - 1];
  const int64_t step = m->in_step[TN_CONV_PIXEL_DIMS - 1];
  for (int r = 0; r < run_count; ++r) {
    const run_t* run = &runs[r];
    int64_t low = 0, high = run->length;
    for (int a = 0; a < TN_CONV_AXES; ++a) {
      const int64_t at = run->on_axis[a] + shift[a];
      if (a != inner_axis) {
        if (!is_inside(m, a, at)) high = 0;
      } else {
        const int64_t s = m->axes[a].step;  // pixels q with 0 <= at + q * s < in_extent
        const int64_t first = ceil_div(-at, s), end = ceil_div(m->axes[a].in_extent - at, s);
        if (first > low) low = first;
        if (end < high) high = end;
      }
    }
    for (int i = 0; i < run->length; i += 8, ++piece) {
      piece->offset = run->base + offset + i * step;
      piece->column = (int16_t)(run->column + i);
      piece->low = (uint8_t)clamp_8(low - i);
      piece->high = (uint8_t)clamp_8(high - i);
      if (piece->low >= piece->high) piece->low = piece->high = 0;
    }
  }
  return piece;
}

// The pieces of taps [begin, end).
static void fill_taps(const tn_conv_image_t* m, const run_t* runs, int run_count, int64_t begin,
                      int64_t end, piece_t* pieces) {
  int64_t tap[TN_CONV_AXES];
  tap_of(m, begin, tap);
  for (int64_t t = begin; t < end; ++t) {
    int64_t shift[TN_CONV_AXES], offset = 0;
    for (int a = 0; a < TN_CONV_AXES; ++a) {
      shift[a] = tap[a] * m->axes[a].tap_step;
      offset += shift[a] * m->axes[a].in_stride;
    }
    pieces = fill_pieces(m, runs, run_count, shift, offset, pieces);
    int a = TN_CONV_AXES - 1;
    while (a >= 0 && ++tap[a] == m->axes[a].taps) tap[a--] = 0;
  }
}

TN_INLINE __m256i lane_steps(int64_t step) {
  return _mm256_mullo_epi32(_mm256_set1_epi32((int)step),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
TN_INLINE bool fits_gather(int64_t step) { return step <= INT32_MAX / 8 && step >= INT32_MIN / 8; }
// Loads one piece; |steps| are the lanes' distances.
TN_INLINE __m256 load_piece(const float* in, const piece_t* piece, int64_t step, __m256i steps) {
  const float* p = in + piece->offset;
  const bool is_full = piece->low == 0 && piece->high == 8;
  if (step == 1 && is_full) return _mm256_loadu_ps(p);
  if (step == 2 && is_full) {  // the second load ends at the last element that is wanted
    const __m256 x = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 7), 0xd8);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
  }
  const __m256i mask = mask_of(piece->low, piece->high);
  if (step == 1) return _mm256_maskload_ps(p, mask);
  return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, steps, _mm256_castsi256_ps(mask), 4);
}

static void pack_panel_pixels(const tn_conv_image_t* m, int64_t first, int cols, int64_t k0,
                              int64_t depth, int panel, float* out) {
  const int64_t step = m->in_step[TN_CONV_PIXEL_DIMS - 1], total = m->tap_count;
  run_t runs[MAX_RUNS];
  int count;
  const int run_count = fill_runs(m, first, cols, runs, &count);
  piece_t pieces[MAX_PIECES];
  const int64_t group = MAX_PIECES / count;  // taps the table holds
  const int64_t c_begin = k0 / total, c_end = (k0 + depth - 1) / total + 1;
  const bool is_one_channel = c_end - c_begin == 1;
  if ((total > group && !is_one_channel) ||
      !fits_gather(step)) {  // rows would not be written in order
    pack_any_f32(m, first, cols, k0, depth, panel, out);
    return;
  }
  const __m256i steps = lane_steps(step);
  for (int64_t t0 = 0; t0 < total; t0 += group) {
    // A table of the taps [fill0, fill1): only what is used when there is but one channel.
    const int64_t t1 = total - t0 < group ? total : t0 + group, begin = k0 - c_begin * total;
    const int64_t fill0 = is_one_channel && begin > t0 ? begin : t0;
    const int64_t fill1 = is_one_channel && begin + depth < t1 ? begin + depth : t1;
    if (fill0 >= fill1) continue;
    fill_taps(m, runs, run_count, fill0, fill1, pieces);
    for (int64_t c = c_begin; c < c_end; ++c) {
      const int64_t from = k0 - c * total > fill0 ? k0 - c * total : fill0;
      const int64_t to = k0 + depth - c * total < fill1 ? k0 + depth - c * total : fill1;
      const float* channel = (const float*)m->in + c * m->in_channel;
      for (int64_t t = from; t < to; ++t) {
        // Vectors may reach past their run: what follows is written later, rows being written in order.
        float* row = out + (c * total + t - k0) * panel;
        const piece_t* piece = pieces + (t - fill0) * count;
        for (int v = 0; v < count; ++v) {
          _mm256_storeu_ps(row + piece[v].column, load_piece(channel, piece + v, step, steps));
        }
        for (int j = cols; j < panel; ++j) row[j] = 0;
      }
    }
  }
}

// ---- one channel per group ------------------------------------------------------------------------------------
// The table of pieces serves all groups: only the base address differs.
static void depthwise_f32(const tn_conv_image_t* m, int64_t first, int cols, int64_t groups,
                          int64_t in_group, const float* weights, int64_t weight_group, float* sums,
                          int64_t sum_row) {
  const int64_t step = m->in_step[TN_CONV_PIXEL_DIMS - 1], total = m->tap_count;
  run_t runs[TN_CONV_DEPTHWISE_COLS];
  int count;
  const int run_count = fill_runs(m, first, cols, runs, &count);
  piece_t pieces[TN_CONV_DEPTHWISE_COLS * TN_CONV_DEPTHWISE_TAPS];
  fill_taps(m, runs, run_count, 0, total, pieces);
  const __m256i steps = lane_steps(step);
  for (int64_t g = 0; g < groups; ++g) {
    const float* in = (const float*)m->in + g * in_group;
    const float* weight = weights + g * weight_group;
    float* sum = sums + g * sum_row;
    int v = 0;
    for (; v + 4 <= count; v += 4) {  // four chains
      __m256 acc[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) acc[i] = _mm256_setzero_ps();
      const piece_t* piece = pieces + v;
      for (int64_t t = 0; t < total; ++t, piece += count) {
        const __m256 w = _mm256_broadcast_ss(weight + t);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          acc[i] = _mm256_fmadd_ps(w, load_piece(in, piece + i, step, steps), acc[i]);
      }
      // In order: what reaches past a run is written later.
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) _mm256_storeu_ps(sum + pieces[v + i].column, acc[i]);
    }
    for (; v < count; ++v) {
      __m256 acc = _mm256_setzero_ps();
      for (int64_t t = 0; t < total; ++t) {
        acc = _mm256_fmadd_ps(_mm256_broadcast_ss(weight + t),
                              load_piece(in, pieces + t * count + v, step, steps), acc);
      }
      _mm256_storeu_ps(sum + pieces[v].column, acc);
    }
  }
}

// ---- vectors along k ---------------------------------------------------------------------------------------------
TN_INLINE void transpose_registers(__m256* r) {
  __m256 t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  __m256 s[8];
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    s[i + 0] = _mm256_shuffle_ps(t[i + 0], t[i + 2], 0x44);
    s[i + 1] = _mm256_shuffle_ps(t[i + 0], t[i + 2], 0xee);
    s[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    s[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(s[i], s[i + 4], 0x31);
  }
}

typedef struct lane_pixel {
  int64_t base, on_axis[TN_CONV_AXES];
} lane_pixel_t;

// 8 pixels (fewer at the end: the rest repeats the last, into columns nobody reads, or padding).
static void pack_8_channels(const tn_conv_image_t* m, const lane_pixel_t* pixels, int64_t k0,
                            int64_t depth, int panel, float* out) {
  const int64_t total = m->tap_count;
  int64_t tap[TN_CONV_AXES] = {0};
  for (int64_t t = 0; t < total; ++t) {
    const int64_t c_begin = k0 <= t ? 0 : (k0 - t + total - 1) / total,
                  c_end = (k0 + depth - t + total - 1) / total;
    const float* from[8];
    int high[8];
    for (int p = 0; p < 8; ++p) {
      int64_t offset = pixels[p].base;
      high[p] = 8;
      for (int a = 0; a < TN_CONV_AXES; ++a) {
        const int64_t shift = tap[a] * m->axes[a].tap_step;
        if (!is_inside(m, a, pixels[p].on_axis[a] + shift)) high[p] = 0;
        offset += shift * m->axes[a].in_stride;
      }
      from[p] = (const float*)m->in + offset;
    }
    for (int64_t c = c_begin; c < c_end; c += 8) {
      const int count = (int)(c_end - c < 8 ? c_end - c : 8);
      __m256 r[8];
#pragma GCC unroll 8
      for (int p = 0; p < 8; ++p)
        r[p] = load_part(from[p] + c, 1, 0, high[p] < count ? high[p] : count);
      transpose_registers(r);
      float* row = out + (c * total + t - k0) * panel;
      if (count == 8) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) _mm256_storeu_ps(row + i * total * panel, r[i]);
      } else {
        for (int i = 0; i < count; ++i) _mm256_storeu_ps(row + i * total * panel, r[i]);
      }
    }
    int a = TN_CONV_AXES - 1;
    while (a >= 0 && ++tap[a] == m->axes[a].taps) tap[a--] = 0;
  }
}

// The innermost axis has many taps (gradients of weights): vectors of 8 taps.
static void pack_8_taps(const tn_conv_image_t* m, const lane_pixel_t* pixels, int64_t k0,
                        int64_t depth, int panel, float* out) {
  const tn_conv_axis_t* axis = &m->axes[TN_CONV_AXES - 1];
  const int64_t step = axis->tap_step * axis->in_stride;
  int64_t low_tap[8], high_tap[8];  // taps inside, per pixel
  for (int p = 0; p < 8; ++p) {
    low_tap[p] = ceil_div(-pixels[p].on_axis[2], axis->tap_step);
    high_tap[p] = ceil_div(axis->in_extent - pixels[p].on_axis[2], axis->tap_step);
  }
  int64_t k = k0;
  while (k < k0 + depth) {
    int64_t tap[TN_CONV_AXES];
    tap_of(m, k % m->tap_count, tap);
    const int64_t end = k + axis->taps - tap[2] < k0 + depth ? k + axis->taps - tap[2] : k0 + depth;
    const float* from[8];
    bool inside[8];
    for (int p = 0; p < 8; ++p) {
      int64_t offset = pixels[p].base + k / m->tap_count * m->in_channel;
      inside[p] = true;
      for (int a = 0; a < TN_CONV_AXES - 1; ++a) {
        const int64_t shift = tap[a] * m->axes[a].tap_step;
        inside[p] = inside[p] && is_inside(m, a, pixels[p].on_axis[a] + shift);
        offset += shift * m->axes[a].in_stride;
      }
      from[p] = (const float*)m->in + offset;
    }
    for (int64_t t = tap[2]; k < end; t += 8, k += 8) {
      const int64_t count = end - k < 8 ? end - k : 8;
      __m256 r[8];
#pragma GCC unroll 8
      for (int p = 0; p < 8; ++p) {
        int high = inside[p] ? clamp_8(high_tap[p] - t) : 0;
        if (high > count) high = (int)count;
        r[p] = load_part(from[p] + t * step, step, clamp_8(low_tap[p] - t), high);
      }
      transpose_registers(r);
      // Rows past |end| are written later, in order.
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) _mm256_storeu_ps(out + (k - k0 + i) * panel, r[i]);
    }
    k = end;
  }
}

static void pack_f32(const tn_conv_image_t* m, int64_t first, int64_t cols, int64_t k0,
                     int64_t depth, int panel, float* out) {
  const int inner = TN_CONV_PIXEL_DIMS - 1;
  const bool runs_are_long =
      m->in_step[inner] == 1 && (m->extent[inner] >= 6 || m->extent[inner] >= cols);
  const bool along_channels = !runs_are_long && m->in_channel == 1 && m->channels >= 6;
  const bool along_taps = !runs_are_long && !along_channels && m->axes[2].taps >= 6;
  for (int64_t j0 = 0; j0 < cols; j0 += panel, out += depth * panel) {
    const int width = (int)(cols - j0 < panel ? cols - j0 : panel);
    if (!along_channels && !along_taps) {
      pack_panel_pixels(m, first + j0, width, k0, depth, panel, out);
      continue;
    }
    position_t position = position_of(m, first + j0);
    for (int j = 0; j < panel; j += 8) {
      if (j >= width) {
        for (int64_t k = 0; k < depth; ++k)
          _mm256_storeu_ps(out + k * panel + j, _mm256_setzero_ps());
        continue;
      }
      lane_pixel_t pixels[8];
      for (int p = 0; p < 8; ++p) {
        pixels[p].base = pixel_offset(m, &position, pixels[p].on_axis);
        if (j + p + 1 < width) position_advance(m, &position);
      }
      if (along_channels) {
        pack_8_channels(m, pixels, k0, depth, panel, out + j);
      } else {
        pack_8_taps(m, pixels, k0, depth, panel, out + j);
      }
    }
  }
}
#endif

const tn_conv_table_t TN_ISA_NAME(tn_conv_table) = {
    .pack_f32 = PACK_F32, .pack_f64 = pack_f64, .depthwise_f32 = DEPTHWISE_F32, .widen = widen};
