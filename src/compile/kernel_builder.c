#include "compile/kernel_builder.h"

#include <string.h>

#include "compile/index_map.h"
#include "ir/reduce_order.h"

// A loop's role while building.
enum { LOOP_PARALLEL, LOOP_LEAD, LOOP_TAIL };

typedef struct operand_state {
  tn_kernel_operand_t facts;
  int buffer;
  tn_form_t address;      // elements; INDEX: the value
  const tn_node_t* node;  // an INPUT: whose view it is
} operand_state_t;

typedef struct value_state {
  const tn_node_t* node;
  const tn_index_map_t* map;
  uint8_t phase, inst;
} value_state_t;

// A loop as it was asked for, and the factors it is split into (outermost first): a reshape that cuts through it adds
// a factor, and the build starts again with that many loops in its place.
enum { MAX_FACTORS = 4 };
typedef struct origin_state {
  int factor_count;
  int64_t factor[MAX_FACTORS];
} origin_state_t;

typedef struct builder {
  const tn_kernel_request_t* request;
  tn_space_t space;
  uint8_t role[TN_MAX_LOOPS];
  uint8_t origin_of[TN_MAX_LOOPS], factor_of[TN_MAX_LOOPS];
  origin_state_t origin[TN_MAX_LOOPS];
  int origin_count;
  bool must_restart;
  tn_build_result_t result;
  const tn_node_t* blame;

  operand_state_t operand[TN_KERNEL_OPERANDS];
  int operand_count;
  tn_kernel_scalar_binding_t scalar[TN_KERNEL_SCALARS];
  int scalar_count;
  tn_kernel_inst_t inst[TN_KERNEL_INSTRUCTIONS];
  int inst_count;
  value_state_t value[TN_KERNEL_INSTRUCTIONS];
  int value_count;

  const tn_node_t* reduce;  // the one reduction of this kernel
  int reduce_inst;          // its ACC instruction
  bool is_row;              // its vector loop is reduced
  tn_reduce_cut_t cut;
  const tn_node_t* tail_blame;  // of a tail that does not become one loop
  int64_t cost;
} builder_t;

static int value_of(builder_t* b, const tn_node_t* node, const tn_index_map_t* map, int phase);

static int block_on(builder_t* b, const tn_node_t* node) {
  if (b->result == TN_BUILD_OK) {
    b->result = TN_BUILD_BLOCKED;
    b->blame = node;
  }
  return -1;
}

static int impossible(builder_t* b) {
  if (b->result == TN_BUILD_OK) b->result = TN_BUILD_IMPOSSIBLE;
  return -1;
}

static bool dtype_fits(tn_dtype_t dtype) { return dtype <= TN_F64; }

bool tn_kernel_can_compute(const tn_node_t* node) {
  if (tn_op_info(node->op)->fusion != TN_FUSION_ELEMENTWISE || !dtype_fits(node->types[0].dtype))
    return false;
  if (node->op == TN_OP_REAL || node->op == TN_OP_IMAG || node->op == TN_OP_COMPLEX ||
      node->op == TN_OP_NEXTAFTER)
    return false;
  for (int i = 0; i < node->operand_count; ++i)
    if (!dtype_fits(node->operands[i]->types[0].dtype)) return false;
  return true;
}

// How |node| is cut; see ir/reduce_order.h.
static void find_cut(const tn_node_t* node, tn_reduce_cut_t* out) {
  const tn_type_t* type = &node->operands[0]->types[0];
  int64_t count = 0;
  const int64_t* dims = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
  bool is_reduced[TN_MAX_RANK] = {false};
  for (int64_t k = 0; k < count; ++k) is_reduced[dims[k]] = true;
  int64_t tail = 1, lead = 1;
  bool in_tail = true, has_tail = false;
  for (int d = type->rank - 1; d >= 0; --d) {
    if (type->dims[d] == 1) continue;
    if (!is_reduced[d]) {
      in_tail = false;
    } else if (in_tail) {
      tail *= type->dims[d];
      has_tail = true;
    } else {
      lead *= type->dims[d];
    }
  }
  // A single element has no order: the form is that of the dims, as if they were longer.
  if (lead * tail == 1 && type->rank > 0) has_tail = is_reduced[type->rank - 1];
  out->is_row = has_tail;
  out->length = has_tail ? tail : lead;
  out->block = has_tail ? TN_REDUCE_BLOCK : TN_REDUCE_ROWS;
  out->block_count = has_tail && lead != 1      ? 1
                     : out->length > out->block ? (out->length + out->block - 1) / out->block
                                                : 1;
  out->kind = (uint8_t)tn_node_int(node, TN_ATTR_KIND, 0);
  out->dtype = (uint8_t)tn_dtype_compute(node->types[0].dtype);
}

// Adds a loop of |extent| and lets |form| walk along it with step |step|.
static bool bind_loop(builder_t* b, tn_form_t* form, int64_t extent, int role, int64_t step) {
  if (b->origin_count == TN_MAX_LOOPS) {
    impossible(b);
    return false;
  }
  origin_state_t* origin = &b->origin[b->origin_count];
  if (origin->factor_count == 0) {
    origin->factor_count = 1;
    origin->factor[0] = extent;
  }
  if (b->space.loop_count + origin->factor_count > TN_MAX_LOOPS) {
    impossible(b);
    return false;
  }
  for (int f = origin->factor_count - 1; f >= 0; --f) {
    const int loop = b->space.loop_count + f;
    b->space.extent[loop] = origin->factor[f];
    b->role[loop] = (uint8_t)role;
    b->origin_of[loop] = (uint8_t)b->origin_count;
    b->factor_of[loop] = (uint8_t)f;
    form->coefficient[loop] = step;
    step *= origin->factor[f];
  }
  b->space.loop_count += origin->factor_count;
  ++b->origin_count;
  return true;
}

static int emit(builder_t* b, int op, tn_dtype_t dtype, int phase, int index, int x, int y, int z) {
  if (b->inst_count == TN_KERNEL_INSTRUCTIONS) return impossible(b);
  b->inst[b->inst_count] = (tn_kernel_inst_t){.op = (uint8_t)op,
                                              .dtype = (uint8_t)dtype,
                                              .phase = (uint8_t)phase,
                                              .index = (uint8_t)index,
                                              .a = (uint8_t)x,
                                              .b = (uint8_t)y,
                                              .c = (uint8_t)z};
  return b->inst_count++;
}

static int scalar_value(builder_t* b, int phase, tn_dtype_t dtype, int param, tn_scalar_t value) {
  int k = 0;
  while (k < b->scalar_count &&
         !(b->scalar[k].dtype == dtype && b->scalar[k].param == param &&
           (param >= 0 || !memcmp(&b->scalar[k].value, &value, sizeof(value)))))
    ++k;
  if (k == b->scalar_count) {
    if (k == TN_KERNEL_SCALARS) return impossible(b);
    b->scalar[k].dtype = dtype;
    b->scalar[k].param = param;
    b->scalar[k].value = value;
    ++b->scalar_count;
  }
  return emit(b, TN_KOP_SCALAR, dtype, phase, k, 0, 0, 0);
}

static int find_operand(builder_t* b, int kind, tn_dtype_t dtype, int buffer,
                        const tn_form_t* address) {
  for (int k = 0; k < b->operand_count; ++k) {
    operand_state_t* o = &b->operand[k];
    if (o->facts.kind == kind && o->facts.dtype == dtype && o->buffer == buffer &&
        !memcmp(&o->address, address, sizeof(*address)))
      return k;
  }
  if (b->operand_count == TN_KERNEL_OPERANDS) return impossible(b);
  operand_state_t* o = &b->operand[b->operand_count];
  memset(o, 0, sizeof(*o));
  o->facts.kind = (uint8_t)kind;
  o->facts.dtype = (uint8_t)dtype;
  o->buffer = buffer;
  o->address = *address;
  return b->operand_count++;
}

static void address_of(const tn_plan_view_t* view, const tn_index_map_t* map, tn_form_t* out) {
  memset(out, 0, sizeof(*out));
  out->offset = view->offset;
  for (int d = 0; d < map->rank; ++d) {
    out->offset += map->dim[d].offset * view->strides[d];
    for (int l = 0; l < TN_MAX_LOOPS; ++l)
      out->coefficient[l] += map->dim[d].coefficient[l] * view->strides[d];
  }
}

static int load(builder_t* b, const tn_node_t* node, const tn_plan_view_t* view,
                const tn_index_map_t* map, int phase) {
  tn_form_t address;
  address_of(view, map, &address);
  const int operand = find_operand(b, TN_OPERAND_INPUT, view->type.dtype, view->buffer, &address);
  if (operand < 0) return -1;
  b->operand[operand].node = node;
  b->cost += 1;
  return emit(b, TN_KOP_LOAD, view->type.dtype, phase, operand, 0, 0, 0);
}

static int elementwise(builder_t* b, const tn_node_t* node, const tn_index_map_t* map, int phase) {
  int x[3] = {0, 0, 0};
  for (int i = 0; i < node->operand_count; ++i) {
    // CLAMP and SELECT allow rank-0 bounds and predicates.
    tn_index_map_t scalar_map = {.rank = 0};
    const bool is_scalar = node->operands[i]->types[0].rank == 0 && map->rank != 0;
    x[i] = value_of(b, node->operands[i], is_scalar ? &scalar_map : map, phase);
    if (x[i] < 0) return -1;
  }
  int index = 0;
  if (node->op == TN_OP_COMPARE) index = (int)tn_node_int(node, TN_ATTR_DIRECTION, 0);
  b->cost += tn_op_info(node->op)->is_cheap ? 1 : 10;
  return emit(b, node->op, node->types[0].dtype, phase, index, x[0], x[1], x[2]);
}

// A loop can only be split from the beginning: the build starts again.
static bool request_split(builder_t* b, int loop, int64_t inner) {
  origin_state_t* origin = &b->origin[b->origin_of[loop]];
  if (origin->factor_count == MAX_FACTORS || b->space.loop_count == TN_MAX_LOOPS) return false;
  const int at = b->factor_of[loop];
  for (int f = origin->factor_count; f > at + 1; --f) origin->factor[f] = origin->factor[f - 1];
  origin->factor[at] /= inner;
  origin->factor[at + 1] = inner;
  ++origin->factor_count;
  b->must_restart = true;
  return true;
}

static int movement(builder_t* b, const tn_node_t* node, const tn_index_map_t* map, int phase) {
  tn_index_map_t operand_map;
  int loop = -1;
  int64_t inner = 0;
  if (tn_index_map_operand(node, map, &b->space, &operand_map, &loop, &inner))
    return value_of(b, node->operands[0], &operand_map, phase);
  if (loop >= 0 && request_split(b, loop, inner)) return -1;
  return block_on(b, node->operands[0]);
}

static int iota(builder_t* b, const tn_node_t* node, const tn_index_map_t* map, int phase) {
  const int64_t dim = tn_node_int(node, TN_ATTR_DIMENSION, 0);
  const int operand = find_operand(b, TN_OPERAND_INDEX, TN_I64, -1, &map->dim[dim]);
  if (operand < 0) return -1;
  int value = emit(b, TN_KOP_INDEX, TN_I64, phase, operand, 0, 0, 0);
  if (value >= 0 && node->types[0].dtype != TN_I64)
    value = emit(b, TN_OP_CONVERT, node->types[0].dtype, phase, 0, value, 0, 0);
  return value;
}

// Every loop walks exactly one dimension of the node, so that a reduction can be computed at each point of the loops.
static bool covers_parallel_loops(const builder_t* b, const tn_node_t* node,
                                  const tn_index_map_t* map) {
  int64_t points = 1;
  for (int l = 0; l < b->space.loop_count; ++l) {
    if (b->role[l] != LOOP_PARALLEL || b->space.extent[l] == 1) continue;
    points *= b->space.extent[l];
    bool is_used = false;
    for (int d = 0; d < map->rank; ++d) is_used |= map->dim[d].coefficient[l] != 0;
    if (!is_used) return false;
  }
  return points == tn_type_element_count(&node->types[0]);
}

static int reduction(builder_t* b, const tn_node_t* node, const tn_index_map_t* map) {
  if (b->reduce && b->reduce != node) return block_on(b, node);
  if (b->reduce) return b->reduce_inst;
  if (!covers_parallel_loops(b, node, map) || !dtype_fits(node->types[0].dtype))
    return block_on(b, node);
  const tn_type_t* type = &node->operands[0]->types[0];
  int64_t count = 0;
  const int64_t* dims = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
  b->reduce = node;
  find_cut(node, &b->cut);
  b->is_row = b->cut.is_row;

  tn_index_map_t body_map;
  memset(&body_map, 0, sizeof(body_map));
  // Kept dims come first in the order of the map; reduced dims get loops: lead ones in order, the tail as one.
  bool is_reduced[TN_MAX_RANK] = {false}, is_tail[TN_MAX_RANK] = {false};
  for (int64_t k = 0; k < count; ++k) is_reduced[dims[k]] = true;
  if (b->is_row) {
    for (int d = type->rank - 1; d >= 0; --d) {
      if (is_reduced[d]) {
        is_tail[d] = true;
      } else if (type->dims[d] != 1) {
        break;
      }
    }
  }
  int64_t tail = 1;
  int tail_count = 0;
  for (int d = 0; d < type->rank; ++d)
    if (is_tail[d]) {
      tail *= type->dims[d];
      ++tail_count;
    }
  const tn_node_t* x = node->operands[0];
  if (tail_count > 1) {
    // kept and lead dims, then the flattened tail
    int64_t permutation[TN_MAX_RANK], new_dims[TN_MAX_RANK];
    int n = 0, rank = 0;
    for (int d = 0; d < type->rank; ++d)
      if (!is_tail[d]) {
        permutation[n++] = d;
        new_dims[rank++] = type->dims[d];
      }
    for (int d = 0; d < type->rank; ++d)
      if (is_tail[d]) permutation[n++] = d;
    new_dims[rank++] = tail;
    x = tn_reshape(b->request->graph, tn_transpose(b->request->graph, x, permutation), rank,
                   new_dims);
    if (!x) return impossible(b);
  }
  body_map.rank = x->types[0].rank;
  int kept = 0, at = 0;
  for (int d = 0; d < type->rank; ++d) {
    if (tail_count > 1 && is_tail[d]) continue;
    if (!is_reduced[d]) {
      body_map.dim[at++] = map->dim[kept++];
    } else {
      if (!bind_loop(b, &body_map.dim[at++], type->dims[d], is_tail[d] ? LOOP_TAIL : LOOP_LEAD, 1))
        return -1;
    }
  }
  if (tail_count > 1) {
    if (!bind_loop(b, &body_map.dim[at], tail, LOOP_TAIL, 1)) return -1;
  }
  const int body = value_of(b, x, &body_map, 0);
  if (body < 0) return -1;
  b->reduce_inst = emit(b, TN_KOP_ACC, node->types[0].dtype, 0, b->cut.kind, body, 0, 0);
  return b->reduce_inst;
}

static int value_of(builder_t* b, const tn_node_t* node, const tn_index_map_t* map, int phase) {
  if (b->result != TN_BUILD_OK || b->must_restart) return -1;
  for (int k = 0; k < b->value_count; ++k) {
    const value_state_t* v = &b->value[k];
    if (v->node == node && v->phase == phase &&
        tn_index_map_equal(v->map, map, b->space.loop_count))
      return v->inst;
  }
  int inst = -1;
  tn_scalar_t splat;
  tn_plan_view_t view;
  const tn_memory_map_t* memory = &b->request->memory;
  if (node->op == TN_OP_PARAM && tn_param_is_scalar(node)) {
    memset(&splat, 0, sizeof(splat));
    inst = scalar_value(b, phase, node->types[0].dtype, (int)tn_node_int(node, TN_ATTR_INDEX, 0),
                        splat);
  } else if (tn_node_splat(node, &splat)) {
    if (!dtype_fits(node->types[0].dtype)) return block_on(b, node);
    inst = scalar_value(b, phase, node->types[0].dtype, -1, splat);
  } else if (memory->find(memory->context, node, &view)) {
    if (!dtype_fits(view.type.dtype)) return impossible(b);
    inst = load(b, node, &view, map, phase);
  } else if (node->op == TN_OP_IOTA) {
    inst = iota(b, node, map, phase);
  } else if (node->op == TN_OP_REDUCE) {
    if (phase == 0) return block_on(b, node);
    inst = reduction(b, node, map);
  } else if (tn_op_info(node->op)->fusion == TN_FUSION_BROADCAST ||
             tn_op_info(node->op)->fusion == TN_FUSION_INJECTIVE) {
    inst = movement(b, node, map, phase);
  } else if (tn_kernel_can_compute(node)) {
    // A big group is cut here; what is below becomes a kernel of its own.
    if (b->inst_count > 96 || b->operand_count > 24 || b->scalar_count > 24)
      return block_on(b, node);
    inst = elementwise(b, node, map, phase);
  } else {
    return block_on(b, node);
  }
  if (inst < 0) return -1;
  if (b->value_count < TN_KERNEL_INSTRUCTIONS) {
    tn_index_map_t* copy =
        tn_arena_copy(b->request->arena, map,
                      offsetof(tn_index_map_t, dim) + sizeof(tn_form_t) * (size_t)map->rank);
    if (!copy) {
      b->result = TN_BUILD_NO_MEMORY;
      return -1;
    }
    b->value[b->value_count++] =
        (value_state_t){.node = node, .map = copy, .phase = (uint8_t)phase, .inst = (uint8_t)inst};
  }
  return inst;
}

// The roots' loops: one per dimension.
static void root_map(builder_t* b, const tn_type_t* type, tn_index_map_t* map) {
  memset(map, 0, sizeof(*map));
  map->rank = type->rank;
  for (int d = 0; d < type->rank; ++d)
    if (type->dims[d] != 1 && !bind_loop(b, &map->dim[d], type->dims[d], LOOP_PARALLEL, 1)) return;
}

static void reset(builder_t* b) {
  b->space.loop_count = b->origin_count = 0;
  b->must_restart = false;
  b->operand_count = b->scalar_count = b->inst_count = b->value_count = 0;
  b->reduce = NULL;
  b->reduce_inst = -1;
  b->is_row = false;
  b->cut = (tn_reduce_cut_t){.block_count = 1};
  b->cost = 0;
}

// True if |node| is a REDUCE, or reaches one that is not in memory through inlined nodes.
static bool contains_reduce(const tn_kernel_request_t* request, const tn_node_t* node, int depth) {
  tn_plan_view_t view;
  if (depth > 12 || request->memory.find(request->memory.context, node, &view)) return false;
  if (node->op == TN_OP_REDUCE) return true;
  const int fusion = tn_op_info(node->op)->fusion;
  if (fusion != TN_FUSION_ELEMENTWISE && fusion != TN_FUSION_BROADCAST &&
      fusion != TN_FUSION_INJECTIVE)
    return false;
  for (int i = 0; i < node->operand_count; ++i)
    if (contains_reduce(request, node->operands[i], depth + 1)) return true;
  return false;
}

static void build_body(builder_t* b) {
  const tn_kernel_request_t* request = b->request;
  tn_index_map_t map;
  const tn_type_t* type = &request->roots[0]->types[0];
  root_map(b, type, &map);
  if (b->result != TN_BUILD_OK) return;
  bool has_reduce = false;
  for (int r = 0; r < request->root_count && !has_reduce; ++r)
    has_reduce = contains_reduce(request, request->roots[r], 0);
  const int phase = has_reduce ? 1 : 0;
  int values[TN_KERNEL_OPERANDS];
  for (int r = 0; r < request->root_count; ++r) {
    values[r] = value_of(b, request->roots[r], &map, phase);
    if (values[r] < 0) return;
  }
  for (int r = 0; r < request->root_count; ++r) {
    tn_form_t address;
    address_of(&request->targets[r], &map, &address);
    const tn_dtype_t dtype = request->roots[r]->types[0].dtype;
    const int operand =
        find_operand(b, TN_OPERAND_OUTPUT, dtype, request->targets[r].buffer, &address);
    if (operand < 0) return;
    emit(b, TN_KOP_STORE, dtype, phase, operand, values[r], 0, 0);
    b->cost += 1;
  }
}

// ---- from loops to a kernel program -----------------------------------------------------------------------------

static int64_t absolute(int64_t value) { return value < 0 ? -value : value; }

// Output stride decides the nesting: the largest outermost. Loops that no output moves along go outermost.
static int64_t loop_weight(const builder_t* b, int loop) {
  int64_t weight = 0, input = 0;
  for (int k = 0; k < b->operand_count; ++k) {
    const int64_t c = absolute(b->operand[k].address.coefficient[loop]);
    if (b->operand[k].facts.kind == TN_OPERAND_OUTPUT) weight = c > weight ? c : weight;
    if (b->operand[k].facts.kind == TN_OPERAND_INPUT) input = c > input ? c : input;
  }
  return weight ? weight * 4096 + (input < 4096 ? input : 4095) : INT64_MAX;
}

static bool goes_through(const builder_t* b, int operand, int outer, int inner) {
  const int64_t* c = b->operand[operand].address.coefficient;
  return c[outer] == c[inner] * b->space.extent[inner];
}

static bool can_merge(const builder_t* b, int outer, int inner) {
  if (b->role[outer] != b->role[inner]) return false;
  for (int k = 0; k < b->operand_count; ++k)
    if (!goes_through(b, k, outer, inner)) return false;
  return true;
}

// What must be row-major in memory for the tail to be one loop: the one value that is not, so that the kernel is the
// same as where it is; else all that is reduced.
static const tn_node_t* tail_blame(const builder_t* b) {
  const tn_node_t* blame = NULL;
  int tail[TN_MAX_LOOPS], count = 0;
  for (int l = 0; l < b->space.loop_count; ++l)
    if (b->role[l] == LOOP_TAIL && b->space.extent[l] != 1) tail[count++] = l;
  for (int k = 0; k < b->operand_count; ++k) {
    bool is_straight = true;
    for (int i = 0; i + 1 < count; ++i) is_straight &= goes_through(b, k, tail[i], tail[i + 1]);
    if (is_straight) continue;
    const operand_state_t* o = &b->operand[k];
    if (o->facts.kind != TN_OPERAND_INPUT || (blame && blame != o->node))
      return b->reduce->operands[0];
    blame = o->node;
  }
  return blame ? blame : b->reduce->operands[0];
}

typedef struct nest {
  int count, parallel_count, vector;
  int loop[TN_MAX_LOOPS + 1];
  int64_t extent[TN_MAX_LOOPS + 1];
} nest_t;

static void append_merged(builder_t* b, nest_t* nest, const int* loops, int count) {
  const int first = nest->count;
  for (int k = 0; k < count; ++k) {
    const int loop = loops[k];
    if (nest->count > first && can_merge(b, nest->loop[nest->count - 1], loop)) {
      // The merged loop has the inner one's strides.
      b->space.extent[loop] *= b->space.extent[nest->loop[nest->count - 1]];
      nest->loop[nest->count - 1] = loop;
    } else {
      nest->loop[nest->count++] = loop;
    }
  }
}

static bool order_loops(builder_t* b, nest_t* nest) {
  int loops[TN_MAX_LOOPS] = {0}, count = 0;
  memset(nest, 0, sizeof(*nest));
  for (int l = 0; l < b->space.loop_count; ++l)
    if (b->role[l] == LOOP_PARALLEL && b->space.extent[l] != 1) {
      int at = count++;
      const int64_t weight = loop_weight(b, l);
      for (; at > 0 && loop_weight(b, loops[at - 1]) < weight; --at) loops[at] = loops[at - 1];
      loops[at] = l;
    }
  append_merged(b, nest, loops, count);
  if (nest->count == 0) nest->loop[nest->count++] = -1;  // a loop of one point
  nest->parallel_count = nest->count;
  for (int role = LOOP_LEAD; role <= LOOP_TAIL; ++role) {
    count = 0;
    for (int l = 0; l < b->space.loop_count; ++l)
      if (b->role[l] == role && b->space.extent[l] != 1)
        loops[count++] = l;  // in order of their elements
    const int before = nest->count;
    append_merged(b, nest, loops, count);
    if (role == LOOP_TAIL && nest->count > before + 1) return false;  // the tail must be one loop
    if (role == LOOP_TAIL && b->is_row && nest->count == before) nest->loop[nest->count++] = -1;
  }
  if (b->reduce && !b->is_row && nest->count == nest->parallel_count)
    nest->loop[nest->count++] = -1;
  nest->vector = b->is_row ? nest->count - 1 : nest->parallel_count - 1;
  for (int k = 0; k < nest->count; ++k)
    nest->extent[k] = nest->loop[k] < 0 ? 1 : b->space.extent[nest->loop[k]];
  return nest->count <= TN_KERNEL_LOOPS;
}

static bool finish(builder_t* b, tn_kernel_step_t* step) {
  nest_t nest;
  b->tail_blame = b->is_row ? tail_blame(b) : NULL;  // merging changes the loops
  if (!order_loops(b, &nest)) return false;
  // A reduction that was expected but turned out to be in memory: one plain phase.
  for (int k = 0; k < b->inst_count && !b->reduce; ++k) b->inst[k].phase = 0;
  tn_arena_t* arena = b->request->arena;
  memset(step, 0, sizeof(*step));
  tn_kernel_program_t* program = TN_ARENA_NEW(arena, tn_kernel_program_t);
  step->operands = TN_ARENA_ARRAY(arena, tn_kernel_operand_binding_t, b->operand_count);
  step->strides = TN_ARENA_ARRAY(arena, int64_t, b->operand_count* nest.count + 1);
  step->dims = TN_ARENA_ARRAY(arena, int64_t, nest.count);
  step->scalars = tn_arena_copy(arena, b->scalar, sizeof(b->scalar[0]) * (size_t)b->scalar_count);
  if (!program || !step->operands || !step->strides || !step->dims || !step->scalars) return false;
  step->program = program;
  program->loop_count = (uint8_t)nest.count;
  program->parallel_count = (uint8_t)nest.parallel_count;
  program->vector_loop = (uint8_t)nest.vector;
  program->phase_count = b->reduce ? 2 : 1;
  program->phase_is_point[1] = b->reduce ? 1 : 0;
  program->operand_count = (uint8_t)b->operand_count;
  program->scalar_count = (uint8_t)b->scalar_count;
  program->inst_count = (uint8_t)b->inst_count;
  for (int k = 0; k < b->scalar_count; ++k) program->scalar_dtype[k] = (uint8_t)b->scalar[k].dtype;
  for (int k = 0; k < b->operand_count; ++k) {
    const operand_state_t* o = &b->operand[k];
    const bool is_index = o->facts.kind == TN_OPERAND_INDEX;
    const int64_t size = is_index ? 1 : (int64_t)tn_dtype_size((tn_dtype_t)o->facts.dtype);
    for (int l = 0; l < nest.count; ++l)
      step->strides[k * nest.count + l] =
          nest.loop[l] < 0 ? 0 : o->address.coefficient[nest.loop[l]] * size;
    const int64_t vector_stride = step->strides[k * nest.count + nest.vector];
    program->operand[k] = o->facts;
    program->operand[k].vector = (uint8_t)(vector_stride == 0      ? TN_OPERAND_SCALAR
                                           : vector_stride == size ? TN_OPERAND_CONTIGUOUS
                                                                   : TN_OPERAND_STRIDED);
    step->operands[k] =
        (tn_kernel_operand_binding_t){.buffer = o->buffer, .offset = o->address.offset * size};
  }
  // Instructions in order of phases; operands are earlier ones in either order.
  uint8_t place[TN_KERNEL_INSTRUCTIONS];
  int at = 0;
  for (int phase = 0; phase < program->phase_count; ++phase)
    for (int k = 0; k < b->inst_count; ++k)
      if (b->inst[k].phase == phase) place[k] = (uint8_t)at++;
  for (int k = 0; k < b->inst_count; ++k) {
    tn_kernel_inst_t inst = b->inst[k];
    const int uses = inst.op == TN_KOP_STORE || inst.op == TN_KOP_ACC ? 1
                     : inst.op >= TN_KOP_LOAD ? 0
                                              : tn_op_info((tn_op_t)inst.op)->operand_count;
    inst.a = uses > 0 ? place[inst.a] : 0;
    inst.b = uses > 1 ? place[inst.b] : 0;
    inst.c = uses > 2 ? place[inst.c] : 0;
    program->inst[place[k]] = inst;
  }
  // A one-element loop counts as contiguous: a scalar's class must not make a second kernel.
  step->outer_count = 1;
  int64_t inner_points = 1;
  for (int l = 0; l < nest.count; ++l) {
    step->dims[l] = nest.extent[l];
    if (l < nest.parallel_count && l != nest.vector) {
      step->outer_count *= nest.extent[l];
    } else if (l >= nest.parallel_count) {
      inner_points *= nest.extent[l];
    }
  }
  step->vector_extent = b->is_row ? 1 : nest.extent[nest.vector];
  step->cut = b->cut;
  step->cost = b->cost * (inner_points > 0 ? inner_points : 1);
  return true;
}

tn_build_result_t tn_kernel_build(const tn_kernel_request_t* request, tn_kernel_step_t* out_step,
                                  const tn_node_t** out_blame) {
  builder_t* b = TN_ARENA_NEW(request->arena, builder_t);
  *out_blame = NULL;
  if (!b) return TN_BUILD_NO_MEMORY;
  b->request = request;
  do {
    reset(b);
    build_body(b);
  } while (b->must_restart && b->result == TN_BUILD_OK);
  if (b->result == TN_BUILD_OK && !finish(b, out_step)) {
    // A tail that does not merge: its operand in row-major memory always does.
    b->result = TN_BUILD_IMPOSSIBLE;
    tn_plan_view_t view;
    if (b->reduce && b->tail_blame && b->tail_blame != b->reduce->operands[0] &&
        request->memory.find(request->memory.context, b->tail_blame, &view) &&
        !tn_plan_view_is_contiguous(&view)) {
      b->result = TN_BUILD_BLOCKED;
      *out_blame = b->tail_blame;
      return b->result;
    }
    if (b->reduce &&
        !(request->memory.find(request->memory.context, b->reduce->operands[0], &view) &&
          tn_plan_view_is_contiguous(&view))) {
      b->result = TN_BUILD_BLOCKED;
      b->blame = b->reduce->operands[0];
    }
  }
  *out_blame = b->blame;
  return b->result;
}
