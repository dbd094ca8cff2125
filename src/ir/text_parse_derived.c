// StableHLO ops that the graph has no op for, built from those it has.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text_parse.h"

// Limits of the unrolled algorithms.
enum { TN_LARGEST_MATRIX = 256, TN_LONGEST_FFT = 2048 };

// ---- helpers ------------------------------------------------------------------------------------------------
static tn_status_t expect(tn_parser_t* parser, const tn_op_text_t* op, int count, bool is_float) {
  if (op->operand_count != count)
    return TN_OP_TEXT_ERROR(parser, op, "expected %d operands, got %d", count, op->operand_count);
  const tn_dtype_t dtype = op->operands[0]->types[0].dtype;
  if (is_float && !tn_dtype_is_float(dtype)) {
    return TN_OP_TEXT_ERROR(parser, op, "%s is not supported; supported are floats",
                            tn_dtype_name(dtype));
  }
  return TN_OK;
}

static tn_dtype_t op_dtype(const tn_op_text_t* op) {
  return op->operand_count ? op->operands[0]->types[0].dtype : TN_F32;
}

static bool flag_of(const tn_op_text_t* op, const char* key) {
  const tn_value_text_t* value = tn_value_find(&op->attrs, key);
  return value && value->integer;
}

// An integer constant over the shape of |like|.
static const tn_node_t* bits_like(tn_graph_t* graph, const tn_node_t* like, uint64_t value) {
  const tn_type_t* type = &like->types[0];
  return tn_broadcast_to(graph, tn_constant_int(graph, type->dtype, (int64_t)value), type->rank,
                         type->dims);
}

// ---- small ones ---------------------------------------------------------------------------------------------
// "format = e5m10", or the two numbers.
static tn_status_t read_format(tn_parser_t* parser, const tn_op_text_t* op, int64_t* out_exponent,
                               int64_t* out_mantissa) {
  const tn_value_text_t* format = tn_value_find(&op->attrs, "format");
  int exponent = 0, mantissa = -1;
  if (format && format->text && sscanf(format->text, "e%dm%d", &exponent, &mantissa) == 2) {
    *out_exponent = exponent;
    *out_mantissa = mantissa;
  } else {
    TN_TRY(tn_op_text_int(parser, op, "exponent_bits", out_exponent));
    TN_TRY(tn_op_text_int(parser, op, "mantissa_bits", out_mantissa));
  }
  if (*out_exponent < 1 || *out_mantissa < 0)
    return TN_OP_TEXT_ERROR(parser, op, "expected a format such as e5m10");
  return TN_OK;
}

// Rounds the bits to nearest even; what the exponent cannot hold becomes infinity or zero.
tn_status_t tn_parse_build_reduce_precision(tn_parser_t* parser, tn_op_text_t* op) {
  int64_t exponent, mantissa;
  TN_TRY(expect(parser, op, 1, true));
  TN_TRY(read_format(parser, op, &exponent, &mantissa));
  tn_graph_t* graph = parser->graph;
  const tn_dtype_t dtype = op->operands[0]->types[0].dtype;
  const bool is_wide = dtype == TN_F64;
  const tn_node_t* x = tn_convert(graph, op->operands[0], is_wide ? TN_F64 : TN_F32);
  if (!x) return TN_OK;
  const int64_t mantissa_bits = is_wide ? 52 : 23, exponent_bits = is_wide ? 11 : 8;
  const uint64_t sign_bit = UINT64_C(1) << (mantissa_bits + exponent_bits);
  const tn_node_t* bits = tn_bitcast(graph, x, is_wide ? TN_U64 : TN_U32);
  if (!bits) return TN_OK;
  const tn_node_t* sign = tn_binary(graph, TN_OP_AND, bits, bits_like(graph, bits, sign_bit));
  const tn_node_t* size = tn_binary(graph, TN_OP_AND, bits, bits_like(graph, bits, sign_bit - 1));
  if (mantissa < mantissa_bits) {
    const int64_t drop = mantissa_bits - mantissa;
    const tn_node_t* one = bits_like(graph, bits, 1);
    const tn_node_t* odd =
        tn_binary(graph, TN_OP_AND,
                  tn_binary(graph, TN_OP_SHR_L, size, bits_like(graph, bits, (uint64_t)drop)), one);
    const tn_node_t* half = bits_like(graph, bits, (UINT64_C(1) << (drop - 1)) - 1);
    size = tn_binary(graph, TN_OP_ADD, size, tn_binary(graph, TN_OP_ADD, half, odd));
    size = tn_binary(graph, TN_OP_AND, size, bits_like(graph, bits, ~((UINT64_C(1) << drop) - 1)));
  }
  if (exponent < exponent_bits) {
    const int64_t bias = (INT64_C(1) << (exponent_bits - 1)) - 1;
    const int64_t reach = (INT64_C(1) << (exponent - 1)) - 1;
    const uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << mantissa_bits;
    const uint64_t above = (uint64_t)(bias + reach + 1) << mantissa_bits;
    const uint64_t least = (uint64_t)(bias - reach + 1) << mantissa_bits;
    size = tn_select(graph, tn_compare(graph, TN_GE, size, bits_like(graph, bits, above)),
                     bits_like(graph, bits, infinity), size);
    size = tn_select(graph, tn_compare(graph, TN_LT, size, bits_like(graph, bits, least)),
                     bits_like(graph, bits, 0), size);
  }
  const tn_node_t* rounded = tn_binary(graph, TN_OP_OR, sign, size);
  if (!rounded) return TN_OK;
  const tn_node_t* result = tn_select(graph, tn_compare(graph, TN_NE, x, x), x,
                                      tn_bitcast(graph, rounded, x->types[0].dtype));
  if (result) tn_op_text_return(op, parser, tn_convert(graph, result, dtype));
  return TN_OK;
}

tn_status_t tn_parse_build_dimension_size(tn_parser_t* parser, tn_op_text_t* op) {
  const int64_t none = -1;
  int64_t dimension;
  TN_TRY(expect(parser, op, 1, false));
  const tn_value_text_t* value = tn_value_find(&op->attrs, "dim");
  TN_TRY(tn_op_text_ints(parser, op, value ? "dim" : "dimension", 1, &none, &dimension, NULL));
  const tn_type_t* x = &op->operands[0]->types[0];
  if (dimension < 0 || dimension >= x->rank)
    return TN_OP_TEXT_ERROR(parser, op, "dim: expected 0..%d", x->rank - 1);
  tn_op_text_return(op, parser, tn_constant_int(parser->graph, TN_I32, x->dims[dimension]));
  return TN_OK;
}

// ---- batch norm ---------------------------------------------------------------------------------------------
typedef struct tn_norm {
  tn_graph_t* graph;
  tn_type_t type;
  int64_t feature;  // dimension
  int64_t others[TN_MAX_RANK];
  int other_count;
  const tn_node_t* epsilon;  // over the features
  double count;              // of elements per feature
} tn_norm_t;

static tn_status_t read_norm(tn_parser_t* parser, const tn_op_text_t* op, tn_norm_t* out) {
  TN_TRY(tn_op_text_int(parser, op, "feature_index", &out->feature));
  const tn_value_text_t* epsilon = tn_value_find(&op->attrs, "epsilon");
  out->graph = parser->graph;
  out->type = op->operands[0]->types[0];
  if (!epsilon || out->feature < 0 || out->feature >= out->type.rank)
    return TN_OP_TEXT_ERROR(parser, op, "expected epsilon, and feature_index in 0..%d",
                            out->type.rank - 1);
  out->other_count = 0;
  out->count = 1;
  for (int d = 0; d < out->type.rank; ++d) {
    if (d == out->feature) continue;
    out->others[out->other_count++] = d;
    out->count *= (double)out->type.dims[d];
  }
  out->epsilon = tn_constant_like(parser->graph, op->operands[1], epsilon->real);
  return TN_OK;
}
static const tn_node_t* over(const tn_norm_t* norm, const tn_node_t* x) {
  return tn_broadcast_in_dim(norm->graph, x, norm->type.rank, norm->type.dims, &norm->feature);
}
static const tn_node_t* sum(const tn_norm_t* norm, const tn_node_t* x) {
  return tn_reduce(norm->graph, TN_REDUCE_SUM, x, norm->other_count, norm->others);
}
static const tn_node_t* mean(const tn_norm_t* norm, const tn_node_t* x) {
  const tn_node_t* total = sum(norm, x);
  if (!total) return NULL;
  return tn_binary(norm->graph, TN_OP_DIV, total,
                   tn_constant_like(norm->graph, total, norm->count));
}
static const tn_node_t* bin(const tn_norm_t* norm, tn_op_t op, const tn_node_t* x,
                            const tn_node_t* y) {
  return tn_binary(norm->graph, op, x, y);
}

tn_status_t tn_parse_build_batch_norm(tn_parser_t* parser, tn_op_text_t* op) {
  const bool is_training = strcmp(op->name, "stablehlo.batch_norm_training") == 0;
  const bool is_grad = strcmp(op->name, "stablehlo.batch_norm_grad") == 0;
  tn_norm_t norm;
  TN_TRY(expect(parser, op, is_training ? 3 : 5, true));
  TN_TRY(read_norm(parser, op, &norm));
  const tn_node_t *x = op->operands[0], *scale = op->operands[1], *average, *variance;
  const tn_node_t* grad = is_grad ? op->operands[4] : NULL;
  if (is_training) {
    average = mean(&norm, x);
    const tn_node_t* centred = bin(&norm, TN_OP_SUB, x, over(&norm, average));
    variance = mean(&norm, bin(&norm, TN_OP_MUL, centred, centred));
  } else {
    average = op->operands[is_grad ? 2 : 3];
    variance = op->operands[is_grad ? 3 : 4];
  }
  const tn_node_t* centred = bin(&norm, TN_OP_SUB, x, over(&norm, average));
  const tn_node_t* spread = bin(&norm, TN_OP_ADD, variance, norm.epsilon);
  const tn_node_t* deviation = tn_unary(norm.graph, TN_OP_SQRT, spread);
  const tn_node_t* normal = bin(&norm, TN_OP_DIV, centred, over(&norm, deviation));
  if (!is_grad) {
    const tn_node_t* scaled = bin(&norm, TN_OP_MUL, normal, over(&norm, scale));
    tn_op_text_return(op, parser, bin(&norm, TN_OP_ADD, scaled, over(&norm, op->operands[2])));
    if (!is_training) return TN_OK;
    tn_op_text_return(op, parser, average);
    tn_op_text_return(op, parser, variance);
    return TN_OK;
  }
  const tn_node_t* pull = mean(&norm, bin(&norm, TN_OP_MUL, grad, normal));
  const tn_node_t* rest = bin(&norm, TN_OP_SUB, grad, over(&norm, mean(&norm, grad)));
  rest = bin(&norm, TN_OP_SUB, rest, bin(&norm, TN_OP_MUL, normal, over(&norm, pull)));
  const tn_node_t* factor = bin(&norm, TN_OP_DIV, scale, deviation);
  tn_op_text_return(op, parser, bin(&norm, TN_OP_MUL, rest, over(&norm, factor)));
  tn_op_text_return(op, parser, sum(&norm, bin(&norm, TN_OP_MUL, grad, normal)));
  tn_op_text_return(op, parser, sum(&norm, grad));
  return TN_OK;
}

// ---- linear algebra -----------------------------------------------------------------------------------------
static const tn_node_t* swap_last(tn_graph_t* graph, const tn_node_t* x) {
  if (!x) return NULL;
  int64_t order[TN_MAX_RANK];
  const int rank = x->types[0].rank;
  for (int d = 0; d < rank; ++d) order[d] = d;
  order[rank - 2] = rank - 1;
  order[rank - 1] = rank - 2;
  return tn_transpose(graph, x, order);
}

// Row or column |index| (|dimension| counts from the end: 1 or 2), kept as an extent of 1.
static const tn_node_t* line(tn_graph_t* graph, const tn_node_t* x, int dimension, int64_t index) {
  return x ? tn_slice_dim(graph, x, x->types[0].rank - dimension, index, index + 1, 1) : NULL;
}

// |column| [.., n, 1] times |row| [.., 1, m], taken from |x|.
static const tn_node_t* take_outer(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* column,
                                   const tn_node_t* row) {
  if (!x || !column || !row) return NULL;
  const tn_type_t* type = &x->types[0];
  return tn_binary(
      graph, TN_OP_SUB, x,
      tn_binary(graph, TN_OP_MUL, tn_broadcast_to(graph, column, type->rank, type->dims),
                tn_broadcast_to(graph, row, type->rank, type->dims)));
}

static tn_status_t expect_square(tn_parser_t* parser, const tn_op_text_t* op, int64_t* out_size) {
  const tn_type_t* a = &op->operands[0]->types[0];
  if (a->rank < 2 || a->dims[a->rank - 1] != a->dims[a->rank - 2])
    return TN_OP_TEXT_ERROR(parser, op, "expected square matrices");
  *out_size = a->dims[a->rank - 1];
  if (*out_size > TN_LARGEST_MATRIX || *out_size < 1) {
    return TN_OP_TEXT_ERROR(parser, op, "supported are matrices of 1 to %d rows, got %lld",
                            TN_LARGEST_MATRIX, (long long)*out_size);
  }
  return TN_OK;
}

// Column by column; each is taken out of the rest.
tn_status_t tn_parse_build_cholesky(tn_parser_t* parser, tn_op_text_t* op) {
  int64_t size;
  TN_TRY(expect(parser, op, 1, true));
  TN_TRY(expect_square(parser, op, &size));
  tn_graph_t* graph = parser->graph;
  const bool is_lower = flag_of(op, "lower");
  const tn_node_t* a = is_lower ? op->operands[0] : swap_last(graph, op->operands[0]);
  const tn_node_t** columns = TN_ARENA_ARRAY(&parser->arena, const tn_node_t*, size);
  if (!columns) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  for (int64_t k = 0; a && k < size; ++k) {
    const tn_node_t* column = line(graph, a, 1, k);
    if (!column) break;
    tn_type_t type = column->types[0];
    const tn_node_t* root = tn_unary(graph, TN_OP_SQRT, line(graph, column, 2, k));
    if (!root) break;
    root = tn_broadcast_to(graph, root, type.rank, type.dims);
    type.dtype = TN_I32;
    const tn_node_t* row = tn_iota(graph, &type, type.rank - 2);
    if (!row) break;
    const tn_node_t* at = bits_like(graph, row, (uint64_t)k);
    column = tn_select(graph, tn_compare(graph, TN_EQ, row, at), root,
                       tn_binary(graph, TN_OP_DIV, column, root));
    column = tn_select(graph, tn_compare(graph, TN_LT, row, at), tn_constant_like(graph, root, 0),
                       column);
    columns[k] = column;
    a = take_outer(graph, a, column, swap_last(graph, column));
  }
  TN_TRY(tn_graph_status(graph));
  const tn_node_t* lower = tn_concat(graph, (int)size, columns, op->operands[0]->types[0].rank - 1);
  tn_op_text_return(op, parser, is_lower ? lower : swap_last(graph, lower));
  return TN_OK;
}

// Row by row; each solved one is taken out of the rest.
tn_status_t tn_parse_build_triangular_solve(tn_parser_t* parser, tn_op_text_t* op) {
  int64_t size;
  TN_TRY(expect(parser, op, 2, !tn_dtype_is_complex(op_dtype(op))));
  TN_TRY(expect_square(parser, op, &size));
  tn_graph_t* graph = parser->graph;
  const bool is_left = flag_of(op, "left_side"), is_unit = flag_of(op, "unit_diagonal");
  const tn_value_text_t* transpose = tn_value_find(&op->attrs, "transpose_a");
  const bool is_transposed =
      transpose && transpose->text && strcmp(transpose->text, "NO_TRANSPOSE") != 0;
  // x * a = b is solved as a^T * x^T = b^T
  const bool swaps = is_transposed == is_left;
  const bool is_lower = flag_of(op, "lower") != swaps;
  const tn_node_t* a = swaps ? swap_last(graph, op->operands[0]) : op->operands[0];
  if (a && is_transposed && strcmp(transpose->text, "ADJOINT") == 0 &&
      tn_dtype_is_complex(a->types[0].dtype)) {
    const tn_node_t* imag = tn_unary(graph, TN_OP_NEG, tn_unary(graph, TN_OP_IMAG, a));
    a = tn_binary(graph, TN_OP_COMPLEX, tn_unary(graph, TN_OP_REAL, a), imag);
  }
  if (op->operands[1]->types[0].rank != op->operands[0]->types[0].rank)
    return TN_OP_TEXT_ERROR(parser, op, "expected operands of equal rank");
  const tn_node_t* b = is_left ? op->operands[1] : swap_last(graph, op->operands[1]);
  TN_TRY(tn_graph_status(graph));
  const int rank = b->types[0].rank;
  if (b->types[0].dims[rank - 2] != size)
    return TN_OP_TEXT_ERROR(parser, op, "expected %lld rows to solve for", (long long)size);
  const tn_node_t** rows = TN_ARENA_ARRAY(&parser->arena, const tn_node_t*, size);
  if (!rows) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "parse: out of memory");
  for (int64_t n = 0; n < size; ++n) {
    const int64_t k = is_lower ? n : size - 1 - n;
    const tn_node_t *row = line(graph, b, 2, k), *column = line(graph, a, 1, k);
    if (!row || !column) break;
    if (!is_unit) {
      const tn_node_t* pivot = line(graph, column, 2, k);
      if (!pivot) break;
      row =
          tn_binary(graph, TN_OP_DIV, row, tn_broadcast_to(graph, pivot, rank, row->types[0].dims));
    }
    rows[k] = row;
    b = take_outer(graph, b, column, row);
  }
  TN_TRY(tn_graph_status(graph));
  const tn_node_t* x = tn_concat(graph, (int)size, rows, rank - 2);
  tn_op_text_return(op, parser, is_left ? x : swap_last(graph, x));
  return TN_OK;
}

// ---- fft ----------------------------------------------------------------------------------------------------
// |sine| or cosine of 2 pi i j / n as a matrix [rows, columns].
static const tn_node_t* wave(tn_graph_t* graph, tn_dtype_t dtype, int64_t rows, int64_t columns,
                             int64_t n, bool is_sine, double scale) {
  const tn_type_t type = tn_type_make(dtype, 2, (const int64_t[]){rows, columns});
  const size_t size = tn_dtype_size(dtype);
  uint8_t* data = malloc((size_t)(rows * columns) * size + 1);
  if (!data) return tn_graph_fail(graph, TN_ERROR(TN_RESOURCE_EXHAUSTED, "fft: out of memory"));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const double angle = 2 * 3.14159265358979323846 * (double)(i * j % n) / (double)n;
      const double value = scale * (is_sine ? sin(angle) : cos(angle));
      const tn_scalar_t scalar = tn_scalar_from_double(dtype, value);
      memcpy(data + (size_t)(i * columns + j) * size, scalar.bytes, size);
    }
  }
  const tn_node_t* node = tn_constant(graph, &type, data);
  free(data);
  return node;
}

// x [.., n at |axis|, ..] times |matrix| [n, m]: m takes the place of n.
static const tn_node_t* along(tn_graph_t* graph, const tn_node_t* x, const tn_node_t* matrix,
                              int axis) {
  if (!x || !matrix) return NULL;
  const int64_t contracted = axis, first = 0;
  const tn_node_t* product =
      tn_dot_general(graph, x, matrix, 0, NULL, NULL, 1, &contracted, &first, x->types[0].dtype);
  int64_t order[TN_MAX_RANK];
  const int rank = x->types[0].rank;
  for (int d = 0; d < rank; ++d) order[d] = d < axis ? d : d - 1;
  order[axis] = rank - 1;
  return product ? tn_transpose(graph, product, order) : NULL;
}

// One axis of a complex transform; |im| NULL: the input is real.
static void transform(tn_graph_t* graph, const tn_node_t** re, const tn_node_t** im, int axis,
                      int64_t n, int64_t columns, bool is_inverse) {
  const tn_dtype_t dtype = (*re)->types[0].dtype;
  const int64_t rows = (*re)->types[0].dims[axis];
  const double scale = is_inverse ? 1.0 / (double)n : 1.0, turn = is_inverse ? scale : -scale;
  const tn_node_t* cosine = wave(graph, dtype, rows, columns, n, false, scale);
  const tn_node_t* sine = wave(graph, dtype, rows, columns, n, true, turn);
  const tn_node_t* real = along(graph, *re, cosine, axis);
  const tn_node_t* imag = along(graph, *re, sine, axis);
  if (*im) {
    real = tn_binary(graph, TN_OP_SUB, real, along(graph, *im, sine, axis));
    imag = tn_binary(graph, TN_OP_ADD, imag, along(graph, *im, cosine, axis));
  }
  *re = real;
  *im = imag;
}

tn_status_t tn_parse_build_fft(tn_parser_t* parser, tn_op_text_t* op) {
  static const char* const names[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  if (op->operand_count != 1)
    return TN_OP_TEXT_ERROR(parser, op, "expected 1 operand, got %d", op->operand_count);
  int64_t length[3];
  int count, kind = -1;
  const char* pretty = tn_value_find(&op->attrs, "type") ? "type" : "fft_type";
  const tn_value_text_t* type = tn_value_find(&op->attrs, pretty);
  for (int i = 0; type && type->text && i < 4; ++i) {
    if (strcmp(type->text, names[i]) == 0) kind = i;
  }
  const tn_value_text_t* lengths = tn_value_find(&op->attrs, "length");
  if (!lengths) lengths = tn_value_find(&op->attrs, "fft_length");
  if (kind < 0 || !lengths)
    return TN_OP_TEXT_ERROR(parser, op, "expected type = FFT, IFFT, RFFT or IRFFT, and length");
  TN_TRY(tn_value_ints(parser, lengths, 3, length, &count));
  tn_graph_t* graph = parser->graph;
  const tn_node_t* x = op->operands[0];
  const tn_type_t* in = &x->types[0];
  const bool is_real = kind == 2, is_inverse = kind == 1 || kind == 3;
  if (count < 1 || count > in->rank || tn_dtype_is_complex(in->dtype) == is_real ||
      (is_real && in->dtype != TN_F32 && in->dtype != TN_F64)) {
    return TN_OP_TEXT_ERROR(parser, op, "expected %s operand of at least %d dimensions",
                            is_real ? "an f32 or f64" : "a complex", count);
  }
  for (int i = 0; i < count; ++i) {
    const int64_t extent = in->dims[in->rank - count + i];
    const int64_t wanted = kind == 3 && i == count - 1 ? length[i] / 2 + 1 : length[i];
    if (extent != wanted || length[i] < 1 || length[i] > TN_LONGEST_FFT) {
      return TN_OP_TEXT_ERROR(parser, op, "length %d: expected %lld elements, at most %d, got %lld",
                              i, (long long)wanted, TN_LONGEST_FFT, (long long)extent);
    }
  }
  const tn_node_t* re = is_real ? x : tn_unary(graph, TN_OP_REAL, x);
  const tn_node_t* im = is_real ? NULL : tn_unary(graph, TN_OP_IMAG, x);
  const int last = in->rank - 1;
  if (kind == 3) {
    for (int i = 0; re && im && i < count - 1; ++i)
      transform(graph, &re, &im, in->rank - count + i, length[i], length[i], true);
    TN_TRY(tn_graph_status(graph));
    // the other half mirrors the conjugate of the first
    const int64_t n = length[count - 1], half = n / 2 + 1, mirrored = last;
    if (n > half) {
      const tn_node_t* tails[2] = {tn_slice_dim(graph, re, last, 1, 1 + n - half, 1),
                                   tn_slice_dim(graph, im, last, 1, 1 + n - half, 1)};
      for (int i = 0; i < 2; ++i) tails[i] = tn_reverse(graph, tails[i], 1, &mirrored);
      const tn_node_t* res[2] = {re, tails[0]};
      const tn_node_t* ims[2] = {im, tn_unary(graph, TN_OP_NEG, tails[1])};
      re = tn_concat(graph, 2, res, last);
      im = tn_concat(graph, 2, ims, last);
    }
    TN_TRY(tn_graph_status(graph));
    transform(graph, &re, &im, last, n, n, true);
    tn_op_text_return(op, parser, re);
    return TN_OK;
  }
  for (int i = count - 1; re && i >= 0; --i) {
    const int64_t columns = is_real && i == count - 1 ? length[i] / 2 + 1 : length[i];
    transform(graph, &re, &im, in->rank - count + i, length[i], columns, is_inverse);
  }
  tn_op_text_return(op, parser, tn_binary(graph, TN_OP_COMPLEX, re, im));
  return TN_OK;
}
