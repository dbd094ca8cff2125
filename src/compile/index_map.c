#include "compile/index_map.h"

#include <string.h>

bool tn_index_map_equal(const tn_index_map_t* a, const tn_index_map_t* b, int loop_count) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i) {
    if (a->dim[i].offset != b->dim[i].offset) return false;
    if (memcmp(a->dim[i].coefficient, b->dim[i].coefficient, sizeof(int64_t) * (size_t)loop_count))
      return false;
  }
  return true;
}

static void add_scaled(tn_form_t* to, const tn_form_t* form, int64_t scale) {
  to->offset += form->offset * scale;
  for (int l = 0; l < TN_MAX_LOOPS; ++l) to->coefficient[l] += form->coefficient[l] * scale;
}

// Expresses |linear|, the row-major index in a group of dimensions, as one form per dimension.
static bool decompose(const tn_form_t* linear, const tn_space_t* space, int count,
                      const int64_t* dims, tn_form_t* out_forms, int* out_split_loop,
                      int64_t* out_split_inner) {
  int64_t stride[TN_MAX_RANK], total = 1;
  for (int j = count - 1; j >= 0; --j) {
    stride[j] = total;
    total *= dims[j];
  }
  int64_t offset = linear->offset;
  if (offset < 0) return false;
  int64_t highest[TN_MAX_RANK];
  for (int j = 0; j < count; ++j) {
    memset(&out_forms[j], 0, sizeof(out_forms[j]));
    out_forms[j].offset = offset / stride[j];
    offset %= stride[j];
    highest[j] = out_forms[j].offset;
  }
  for (int l = 0; l < space->loop_count; ++l) {
    const int64_t c = linear->coefficient[l], extent = space->extent[l];
    if (c == 0 || extent == 1) continue;
    if (c < 0) return false;
    int j = 0;
    while (j < count - 1 && stride[j] > c) ++j;
    // Dimensions of extent 1 share their stride with the next one: take the widest.
    while (j < count - 1 && dims[j] == 1 && stride[j + 1] <= c) ++j;
    if (c % stride[j]) return false;
    const int64_t step = c / stride[j];
    out_forms[j].coefficient[l] = step;
    highest[j] += step * (extent - 1);
    if (highest[j] >= dims[j]) {
      // The loop runs past this dimension: cut it where the dimension wraps.
      const int64_t inner = dims[j] / step;
      if (out_forms[j].offset == 0 && dims[j] % step == 0 && inner > 1 && inner < extent &&
          extent % inner == 0) {
        *out_split_loop = l;
        *out_split_inner = inner;
      }
      return false;
    }
  }
  return true;
}

static bool reshape_operand(const tn_node_t* node, const tn_index_map_t* map,
                            const tn_space_t* space, tn_index_map_t* out_map, int* out_split_loop,
                            int64_t* out_split_inner) {
  const tn_type_t *out_type = &node->types[0], *in_type = &node->operands[0]->types[0];
  out_map->rank = in_type->rank;
  if (tn_type_element_count(out_type) == 0) {
    memset(out_map->dim, 0, sizeof(tn_form_t) * (size_t)in_type->rank);
    return true;
  }
  int in = 0, out = 0;
  while (in < in_type->rank || out < out_type->rank) {
    // The smallest group of dimensions on both sides with equal products.
    int in_end = in, out_end = out;
    int64_t in_product = 1, out_product = 1;
    do {
      if (in_end < in_type->rank && (in_product <= out_product || out_end == out_type->rank)) {
        in_product *= in_type->dims[in_end++];
      } else if (out_end < out_type->rank) {
        out_product *= out_type->dims[out_end++];
      } else {
        break;
      }
    } while (in_product != out_product || in_end == in || (out_end == out && out < out_type->rank));
    // Trailing dimensions of extent 1 belong to the last group.
    tn_form_t linear;
    memset(&linear, 0, sizeof(linear));
    int64_t stride = 1;
    for (int k = out_end - 1; k >= out; --k) {
      add_scaled(&linear, &map->dim[k], stride);
      stride *= out_type->dims[k];
    }
    if (in_end > in) {
      if (in_end == in + 1) {
        out_map->dim[in] = linear;
      } else if (!decompose(&linear, space, in_end - in, in_type->dims + in, out_map->dim + in,
                            out_split_loop, out_split_inner)) {
        return false;
      }
    }
    in = in_end;
    out = out_end;
  }
  return true;
}

bool tn_index_map_operand(const tn_node_t* node, const tn_index_map_t* map, const tn_space_t* space,
                          tn_index_map_t* out_map, int* out_split_loop, int64_t* out_split_inner) {
  const tn_node_t* operand = node->operands[0];
  const tn_type_t* in_type = &operand->types[0];
  *out_split_loop = -1;
  out_map->rank = in_type->rank;
  int64_t count = 0;
  switch (node->op) {
    case TN_OP_BROADCAST_IN_DIM: {
      const int64_t* dims = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
      for (int i = 0; i < in_type->rank; ++i) {
        if (in_type->dims[i] == 1) {
          memset(&out_map->dim[i], 0, sizeof(tn_form_t));
        } else {
          out_map->dim[i] = map->dim[dims[i]];
        }
      }
      return true;
    }
    case TN_OP_TRANSPOSE: {
      const int64_t* permutation = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
      for (int i = 0; i < in_type->rank; ++i) out_map->dim[permutation[i]] = map->dim[i];
      return true;
    }
    case TN_OP_SLICE: {
      const int64_t* start = tn_node_ints(node, TN_ATTR_START, &count);
      const int64_t* stride = tn_node_ints(node, TN_ATTR_STRIDE, &count);
      for (int i = 0; i < in_type->rank; ++i) {
        memset(&out_map->dim[i], 0, sizeof(tn_form_t));
        add_scaled(&out_map->dim[i], &map->dim[i], stride ? stride[i] : 1);
        out_map->dim[i].offset += start[i];
      }
      return true;
    }
    case TN_OP_REVERSE: {
      const int64_t* dims = tn_node_ints(node, TN_ATTR_DIMENSIONS, &count);
      memcpy(out_map->dim, map->dim, sizeof(tn_form_t) * (size_t)in_type->rank);
      for (int64_t k = 0; k < count; ++k) {
        tn_form_t* form = &out_map->dim[dims[k]];
        tn_form_t reversed;
        memset(&reversed, 0, sizeof(reversed));
        add_scaled(&reversed, form, -1);
        reversed.offset += in_type->dims[dims[k]] - 1;
        *form = reversed;
      }
      return true;
    }
    case TN_OP_RESHAPE:
      return reshape_operand(node, map, space, out_map, out_split_loop, out_split_inner);
    default: return false;
  }
}
