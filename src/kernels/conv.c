#include "kernels/conv.h"

#include "kernels/conv_plan.h"

TN_ISA_TABLES(tn_gemm_table_t, tn_gemm_table)
TN_ISA_TABLES(tn_conv_table_t, tn_conv_table)

typedef struct tn_conv_state {
  const tn_conv_plan_t* plan;
  const tn_gemm_table_t* gemm;
  const tn_conv_table_t* table;
  tn_conv_part_t part;
  const char* in;        // f32 copy, or the input itself
  const char* original;  // input before widening
  const tn_convolve_t* source;
  char *weights, *slice_sums, *per_thread;
} tn_conv_state_t;

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- input to f32 ----------------------------------------------------------------------------------------------
// Task: one line of the input along its fastest dimension in the copy, for every (batch, group, others).
static void widen_lines(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const tn_conv_state_t* s = context;
  const tn_convolve_t *to = &s->plan->g, *from = s->source;
  const bool channels_last = to->in_channel == 1 && to->in_channels > 1;
  const int64_t* d = to->in_dims;
  for (int64_t task = begin; task < end; ++task) {
    int64_t rest = task, source = 0, copy = 0;
    const int64_t dims[] = {d[1], d[0], channels_last ? d[2] : to->in_channels, to->groups,
                            to->batch};
    const int64_t steps[] = {from->in_strides[1], from->in_strides[0],
                             channels_last ? from->in_strides[2] : from->in_channel, from->in_group,
                             from->in_batch};
    const int64_t copy_steps[] = {to->in_strides[1], to->in_strides[0],
                                  channels_last ? to->in_strides[2] : to->in_channel, to->in_group,
                                  to->in_batch};
    for (int i = 0; i < 5; ++i) {
      const int64_t at = rest % dims[i];
      rest /= dims[i];
      source += at * steps[i];
      copy += at * copy_steps[i];
    }
    s->table->widen(to->dtype, s->original + source * 2,
                    channels_last ? from->in_channel : from->in_strides[2], (float*)s->in + copy,
                    channels_last ? to->in_channels : d[2]);
  }
}

// ---- weights -----------------------------------------------------------------------------------------------------
// Where k lies in the weights, and how many following k lie on the same line |step| apart.
static int64_t weight_run(const tn_conv_state_t* s, int64_t k, int64_t* step, int64_t* length) {
  const tn_conv_image_t* m = &s->part.image;
  const tn_convolve_t* g = &s->plan->g;
  int64_t tap = k % m->tap_count, offset = k / m->tap_count * g->weight_in;
  int64_t run = 1, left = 1;  // elements on the line so far, and of them from k on
  *step = 0;
  bool is_line = true;
  for (int a = TN_CONV_AXES - 1; a >= 0; --a) {
    const tn_conv_axis_t* axis = &m->axes[a];
    const int64_t at = tap % axis->taps;
    tap /= axis->taps;
    offset += axis->weight_start + at * axis->weight_step;
    if (!is_line || axis->taps == 1) continue;
    if (run == 1) *step = axis->weight_step;
    if (run > 1 && axis->weight_step != *step * run) {
      is_line = false;
    } else {
      left += (axis->taps - 1 - at) * run;
      run *= axis->taps;
    }
  }
  if (is_line && (run == 1 || g->weight_in == *step * run)) {
    if (run == 1) *step = g->weight_in;
    left += (m->channels - 1 - k / m->tap_count) * run;
  }
  *length = left;
  return offset;
}

static char* weight_region(const tn_conv_state_t* s, int64_t group, int64_t row_block,
                           int64_t k_block) {
  const int64_t blocks = (s->plan->max_k + TN_GEMM_BLOCK - 1) / TN_GEMM_BLOCK;
  return s->weights + (size_t)((group * s->plan->row_blocks + row_block) * blocks + k_block) *
                          s->plan->weight_region;
}

// Task: one (group, block of rows, block of k), packed as tiles of A.
static void pack_weights(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const tn_conv_state_t* s = context;
  const tn_conv_plan_t* p = s->plan;
  const tn_convolve_t* g = &p->g;
  const size_t in_size = tn_dtype_size(g->dtype), element = (size_t)p->element;
  const int64_t k_blocks = (s->part.k + TN_GEMM_BLOCK - 1) / TN_GEMM_BLOCK;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t k_block = task % k_blocks, row_block = task / k_blocks % p->row_blocks;
    const int64_t group = task / k_blocks / p->row_blocks;
    const int64_t rows = min_i64(p->block_rows, g->out_channels - row_block * p->block_rows);
    const int64_t k0 = k_block * TN_GEMM_BLOCK, k1 = min_i64(s->part.k, k0 + TN_GEMM_BLOCK);
    const char* weight =
        (const char*)g->weight +
        (group * g->weight_group + row_block * p->block_rows * g->weight_out) * (int64_t)in_size;
    char* out = weight_region(s, group, row_block, k_block);
    const tn_gemm_tiles_t tiles = tn_gemm_tiles(rows);
    for (int64_t t = 0; t < tiles.count; ++t) {
      const int64_t start = tn_gemm_tile_start(tiles, t), height = tiles.base + (t < tiles.extra);
      for (int64_t k = k0; k < k1;) {
        int64_t step, length;
        const int64_t offset = weight_run(s, k, &step, &length) + start * g->weight_out;
        if (length > k1 - k) length = k1 - k;
        s->gemm->pack_a(g->dtype, weight + offset * (int64_t)in_size, g->weight_out, step, height,
                        length, out);
        out += (size_t)(length * height) * element;
        k += length;
      }
    }
  }
}

// ---- products -----------------------------------------------------------------------------------------------------
static tn_gemm_finish_t finish_of(const tn_conv_state_t* s, int64_t group, int64_t row) {
  const tn_convolve_t* g = &s->plan->g;
  const int64_t size = (int64_t)tn_dtype_size(g->out_dtype);
  tn_gemm_finish_t f = {.dtype = g->out_dtype, .activation = g->activation, .alpha = 1.0f};
  f.out = (char*)g->out + (s->part.out_offset + group * g->out_group + row * g->out_channel) * size;
  f.out_row = g->out_channel;
  f.out_col = s->part.image.out_step[TN_CONV_PIXEL_DIMS - 1];
  if (g->bias) {
    f.row_bias = (const char*)g->bias + (group * g->bias_group + row * g->bias_stride) * size;
    f.row_bias_stride = g->bias_stride;
  }
  return f;
}

// Finishes [rows, cols] sums of pixels from |first| on, in runs of pixels that lie on one line of the result.
static void finish_pixels(const tn_conv_state_t* s, const tn_gemm_finish_t* finish, const char* sum,
                          int64_t sum_row, int64_t rows, int64_t first, int64_t cols) {
  const tn_conv_image_t* m = &s->part.image;
  const int64_t size = (int64_t)tn_dtype_size(s->plan->g.out_dtype);
  int line = TN_CONV_PIXEL_DIMS - 1;  // dimensions from here on are one line
  int64_t line_length = m->extent[line];
  while (line > 0 &&
         (m->extent[line - 1] == 1 || m->out_step[line - 1] == finish->out_col * line_length)) {
    line_length *= m->extent[--line];
  }
  for (int64_t done = 0; done < cols;) {
    const int64_t pixel = first + done,
                  count = min_i64(line_length - pixel % line_length, cols - done);
    int64_t rest = pixel / line_length, offset = pixel % line_length * finish->out_col;
    for (int d = line - 1; d >= 0; --d) {
      offset += rest % m->extent[d] * m->out_step[d];
      rest /= m->extent[d];
    }
    tn_gemm_finish_t part = *finish;
    part.out = (char*)finish->out + offset * size;
    const char* from = sum + done * s->plan->element;
    if (s->plan->element == 8) {
      s->gemm->finish_f64(&part, (const double*)from, sum_row, rows, count);
    } else {
      s->gemm->finish_f32(&part, (const float*)from, sum_row, rows, count);
    }
    done += count;
  }
}

// Task: (group, block of rows, slice, block of pixels).
static void run_tasks(void* context, int64_t begin, int64_t end, int worker) {
  const tn_conv_state_t* s = context;
  const tn_conv_plan_t* p = s->plan;
  const tn_convolve_t* g = &p->g;
  const tn_conv_part_t* part = &s->part;
  const size_t element = (size_t)p->element;
  char* b_packed = s->per_thread + (size_t)worker * (p->b_size + p->sum_size);
  char* sums = b_packed + p->b_size;
  const int64_t col_blocks = (part->pixels + p->block_cols - 1) / p->block_cols;
  for (int64_t task = begin; task < end; ++task) {
    int64_t rest = task;
    const int64_t col = rest % col_blocks * p->block_cols;
    rest /= col_blocks;
    const int64_t slice = rest % part->slices;
    rest /= part->slices;
    const int64_t row_block = rest % p->row_blocks, row = row_block * p->block_rows,
                  group = rest / p->row_blocks;
    tn_conv_image_t image = part->image;
    image.in = s->in + group * g->in_group * p->element;
    tn_gemm_block_t block = {.rows = min_i64(p->block_rows, g->out_channels - row),
                             .cols = min_i64(p->block_cols, part->pixels - col),
                             .panel = p->panel,
                             .b_row = p->panel,
                             .b_is_padded = true,
                             .a_row = 1,
                             .sum = sums,
                             .sum_row = p->block_cols};
    if (part->slices > 1) {
      const int64_t at = ((slice * g->groups + group) * g->out_channels + row) * part->pixels + col;
      block.sum = s->slice_sums + (size_t)at * element;
      block.sum_row = part->pixels;
    }
    const int64_t k_begin = slice * part->slice_length,
                  k_end = min_i64(part->k, k_begin + part->slice_length);
    int64_t k = k_begin;
    do {
      block.depth = min_i64(TN_GEMM_BLOCK, k_end - k);
      block.a = weight_region(s, group, row_block, k / TN_GEMM_BLOCK);
      block.a_tile = block.depth;
      block.b = b_packed;
      block.b_panel = block.depth * p->panel;
      block.accumulate = k > k_begin;
      if (p->element == 8) {
        if (block.depth)
          s->table->pack_f64(&image, col, block.cols, k, block.depth, p->panel, (double*)b_packed);
        s->gemm->block_f64(&block);
      } else {
        if (block.depth)
          s->table->pack_f32(&image, col, block.cols, k, block.depth, p->panel, (float*)b_packed);
        s->gemm->block_f32(&block);
      }
      k += block.depth;
    } while (k < k_end);
    if (part->slices > 1) continue;
    const tn_gemm_finish_t finish = finish_of(s, group, row);
    finish_pixels(s, &finish, sums, p->block_cols, block.rows, col, block.cols);
  }
}

// Task: (block of groups, block of pixels) of a depthwise convolution.
static void run_depthwise(void* context, int64_t begin, int64_t end, int worker) {
  const tn_conv_state_t* s = context;
  const tn_conv_plan_t* p = s->plan;
  const tn_convolve_t* g = &p->g;
  enum { ROW = TN_CONV_DEPTHWISE_COLS + 8 };
  float* sums = (float*)(s->per_thread + (size_t)worker * (p->b_size + p->sum_size));
  const int64_t col_blocks = (s->part.pixels + TN_CONV_DEPTHWISE_COLS - 1) / TN_CONV_DEPTHWISE_COLS;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t col = task % col_blocks * TN_CONV_DEPTHWISE_COLS,
                  group = task / col_blocks * TN_CONV_DEPTHWISE_GROUPS;
    const int64_t cols = min_i64(TN_CONV_DEPTHWISE_COLS, s->part.pixels - col);
    const int64_t groups = min_i64(TN_CONV_DEPTHWISE_GROUPS, g->groups - group);
    tn_conv_image_t image = s->part.image;
    image.in = s->in + group * g->in_group * p->element;
    s->table->depthwise_f32(&image, col, (int)cols, groups, g->in_group,
                            (const float*)weight_region(s, group, 0, 0),
                            (int64_t)(p->weight_region / sizeof(float)), sums, ROW);
    tn_gemm_finish_t finish = finish_of(s, group, 0);
    finish.out_row = g->out_group;
    finish.row_bias_stride = g->bias_group;
    finish_pixels(s, &finish, (const char*)sums, ROW, groups, col, cols);
  }
}

// Task: one (group, out channel): adds its slices in order.
static void combine_slices(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const tn_conv_state_t* s = context;
  const tn_convolve_t* g = &s->plan->g;
  const int64_t pixels = s->part.pixels, total = g->groups * g->out_channels * pixels;
  for (int64_t task = begin; task < end; ++task) {
    char* sum = s->slice_sums + (size_t)(task * pixels) * (size_t)s->plan->element;
    for (int64_t slice = 1; slice < s->part.slices; ++slice) {
      if (s->plan->element == 8) {
        double* to = (double*)sum;
        for (int64_t i = 0; i < pixels; ++i) to[i] += to[slice * total + i];
      } else {
        float* to = (float*)sum;
        for (int64_t i = 0; i < pixels; ++i) to[i] += to[slice * total + i];
      }
    }
    const tn_gemm_finish_t finish = finish_of(s, task / g->out_channels, task % g->out_channels);
    finish_pixels(s, &finish, sum, pixels, 1, 0, pixels);
  }
}

// ---- entry points -----------------------------------------------------------------------------------------------
bool tn_conv_supports(tn_dtype_t dtype, tn_dtype_t out_dtype) {
  return (dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16) &&
         tn_gemm_supports(dtype, out_dtype);
}

size_t tn_conv_workspace(const tn_convolve_t* conv, int thread_count) {
  tn_conv_plan_t p;
  tn_conv_plan(conv, thread_count, TN_ISA_PICK(tn_gemm_table), TN_ISA_PICK(tn_conv_table), &p);
  if (p.is_gemm) return tn_gemm_workspace(&p.gemm, thread_count);
  return p.input_size + p.weight_size + p.slice_size +
         (p.b_size + p.sum_size) * (size_t)thread_count;
}

void tn_conv_run(const tn_convolve_t* conv, tn_pool_t* pool, void* workspace) {
  tn_conv_plan_t p;
  tn_conv_state_t s = {.plan = &p,
                       .gemm = TN_ISA_PICK(tn_gemm_table),
                       .table = TN_ISA_PICK(tn_conv_table),
                       .in = conv->in,
                       .original = conv->in};
  tn_conv_plan(conv, pool ? tn_pool_thread_count(pool) : 1, s.gemm, s.table, &p);
  if (p.is_gemm) {
    tn_gemm_run(&p.gemm, pool, workspace);
    return;
  }
  if (p.residues == 0) return;
  const tn_convolve_t* g = &p.g;
  s.weights = (char*)workspace + p.input_size;
  s.slice_sums = s.weights + p.weight_size;
  s.per_thread = s.slice_sums + p.slice_size;
  if (p.widens) {
    // The source with the axes of the normal form.
    tn_convolve_t source = *conv;
    for (int a = TN_CONV_AXES - 1; a >= 0; --a) {
      const int from = a - (TN_CONV_AXES - conv->spatial);
      source.in_strides[a] = from >= 0 ? conv->in_strides[from] : 0;
    }
    s.source = &source;
    s.in = workspace;
    const bool channels_last = g->in_channel == 1 && g->in_channels > 1;
    const int64_t line = channels_last ? g->in_channels : g->in_dims[2];
    int64_t lines = g->batch * g->groups * g->in_dims[0] * g->in_dims[1];
    lines *= channels_last ? g->in_dims[2] : g->in_channels;
    if (line > 0) tn_pool_run(pool, lines, 16384 / line + 1, widen_lines, &s);
  }
  for (int64_t r = 0; r < p.residues; ++r) {
    tn_conv_part(&p, r, &s.part);
    if (s.part.pixels == 0) continue;
    const int64_t k_blocks = (s.part.k + TN_GEMM_BLOCK - 1) / TN_GEMM_BLOCK;
    const int64_t packs = g->groups * p.row_blocks * k_blocks;
    const double pack_cost = (double)(g->groups * g->out_channels * s.part.k);
    const double flops = 2.0 * pack_cost * (double)s.part.pixels;
    tn_pool_t* task_pool = flops < 3e5 ? NULL : pool;
    tn_pool_run(pack_cost < 2e4 ? NULL : pool, packs,
                pack_cost / (double)(packs + 1) < 8192 ? 4 : 1, pack_weights, &s);
    if (p.is_depthwise && s.part.k > 0) {
      const int64_t blocks =
          (s.part.pixels + TN_CONV_DEPTHWISE_COLS - 1) / TN_CONV_DEPTHWISE_COLS *
          ((g->groups + TN_CONV_DEPTHWISE_GROUPS - 1) / TN_CONV_DEPTHWISE_GROUPS);
      tn_pool_run(task_pool, blocks, 1, run_depthwise, &s);
      continue;
    }
    const int64_t tasks = g->groups * p.row_blocks * s.part.slices *
                          ((s.part.pixels + p.block_cols - 1) / p.block_cols);
    const double task_flops = flops / (double)tasks + 1;
    tn_pool_run(task_pool, tasks, task_flops > 2e5 ? 1 : (int64_t)(2e5 / task_flops) + 1, run_tasks,
                &s);
    if (s.part.slices > 1)
      tn_pool_run(task_pool, g->groups * g->out_channels, 1, combine_slices, &s);
  }
}

tn_convolve_t tn_conv_backward_data(const tn_convolve_t* f, const void* grad_out, void* grad_in) {
  tn_convolve_t g = *f;
  g.out_dtype = f->dtype;
  g.in_channels = f->out_channels;
  g.out_channels = f->in_channels;
  g.in = grad_out;
  g.in_batch = f->out_batch;
  g.in_group = f->out_group;
  g.in_channel = f->out_channel;
  g.out = grad_in;
  g.out_batch = f->in_batch;
  g.out_group = f->in_group;
  g.out_channel = f->in_channel;
  g.weight_out = f->weight_in;
  g.weight_in = f->weight_out;
  int64_t last_tap = 0;
  for (int a = 0; a < f->spatial; ++a) {
    g.in_dims[a] = f->out_dims[a];
    g.out_dims[a] = f->in_dims[a];
    g.in_strides[a] = f->out_strides[a];
    g.out_strides[a] = f->in_strides[a];
    g.stride[a] = f->in_dilation[a];
    g.in_dilation[a] = f->stride[a];
    g.low[a] = f->dilation[a] * (f->kernel[a] - 1) - f->low[a];
    g.weight_strides[a] = -f->weight_strides[a];
    last_tap += (f->kernel[a] - 1) * f->weight_strides[a];
  }
  g.weight = (const char*)f->weight + last_tap * (int64_t)tn_dtype_size(f->dtype);
  g.bias = NULL;
  g.activation = TN_ACTIVATION_NONE;
  return g;
}

tn_convolve_t tn_conv_backward_weight(const tn_convolve_t* f, const void* grad_out,
                                      void* grad_weight) {
  tn_convolve_t g = *f;
  g.out_dtype = f->dtype;
  g.batch = f->in_channels;
  g.in_channels = f->batch;
  g.in_batch = f->in_channel;
  g.in_channel = f->in_batch;
  g.weight = grad_out;
  g.weight_group = f->out_group;
  g.weight_out = f->out_channel;
  g.weight_in = f->out_batch;
  g.out = grad_weight;
  g.out_batch = f->weight_in;
  g.out_group = f->weight_group;
  g.out_channel = f->weight_out;
  for (int a = 0; a < f->spatial; ++a) {
    g.kernel[a] = f->out_dims[a];
    g.out_dims[a] = f->kernel[a];
    g.stride[a] = f->dilation[a];
    g.dilation[a] = f->stride[a];
    g.weight_strides[a] = f->out_strides[a];
    g.out_strides[a] = f->weight_strides[a];
  }
  g.bias = NULL;
  g.activation = TN_ACTIVATION_NONE;
  return g;
}
