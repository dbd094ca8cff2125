// Sliding blocks of an image as columns, and back: im2col, col2im.
#include <string.h>

#include "aten/index_util.h"
#include "aten/lowering.h"

// Both spatial dimensions of one call.
typedef struct blocks {
  int64_t size[2], kernel[2], dilation[2], padding[2], stride[2], count[2];
} blocks_t;

static bool two_of(tn_lowering_t* l, int index, int64_t least, int64_t* out) {
  return tn_arg_spatial(l, index, 2, out) && out[0] >= least && out[1] >= least;
}

// kernel_size, dilation, padding, stride from argument |first| on; |size| is set.
static tn_status_t read_blocks(tn_lowering_t* l, int first, blocks_t* b) {
  if (!two_of(l, first, 1, b->kernel) || !two_of(l, first + 1, 1, b->dilation) ||
      !two_of(l, first + 2, 0, b->padding) || !two_of(l, first + 3, 1, b->stride))
    return TN_DECLINE("%s: kernel_size, dilation, padding or stride", l->op->name);
  for (int d = 0; d < 2; ++d) {
    const int64_t room = b->size[d] + 2 * b->padding[d] - b->dilation[d] * (b->kernel[d] - 1) - 1;
    if (b->size[d] < 1 || room < 0)
      return TN_DECLINE("%s: the blocks do not fit into the image", l->op->name);
    b->count[d] = room / b->stride[d] + 1;
  }
  return TN_OK;
}

// Position in the padded image of element |k| of block |o| along dimension |d|: [blocks, kernel]
static const tn_node_t* block_positions(tn_lowering_t* l, const blocks_t* b, int d) {
  const int64_t dims[] = {b->count[d], b->kernel[d]}, total = dims[0] * dims[1];
  int64_t* at = tn_graph_alloc(l->graph, sizeof(*at) * (size_t)total);
  if (!at) return NULL;
  for (int64_t i = 0; i < total; ++i)
    at[i] = i / dims[1] * b->stride[d] + i % dims[1] * b->dilation[d];
  const tn_type_t type = tn_type_make(TN_I64, 2, dims);
  return tn_constant(l->graph, &type, at);
}

static const int64_t to_columns[] = {0, 1, 3, 5, 2, 4}, from_columns[] = {0, 1, 4, 2, 5, 3};

// x [n?, c, h, w], kernel_size, dilation, padding, stride -> [n?, c * kernel elements, blocks]
tn_status_t tn_lower_im2col(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int rank = tn_rank(x);
  if (!x || (rank != 3 && rank != 4) || tn_dim(x, rank - 3) == 0)
    return TN_DECLINE("%s: expected 3 or 4 dimensions", l->op->name);
  blocks_t b = {.size = {tn_dim(x, rank - 2), tn_dim(x, rank - 1)}};
  TN_TRY(read_blocks(l, 1, &b));
  const int64_t images = rank == 4 ? tn_dim(x, 0) : 1, channels = tn_dim(x, rank - 3);
  const int64_t dims[] = {images, channels, b.size[0], b.size[1]};
  const int64_t low[] = {0, 0, b.padding[0], b.padding[1]}, interior[4] = {0};
  const tn_node_t* zero = tn_constant_double(g, tn_dtype_of(x), 0.0);
  const tn_node_t* y = tn_pad(g, tn_reshape(g, x, 4, dims), zero, low, low, interior);
  y = tn_take(g, y, block_positions(l, &b, 0), 2, TN_BOUNDS_CLAMP);  // n, c, oh, kh, w
  y = tn_take(g, y, block_positions(l, &b, 1), 4, TN_BOUNDS_CLAMP);  // n, c, oh, kh, ow, kw
  const int64_t out[] = {images, channels * b.kernel[0] * b.kernel[1], b.count[0] * b.count[1]};
  y = tn_transpose(g, y, to_columns);
  tn_return(l, rank == 4 ? tn_reshape(g, y, 3, out) : tn_reshape(g, y, 2, out + 1));
  return TN_OK;
}

// columns [n?, c * kernel elements, blocks], output_size, kernel_size, dilation, padding, stride -> [n?, c, h, w]
tn_status_t tn_lower_col2im(tn_lowering_t* l) {
  tn_graph_t* g = l->graph;
  const tn_node_t* x = tn_arg_tensor(l, 0);
  const int rank = tn_rank(x);
  blocks_t b = {0};
  if (!x || (rank != 2 && rank != 3) || !two_of(l, 1, 1, b.size))
    return TN_DECLINE("%s: input or output_size", l->op->name);
  TN_TRY(read_blocks(l, 2, &b));
  const int64_t images = rank == 3 ? tn_dim(x, 0) : 1, elements = b.kernel[0] * b.kernel[1];
  const int64_t channels = tn_dim(x, rank - 2) / elements;
  if (channels == 0 || channels * elements != tn_dim(x, rank - 2) ||
      tn_dim(x, rank - 1) != b.count[0] * b.count[1])
    return TN_DECLINE("%s: size of the columns", l->op->name);
  const tn_dtype_t dtype = tn_dtype_of(x), work = tn_opmath_dtype(dtype);
  const int64_t split[] = {images, channels, b.kernel[0], b.kernel[1], b.count[0], b.count[1]};
  const int64_t wide[] = {b.size[0] + 2 * b.padding[0], b.size[1] + 2 * b.padding[1]};
  const tn_node_t* y = tn_reshape(g, tn_convert(g, x, work), 6, split);
  y = tn_transpose(g, y, from_columns);  // n, c, oh, kh, ow, kw
  int64_t dims[] = {images, channels, b.count[0] * b.kernel[0], b.count[1] * b.kernel[1]};
  y = tn_reshape(g, y, 4, dims);
  const tn_reduce_kind_t kind = dtype == TN_BOOL ? TN_REDUCE_OR : TN_REDUCE_SUM;
  for (int d = 1; d >= 0; --d) {
    const int64_t count = dims[2 + d];
    dims[2 + d] = wide[d];
    const tn_type_t type = tn_type_make(work, 4, dims);
    const tn_node_t* zeros = tn_constant_splat(g, &type, (tn_scalar_t){0});
    const tn_node_t* at = tn_reshape(g, block_positions(l, &b, d), 1, &count);
    y = tn_put_rows(l, zeros, at, y, 2 + d, kind, TN_BOUNDS_CLAMP);
  }
  const int64_t start[] = {0, 0, b.padding[0], b.padding[1]}, step[] = {1, 1, 1, 1};
  const int64_t limit[] = {images, channels, b.padding[0] + b.size[0], b.padding[1] + b.size[1]};
  y = tn_convert(g, tn_slice(g, y, start, limit, step), dtype);
  const int64_t out[] = {images, channels, b.size[0], b.size[1]};
  tn_return(l, rank == 3 ? y : tn_reshape(g, y, 3, out + 1));
  return TN_OK;
}
