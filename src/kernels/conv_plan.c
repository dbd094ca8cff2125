#include "kernels/conv_plan.h"

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t modulo(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}
static size_t round_64(size_t size) { return (size + 63) & ~(size_t)63; }

int64_t tn_conv_slice_length(int64_t outputs, int64_t k) {
  return tn_gemm_slice_length(TN_F32, outputs, k);
}

// Three axes, the missing ones in front with extent 1.
static tn_convolve_t normalize(const tn_convolve_t* conv) {
  tn_convolve_t g = *conv;
  const int shift = TN_CONV_AXES - conv->spatial;
  g.spatial = TN_CONV_AXES;
  for (int a = TN_CONV_AXES - 1; a >= 0; --a) {
    const int from = a - shift;
    const bool has = from >= 0;
    g.in_dims[a] = has ? conv->in_dims[from] : 1;
    g.kernel[a] = has ? conv->kernel[from] : 1;
    g.out_dims[a] = has ? conv->out_dims[from] : 1;
    g.stride[a] = has ? conv->stride[from] : 1;
    g.low[a] = has ? conv->low[from] : 0;
    g.in_dilation[a] = has ? conv->in_dilation[from] : 1;
    g.dilation[a] = has ? conv->dilation[from] : 1;
    g.in_strides[a] = has ? conv->in_strides[from] : 0;
    g.weight_strides[a] = has ? conv->weight_strides[from] : 0;
    g.out_strides[a] = has ? conv->out_strides[from] : 0;
  }
  return g;
}

// The f32 copy of a 16-bit input keeps channels innermost if they were.
static void plan_widening(tn_conv_plan_t* p) {
  tn_convolve_t* g = &p->g;
  const bool channels_last = g->in_channel == 1 && g->in_channels > 1;
  int64_t size = 1;
  if (channels_last) {
    g->in_channel = 1;
    size = g->in_channels;
  }
  for (int a = TN_CONV_AXES - 1; a >= 0; --a) {
    g->in_strides[a] = size;
    size *= g->in_dims[a];
  }
  if (!channels_last) {
    g->in_channel = size;
    size *= g->in_channels;
  }
  g->in_group = size;
  size *= g->groups;
  g->in_batch = size;
  size *= g->batch;
  p->input_size = round_64((size_t)size * sizeof(float));
}

// One tap, no padding, no holes, and positions that lie on one line: a product per batch and group.
static bool plan_gemm(tn_conv_plan_t* p) {
  const tn_convolve_t* g = &p->g;
  if (g->groups > 1) return false;  // the bias of a product does not follow its batch
  int64_t pixels = 1, in_step = 1, out_step = 1;
  for (int a = TN_CONV_AXES - 1; a >= 0; --a) {
    if (g->kernel[a] != 1 || g->in_dilation[a] != 1 || g->low[a] != 0) return false;
    if ((g->out_dims[a] - 1) * g->stride[a] >= g->in_dims[a]) return false;
    if (g->out_dims[a] == 1) continue;
    if (pixels == 1) {
      in_step = g->in_strides[a] * g->stride[a];
      out_step = g->out_strides[a];
    } else if (g->in_strides[a] * g->stride[a] != in_step * pixels ||
               g->out_strides[a] != out_step * pixels) {
      return false;
    }
    pixels *= g->out_dims[a];
  }
  p->gemm = (tn_gemm_t){.dtype = g->dtype,
                        .out_dtype = g->out_dtype,
                        .batch_rank = 1,
                        .batch_dims = {g->batch},
                        .m = g->out_channels,
                        .n = pixels,
                        .k = g->in_channels,
                        .a = g->weight,
                        .b = g->in,
                        .c = g->out,
                        .a_row = g->weight_out,
                        .a_col = g->weight_in,
                        .b_batch = {g->in_batch},
                        .b_row = g->in_channel,
                        .b_col = in_step,
                        .c_batch = {g->out_batch},
                        .c_row = g->out_channel,
                        .c_col = out_step,
                        .activation = g->activation};
  p->gemm.row_bias = g->bias;
  p->gemm.row_bias_stride =
      g->bias ? g->bias_stride : 1;  // not 0: the plan must not depend on a pointer
  return true;
}

void tn_conv_part(const tn_conv_plan_t* p, int64_t residue, tn_conv_part_t* part) {
  const tn_convolve_t* g = &p->g;
  *part = (tn_conv_part_t){.k = g->in_channels};
  tn_conv_image_t* m = &part->image;
  m->channels = g->in_channels;
  m->in_channel = g->in_channel;
  m->tap_count = 1;
  m->extent[0] = g->batch;
  m->in_step[0] = g->in_batch;
  m->out_step[0] = g->out_batch;
  m->axis[0] = -1;
  for (int a = TN_CONV_AXES - 1; a >= 0; --a) {
    const int64_t holes = g->in_dilation[a], first = residue % p->residue_dims[a];
    residue /= p->residue_dims[a];
    tn_conv_axis_t* axis = &m->axes[a];
    axis->in_extent = g->in_dims[a];
    axis->in_stride = g->in_strides[a];
    axis->step = g->stride[a];
    // Taps t with first * stride + t * dilation - low divisible by holes: every |period|-th from t0 on.
    int64_t t0 = 0, period = 1;
    while (t0 < g->kernel[a] &&
           modulo(first * g->stride[a] + t0 * g->dilation[a] - g->low[a], holes) != 0)
      ++t0;
    while (modulo(period * g->dilation[a], holes) != 0) ++period;
    axis->taps = t0 < g->kernel[a] ? ceil_div(g->kernel[a] - t0, period) : 0;
    axis->start = axis->taps ? (first * g->stride[a] + t0 * g->dilation[a] - g->low[a]) / holes : 0;
    axis->tap_step = period * g->dilation[a] / holes;
    axis->weight_start = t0 * g->weight_strides[a];
    axis->weight_step = period * g->weight_strides[a];
    m->tap_count *= axis->taps;
    m->extent[a + 1] = ceil_div(g->out_dims[a] - first, holes);
    m->in_step[a + 1] = axis->step * axis->in_stride;
    m->out_step[a + 1] = g->out_strides[a] * holes;
    m->axis[a + 1] = a;
    part->out_offset += first * g->out_strides[a];
  }
  // The dimension along which results are nearest in memory goes innermost; the others keep their order.
  int inner = TN_CONV_PIXEL_DIMS - 1;
  for (int d = inner - 1; d >= 0; --d) {
    if (m->extent[d] == 1) continue;
    if (m->extent[inner] == 1 || m->out_step[d] < m->out_step[inner]) inner = d;
  }
  const int64_t extent = m->extent[inner], in_step = m->in_step[inner],
                out_step = m->out_step[inner];
  const int axis = m->axis[inner];
  for (int d = inner; d < TN_CONV_PIXEL_DIMS - 1; ++d) {
    m->extent[d] = m->extent[d + 1];
    m->in_step[d] = m->in_step[d + 1];
    m->out_step[d] = m->out_step[d + 1];
    m->axis[d] = m->axis[d + 1];
  }
  m->extent[TN_CONV_PIXEL_DIMS - 1] = extent;
  m->in_step[TN_CONV_PIXEL_DIMS - 1] = in_step;
  m->out_step[TN_CONV_PIXEL_DIMS - 1] = out_step;
  m->axis[TN_CONV_PIXEL_DIMS - 1] = axis;
  part->pixels = 1;
  for (int d = 0; d < TN_CONV_PIXEL_DIMS; ++d) part->pixels *= m->extent[d];
  part->k = m->channels * m->tap_count;
  part->slice_length = tn_conv_slice_length(part->pixels * g->out_channels * g->groups, part->k);
  part->slices = part->k ? ceil_div(part->k, part->slice_length) : 1;
}

void tn_conv_plan(const tn_convolve_t* conv, int thread_count, const tn_gemm_table_t* table,
                  const tn_conv_table_t* conv_table, tn_conv_plan_t* p) {
  *p = (tn_conv_plan_t){.g = normalize(conv)};
  tn_convolve_t* g = &p->g;
  p->element = g->dtype == TN_F64 ? 8 : 4;
  if (plan_gemm(p)) {
    p->is_gemm = true;
    return;
  }
  p->widens = g->dtype == TN_F16 || g->dtype == TN_BF16;
  if (p->widens) plan_widening(p);
  p->residues = 1;
  for (int a = 0; a < TN_CONV_AXES; ++a) {
    p->residue_dims[a] = max_i64(1, min_i64(g->in_dilation[a], g->out_dims[a]));
    p->residues *= p->residue_dims[a];
  }
  p->slices = 1;
  int64_t slice_sums = 0;
  bool steps_fit = true;  // pixels near enough for 32-bit lane offsets
  for (int64_t r = 0; r < p->residues; ++r) {
    tn_conv_part_t part;
    tn_conv_part(p, r, &part);
    p->max_k = max_i64(p->max_k, part.k);
    const int64_t step = part.image.in_step[TN_CONV_PIXEL_DIMS - 1];
    steps_fit = steps_fit && step < INT32_MAX / 8 && step > INT32_MIN / 8;
    p->max_pixels = max_i64(p->max_pixels, part.pixels);
    if (part.slices > 1) {
      p->slices = max_i64(p->slices, part.slices);
      slice_sums = max_i64(slice_sums, part.slices * part.pixels * g->out_channels * g->groups);
    }
  }
  const int64_t rows = g->out_channels;
  if (rows == 0 || p->max_pixels == 0 || g->groups == 0) {
    p->residues = 0;
    return;
  }
  const int lanes = g->dtype == TN_F64 ? table->lanes_f64 : table->lanes_f32;
  const tn_gemm_tiles_t tiles = tn_gemm_tiles(rows);
  int vectors = table->panel_vectors[tiles.base + (tiles.extra > 0)];
  vectors = (int)min_i64(vectors, ceil_div(p->max_pixels, lanes));
  p->panel = vectors * lanes;
  // Pixels of a task: the packed block (128 KiB at 128) and the sums stay in L2; fewer when tasks are few.
  int64_t cols = rows <= 64 ? 256 : 128;
  cols = ceil_div(cols, p->panel) * p->panel;
  p->block_rows = rows;
  const int64_t enough = thread_count > 1 ? 4 * thread_count : 1;
  while (g->groups * ceil_div(p->max_pixels, cols) * p->slices < enough && cols > 2 * p->panel) {
    cols = ceil_div(cols / 2, p->panel) * p->panel;
  }
  int64_t row_blocks = ceil_div(rows, 1024);
  while (g->groups * ceil_div(p->max_pixels, cols) * p->slices * row_blocks < enough &&
         rows / row_blocks > 24) {
    row_blocks *= 2;
  }
  p->block_cols = cols;
  p->block_rows =
      min_i64(rows, ceil_div(ceil_div(rows, TN_GEMM_TILE_ROWS), row_blocks) * TN_GEMM_TILE_ROWS);
  p->row_blocks = ceil_div(rows, p->block_rows);
  const size_t element = (size_t)p->element;
  p->is_depthwise = conv_table->depthwise_f32 != NULL && p->element == 4 && g->in_channels == 1 &&
                    rows == 1 && g->groups >= 4 && p->slices == 1 && p->max_k > 0 &&
                    p->max_k <= TN_CONV_DEPTHWISE_TAPS && steps_fit;
  if (p->is_depthwise) {
    p->weight_region = (size_t)(p->max_k + TN_GEMM_PACK_SLACK) * element;
    p->weight_size = round_64(p->weight_region * (size_t)g->groups);
    p->sum_size =
        round_64((size_t)TN_CONV_DEPTHWISE_GROUPS * (TN_CONV_DEPTHWISE_COLS + 8) * element);
    return;
  }
  const int64_t k_blocks = max_i64(1, ceil_div(p->max_k, TN_GEMM_BLOCK)),
                depth = min_i64(p->max_k, TN_GEMM_BLOCK);
  p->weight_region = round_64((size_t)(p->block_rows * depth + TN_GEMM_PACK_SLACK) * element);
  p->weight_size = p->weight_region * (size_t)(g->groups * p->row_blocks * k_blocks);
  p->slice_size = round_64((size_t)slice_sums * element);
  p->b_size = round_64((size_t)(cols * depth + tn_conv_pack_slack(p->panel)) * element);
  p->sum_size = round_64((size_t)(p->block_rows * cols) * element);
}
