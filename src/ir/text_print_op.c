// Printing one node in StableHLO's pretty form, or in the generic form where the pretty one does not exist.
#include <stdio.h>
#include <string.h>

#include "ir/text_print.h"

#define ADD(...) tn_text_add(printer->text, __VA_ARGS__)

void tn_print_body_name(const tn_node_t* composite, int number, char* buffer, size_t size) {
  snprintf(buffer, size, "%s.body_%d", tn_node_name(composite), number);
}

// ---- pieces -----------------------------------------------------------------------------------------------
static void print_operands(tn_printer_t* printer, const tn_node_t* node) {
  for (int i = 0; i < node->operand_count; ++i) {
    if (i) ADD(", ");
    tn_print_value(printer, node->operands[i]);
  }
}
static void print_type(tn_printer_t* printer, const tn_type_t* type) {
  tn_text_type(printer->text, type);
}

// " : (operand types, |extra|) -> result types"
static void print_signature_with(tn_printer_t* printer, const tn_node_t* node,
                                 const tn_type_t* extra) {
  ADD(" : (");
  for (int i = 0; i < node->operand_count; ++i) {
    if (i) ADD(", ");
    print_type(printer, &node->operands[i]->types[0]);
  }
  if (extra) {
    ADD(", ");
    print_type(printer, extra);
  }
  ADD(node->result_count == 1 ? ") -> " : ") -> (");
  for (int i = 0; i < node->result_count; ++i) {
    if (i) ADD(", ");
    print_type(printer, &node->types[i]);
  }
  if (node->result_count != 1) ADD(")");
}
static void print_signature(tn_printer_t* printer, const tn_node_t* node) {
  print_signature_with(printer, node, NULL);
}

static void print_ints(tn_printer_t* printer, const char* before, const tn_node_t* node,
                       tn_attr_name_t name) {
  int64_t count;
  const int64_t* values = tn_node_ints(node, name, &count);
  ADD("%s[", before);
  tn_text_ints(printer->text, count, values);
  ADD("]");
}
static void print_array(tn_printer_t* printer, const char* before, const tn_node_t* node,
                        tn_attr_name_t name) {
  ADD("%s", before);
  tn_text_attr_value(printer->text, tn_node_attr(node, name));
}
static void print_padding(tn_printer_t* printer, const char* before, const tn_node_t* node) {
  int64_t count;
  const int64_t *low = tn_node_ints(node, TN_ATTR_LOW, &count),
                *high = tn_node_ints(node, TN_ATTR_HIGH, NULL);
  ADD("%s[", before);
  for (int64_t i = 0; i < count; ++i)
    ADD("%s[%lld, %lld]", i ? ", " : "", (long long)low[i], (long long)high[i]);
  ADD("]");
}

// The constant from which a reduction starts, on a line of its own before the reduction's.
static void print_identity(tn_printer_t* printer, const tn_node_t* node, tn_reduce_kind_t kind) {
  tn_type_t type = tn_type_make(node->types[0].dtype, 0, NULL);
  tn_scalar_t value = tn_text_kind_identity(kind, type.dtype);
  ADD("    %%init_%d = stablehlo.constant ", printer->numbers[node->id]);
  tn_text_dense(printer->text, &type, 1, value.bytes);
  ADD(" : ");
  print_type(printer, &type);
  ADD("\n");
}

static void print_head(tn_printer_t* printer, const tn_node_t* node) {
  ADD("    %%%d", printer->numbers[node->id]);
  if (node->op == TN_OP_RNG_BITS || node->result_count > 1) {
    ADD(":%d", node->op == TN_OP_RNG_BITS ? 2 : node->result_count);
  }
  ADD(" = ");
}

// A region that combines its first two arguments: "{ ^bb0(%a: t, %b: t): ... }".
static void print_combiner(tn_printer_t* printer, tn_reduce_kind_t kind, tn_dtype_t dtype) {
  const char* type = tn_dtype_name(dtype);
  ADD("{\n      ^bb0(%%a: tensor<%s>, %%b: tensor<%s>):\n", type, type);
  if (kind == TN_REDUCE_ASSIGN) {
    ADD("        stablehlo.return %%b : tensor<%s>\n    }", type);
  } else {
    ADD("        %%c = %s %%a, %%b : tensor<%s>\n        stablehlo.return %%c : tensor<%s>\n    }",
        tn_op_info(tn_text_kind_op(kind))->name, type, type);
  }
}
// A region that compares its first two arguments; |pairs| pairs of arguments.
static void print_comparator(tn_printer_t* printer, const char* direction, const char* order,
                             int pairs, const tn_node_t* const* operands) {
  const char* first = tn_dtype_name(operands[0]->types[0].dtype);
  ADD("{\n      ^bb0(");
  for (int i = 0; i < pairs; ++i) {
    const char* type = tn_dtype_name(operands[i]->types[0].dtype);
    ADD("%s%%a%d: tensor<%s>, %%b%d: tensor<%s>", i ? ", " : "", i, type, i, type);
  }
  bool is_float = tn_dtype_is_float(operands[0]->types[0].dtype);
  ADD("):\n        %%c = stablehlo.compare %s, %%a0, %%b0%s%s : (tensor<%s>, tensor<%s>) -> "
      "tensor<i1>\n",
      direction, is_float ? ", " : "", is_float ? order : "", first, first);
  ADD("        stablehlo.return %%c : tensor<i1>\n    }");
}

// ---- forms ------------------------------------------------------------------------------------------------
static void print_compare(tn_printer_t* printer, const tn_node_t* node) {
  static const char* const types[] = {"UNSIGNED", "SIGNED", "UNSIGNED", "FLOAT", "FLOAT"};
  ADD("stablehlo.compare %s, ", tn_text_directions.texts[tn_node_int(node, TN_ATTR_DIRECTION, 0)]);
  print_operands(printer, node);
  ADD(", %s", types[tn_dtype_class(node->operands[0]->types[0].dtype)]);
  print_signature(printer, node);
}

static void print_slice(tn_printer_t* printer, const tn_node_t* node) {
  int64_t count;
  const int64_t *start = tn_node_ints(node, TN_ATTR_START, &count),
                *limit = tn_node_ints(node, TN_ATTR_LIMIT, NULL),
                *stride = tn_node_ints(node, TN_ATTR_STRIDE, NULL);
  ADD("stablehlo.slice ");
  print_operands(printer, node);
  ADD(" [");
  for (int64_t i = 0; i < count; ++i) {
    ADD("%s%lld:%lld", i ? ", " : "", (long long)start[i], (long long)limit[i]);
    if (stride[i] != 1) ADD(":%lld", (long long)stride[i]);
  }
  ADD("]");
  print_signature(printer, node);
}

static void print_index_dims(tn_printer_t* printer, const tn_node_t* node,
                             const char* const* names) {
  static const tn_attr_name_t attrs[] = {TN_ATTR_OFFSET_DIMS, TN_ATTR_COLLAPSED_DIMS,
                                         TN_ATTR_BATCHING_DIMS, TN_ATTR_INDEX_BATCHING_DIMS,
                                         TN_ATTR_INDEX_MAP};
  for (int i = 0; i < 5; ++i) {
    int64_t count;
    tn_node_ints(node, attrs[i], &count);
    if (!count) continue;
    ADD("%s = ", names[i]);
    print_ints(printer, "", node, attrs[i]);
    ADD(", ");
  }
  ADD("index_vector_dim = %lld>", (long long)tn_node_int(node, TN_ATTR_INDEX_VECTOR_DIM, 0));
}
static void print_bounds(tn_printer_t* printer, const tn_node_t* node) {
  int64_t bounds = tn_node_int(node, TN_ATTR_BOUNDS, 0);
  if (bounds != TN_BOUNDS_CLAMP) ADD(" {tn.bounds = \"%s\"}", tn_text_bounds.texts[bounds]);
}
static void print_gather(tn_printer_t* printer, const tn_node_t* node) {
  static const char* const names[] = {"offset_dims", "collapsed_slice_dims",
                                      "operand_batching_dims", "start_indices_batching_dims",
                                      "start_index_map"};
  ADD("\"stablehlo.gather\"(");
  print_operands(printer, node);
  ADD(") <{dimension_numbers = #stablehlo.gather<");
  print_index_dims(printer, node, names);
  print_array(printer, ", slice_sizes = ", node, TN_ATTR_SIZES);
  ADD("}>");
  print_bounds(printer, node);
  print_signature(printer, node);
}
static void print_scatter(tn_printer_t* printer, const tn_node_t* node) {
  static const char* const names[] = {"update_window_dims", "inserted_window_dims",
                                      "input_batching_dims", "scatter_indices_batching_dims",
                                      "scatter_dims_to_operand_dims"};
  ADD("\"stablehlo.scatter\"(");
  print_operands(printer, node);
  ADD(") <{scatter_dimension_numbers = #stablehlo.scatter<");
  print_index_dims(printer, node, names);
  ADD("}> (");
  print_combiner(printer, (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, 0),
                 node->types[0].dtype);
  ADD(")");
  print_bounds(printer, node);
  print_signature(printer, node);
}

static void print_reduce(tn_printer_t* printer, const tn_node_t* node) {
  tn_reduce_kind_t kind = (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, 0);
  tn_type_t init = tn_type_make(node->types[0].dtype, 0, NULL);
  print_identity(printer, node, kind);
  print_head(printer, node);
  ADD("stablehlo.reduce(");
  print_operands(printer, node);
  ADD(" init: %%init_%d) applies %s across dimensions = ", printer->numbers[node->id],
      tn_op_info(tn_text_kind_op(kind))->name);
  print_ints(printer, "", node, TN_ATTR_DIMENSIONS);
  print_signature_with(printer, node, &init);
}

static void print_window(tn_printer_t* printer, const tn_node_t* node) {
  const bool is_grad = node->op == TN_OP_WINDOW_GRAD;
  tn_reduce_kind_t kind = (tn_reduce_kind_t)tn_node_int(node, TN_ATTR_KIND, 0);
  tn_type_t init = tn_type_make(node->types[0].dtype, 0, NULL);
  print_identity(printer, node, is_grad ? TN_REDUCE_SUM : kind);
  print_head(printer, node);
  ADD("\"%s\"(", tn_op_info(node->op)->name);
  print_operands(printer, node);
  ADD(", %%init_%d) <{", printer->numbers[node->id]);
  print_array(printer, "window_dimensions = ", node, TN_ATTR_WINDOW);
  print_array(printer, ", window_strides = ", node, TN_ATTR_STRIDE);
  print_array(printer, ", base_dilations = ", node, TN_ATTR_BASE_DILATION);
  print_array(printer, ", window_dilations = ", node, TN_ATTR_WINDOW_DILATION);
  print_padding(printer, ", padding = dense<", node);
  ADD("> : tensor<%dx2xi64>}> (", node->types[0].rank);
  if (is_grad) {
    print_comparator(printer, kind == TN_REDUCE_MAX ? "GE" : "LE", "FLOAT", 1, node->operands);
    ADD(", ");
    print_combiner(printer, TN_REDUCE_SUM, node->types[0].dtype);
  } else {
    print_combiner(printer, kind, node->types[0].dtype);
  }
  ADD(")");
  print_signature_with(printer, node, &init);
}

static void print_sort(tn_printer_t* printer, const tn_node_t* node) {
  ADD("\"stablehlo.sort\"(");
  print_operands(printer, node);
  ADD(") <{dimension = %lld : i64, is_stable = true}> (",
      (long long)tn_node_int(node, TN_ATTR_DIMENSION, 0));
  print_comparator(printer, tn_node_int(node, TN_ATTR_DESCENDING, 0) ? "GT" : "LT", "TOTALORDER",
                   node->operand_count, node->operands);
  // our order, which StableHLO has no word for: zeros are equal, and so are NaN of either sign
  ADD(")%s", tn_dtype_is_float(node->operands[0]->types[0].dtype) ? " {tn.weak_order}" : "");
  print_signature(printer, node);
}

static void print_dot(tn_printer_t* printer, const tn_node_t* node) {
  int64_t count;
  ADD("stablehlo.dot_general ");
  print_operands(printer, node);
  tn_node_ints(node, TN_ATTR_LHS_BATCH, &count);
  if (count) {
    print_ints(printer, ", batching_dims = ", node, TN_ATTR_LHS_BATCH);
    print_ints(printer, " x ", node, TN_ATTR_RHS_BATCH);
  }
  print_ints(printer, ", contracting_dims = ", node, TN_ATTR_LHS_CONTRACT);
  print_ints(printer, " x ", node, TN_ATTR_RHS_CONTRACT);
  print_signature(printer, node);
}

static void print_convolution(tn_printer_t* printer, const tn_node_t* node) {
  static const char* const spatial[] = {"", "0", "0, 1", "0, 1, 2"};
  const char* dims = spatial[node->types[0].rank - 2];
  ADD("stablehlo.convolution(");
  print_operands(printer, node);
  ADD(") dim_numbers = [b, f, %s]x[o, i, %s]->[b, f, %s], window = {", dims, dims, dims);
  print_ints(printer, "stride = ", node, TN_ATTR_STRIDE);
  print_padding(printer, ", pad = ", node);
  print_ints(printer, ", lhs_dilate = ", node, TN_ATTR_BASE_DILATION);
  print_ints(printer, ", rhs_dilate = ", node, TN_ATTR_WINDOW_DILATION);
  ADD("} {batch_group_count = %lld : i64, feature_group_count = %lld : i64}",
      (long long)tn_node_int(node, TN_ATTR_BATCH_GROUPS, 1),
      (long long)tn_node_int(node, TN_ATTR_GROUPS, 1));
  print_signature(printer, node);
}

static void print_rng(tn_printer_t* printer, const tn_node_t* node) {
  ADD("stablehlo.rng_bit_generator ");
  print_operands(printer, node);
  ADD(", algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, ");
  print_type(printer, &node->types[0]);
  ADD(")");
}

// Attributes from |first| on as "{key = value, ..}".
static void print_dict(tn_printer_t* printer, const tn_node_t* node, int first) {
  ADD("{");
  for (int i = first; i < node->attr_count; ++i) {
    ADD("%s%s = ", i > first ? ", " : "", tn_attr_text(node->attrs[i].name));
    if (node->op != TN_OP_COMPOSITE && node->op != TN_OP_CUSTOM_CALL &&
        node->attrs[i].name == TN_ATTR_KIND) {
      ADD("\"%s\"", tn_text_kinds.texts[node->attrs[i].as.integer]);
    } else {
      tn_text_attr_value(printer->text, &node->attrs[i]);
    }
  }
  ADD("}");
}
static void print_call(tn_printer_t* printer, const tn_node_t* node, const char* name,
                       int first_attr) {
  ADD("stablehlo.custom_call @%s(", name);
  print_operands(printer, node);
  ADD(")");
  if (node->attr_count > first_attr) {
    ADD(" {api_version = 4 : i32, backend_config = ");
    print_dict(printer, node, first_attr);
    ADD("}");
  }
  print_signature(printer, node);
}
static void print_composite(tn_printer_t* printer, const tn_node_t* node) {
  char body[128];
  tn_print_body_name(node, printer->numbers[node->id], body, sizeof body);
  ADD("stablehlo.composite \"tn.%s\" ", tn_node_name(node));
  print_operands(printer, node);
  ADD(" {composite_attributes = ");
  print_dict(printer, node, 1);
  ADD(", decomposition = @%s}", body);
  print_signature(printer, node);
}

// "op %a, %b, key = [..] : (types) -> type"
static void print_plain(tn_printer_t* printer, const tn_node_t* node, bool has_signature) {
  ADD("%s ", tn_op_info(node->op)->name);
  print_operands(printer, node);
  switch (node->op) {
    case TN_OP_BROADCAST_IN_DIM:
    case TN_OP_TRANSPOSE:
    case TN_OP_REVERSE: print_ints(printer, ", dims = ", node, TN_ATTR_DIMENSIONS); break;
    case TN_OP_PAD:
      print_ints(printer, ", low = ", node, TN_ATTR_LOW);
      print_ints(printer, ", high = ", node, TN_ATTR_HIGH);
      print_ints(printer, ", interior = ", node, TN_ATTR_INTERIOR);
      break;
    case TN_OP_CONCAT:
      ADD(", dim = %lld", (long long)tn_node_int(node, TN_ATTR_DIMENSION, 0));
      break;
    case TN_OP_DYNAMIC_SLICE: print_ints(printer, ", sizes = ", node, TN_ATTR_SIZES); break;
    default: break;
  }
  if (has_signature) {
    print_signature(printer, node);
  } else {
    ADD(" : ");
    print_type(printer, &node->types[0]);
  }
}

// chlo: "op %a, %b : t, t -> t"
static void print_chlo(tn_printer_t* printer, const tn_node_t* node) {
  ADD("%s ", tn_op_info(node->op)->name);
  print_operands(printer, node);
  for (int i = 0; i < node->operand_count; ++i) {
    ADD(i ? ", " : " : ");
    print_type(printer, &node->operands[i]->types[0]);
  }
  ADD(" -> ");
  print_type(printer, &node->types[0]);
}

void tn_print_node(tn_printer_t* printer, const tn_node_t* node) {
  const char* name = tn_op_info(node->op)->name;
  bool has_own_head =
      node->op == TN_OP_REDUCE || node->op == TN_OP_REDUCE_WINDOW || node->op == TN_OP_WINDOW_GRAD;
  if (!has_own_head) print_head(printer, node);
  switch (node->op) {
    case TN_OP_CONST: {
      const tn_attr_t* value = &node->attrs[0];
      int64_t size = (int64_t)tn_dtype_size(node->types[0].dtype);
      ADD("stablehlo.constant ");
      tn_text_dense(printer->text, &node->types[0], value->count / size, value->as.bytes);
      ADD(" : ");
      print_type(printer, &node->types[0]);
      break;
    }
    case TN_OP_IOTA:
      ADD("stablehlo.iota dim = %lld : ", (long long)tn_node_int(node, TN_ATTR_DIMENSION, 0));
      print_type(printer, &node->types[0]);
      break;
    case TN_OP_COMPARE: print_compare(printer, node); break;
    case TN_OP_SELECT:
      ADD("stablehlo.select ");
      print_operands(printer, node);
      ADD(" : ");
      print_type(printer, &node->operands[0]->types[0]);
      ADD(", ");
      print_type(printer, &node->types[0]);
      break;
    case TN_OP_SLICE: print_slice(printer, node); break;
    case TN_OP_GATHER: print_gather(printer, node); break;
    case TN_OP_SCATTER: print_scatter(printer, node); break;
    case TN_OP_REDUCE: print_reduce(printer, node); break;
    case TN_OP_REDUCE_WINDOW:
    case TN_OP_WINDOW_GRAD: print_window(printer, node); break;
    case TN_OP_SORT: print_sort(printer, node); break;
    case TN_OP_DOT_GENERAL: print_dot(printer, node); break;
    case TN_OP_CONVOLUTION: print_convolution(printer, node); break;
    case TN_OP_RNG_BITS: print_rng(printer, node); break;
    case TN_OP_COMPOSITE: print_composite(printer, node); break;
    case TN_OP_CUSTOM_CALL: print_call(printer, node, tn_node_name(node), 1); break;
    case TN_OP_FMA:
    case TN_OP_ARG_REDUCE:
    case TN_OP_SCAN: print_call(printer, node, name, 0); break;
    case TN_OP_TOPK: print_call(printer, node, "tn.top_k", 0); break;
    case TN_OP_BROADCAST_IN_DIM:
    case TN_OP_TRANSPOSE:
    case TN_OP_PAD:
    case TN_OP_CONCAT:
    case TN_OP_DYNAMIC_SLICE:
    case TN_OP_DYNAMIC_UPDATE_SLICE:
    case TN_OP_RESHAPE: print_plain(printer, node, true); break;
    default:
      if (strncmp(name, "chlo.", 5) == 0) {
        print_chlo(printer, node);
      } else {
        // One type where all are equal; complex is written by its result.
        bool is_uniform = tn_type_equal(&node->operands[0]->types[0], &node->types[0]);
        print_plain(printer, node, !is_uniform && node->op != TN_OP_COMPLEX);
      }
  }
  ADD("\n");
}
