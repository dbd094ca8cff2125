// Builders of products, convolution and random bits.
#include "ir/graph_internal.h"

const tn_node_t* tn_dot_general(tn_graph_t* graph, const tn_node_t* lhs, const tn_node_t* rhs,
                                int batch_count, const int64_t* lhs_batch, const int64_t* rhs_batch,
                                int contract_count, const int64_t* lhs_contract,
                                const int64_t* rhs_contract, tn_dtype_t dtype) {
  const tn_node_t* operands[2] = {lhs, rhs};
  tn_attr_t attrs[4] = {tn_attr_ints(TN_ATTR_LHS_BATCH, batch_count, lhs_batch),
                        tn_attr_ints(TN_ATTR_RHS_BATCH, batch_count, rhs_batch),
                        tn_attr_ints(TN_ATTR_LHS_CONTRACT, contract_count, lhs_contract),
                        tn_attr_ints(TN_ATTR_RHS_CONTRACT, contract_count, rhs_contract)};
  tn_type_t type;
  type.dtype = dtype;
  return tn_graph_build(graph, TN_OP_DOT_GENERAL, 2, operands, 4, attrs, 1, &type);
}

const tn_node_t* tn_matmul(tn_graph_t* graph, const tn_node_t* lhs, const tn_node_t* rhs) {
  if (!lhs || !rhs)
    return tn_graph_fail(graph, TN_ERROR(TN_INTERNAL, "matmul: an operand is missing"));
  int rank = lhs->types[0].rank;
  if (rank < 2 || rank != rhs->types[0].rank) {
    return tn_graph_fail(
        graph, TN_ERROR(TN_INVALID_ARGUMENT, "matmul: expected equal ranks >= 2, got %d and %d",
                        rank, rhs->types[0].rank));
  }
  int64_t batch[TN_MAX_RANK];
  for (int i = 0; i < rank - 2; ++i) batch[i] = i;
  const int64_t lhs_contract = rank - 1, rhs_contract = rank - 2;
  return tn_dot_general(graph, lhs, rhs, rank - 2, batch, batch, 1, &lhs_contract, &rhs_contract,
                        lhs->types[0].dtype);
}

const tn_node_t* tn_convolution(tn_graph_t* graph, const tn_node_t* lhs, const tn_node_t* rhs,
                                const tn_conv_t* conv) {
  const tn_node_t* operands[2] = {lhs, rhs};
  int64_t spatial = conv->spatial;
  tn_attr_t attrs[7] = {tn_attr_ints(TN_ATTR_STRIDE, spatial, conv->stride),
                        tn_attr_ints(TN_ATTR_LOW, spatial, conv->low),
                        tn_attr_ints(TN_ATTR_HIGH, spatial, conv->high),
                        tn_attr_ints(TN_ATTR_BASE_DILATION, spatial, conv->lhs_dilation),
                        tn_attr_ints(TN_ATTR_WINDOW_DILATION, spatial, conv->rhs_dilation),
                        tn_attr_int(TN_ATTR_GROUPS, conv->groups),
                        tn_attr_int(TN_ATTR_BATCH_GROUPS, conv->batch_groups)};
  tn_type_t type;
  return tn_graph_build(graph, TN_OP_CONVOLUTION, 2, operands, 7, attrs, 1, &type);
}

const tn_node_t* tn_rng_bits(tn_graph_t* graph, const tn_node_t* state, const tn_type_t* type) {
  tn_type_t types[1] = {*type};
  return tn_graph_build(graph, TN_OP_RNG_BITS, 1, &state, 0, NULL, 1, types);
}
