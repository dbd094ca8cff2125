// Strided windows of buffers.
#include <string.h>

#include "compile/plan.h"

void tn_contiguous_strides(const tn_type_t* type, int64_t* out_strides) {
  int64_t stride = 1;
  for (int d = type->rank - 1; d >= 0; --d) {
    out_strides[d] = stride;
    if (type->dims[d] > 1) stride *= type->dims[d];
  }
}

bool tn_plan_view_is_contiguous(const tn_plan_view_t* view) {
  int64_t stride = 1;
  for (int d = view->type.rank - 1; d >= 0; --d) {
    if (view->type.dims[d] == 0) return true;
    if (view->type.dims[d] == 1) continue;
    if (view->strides[d] != stride) return false;
    stride *= view->type.dims[d];
  }
  return true;
}

bool tn_plan_view_reshape(const tn_plan_view_t* view, const tn_type_t* type,
                          tn_plan_view_t* out_view) {
  tn_plan_view_t result = *view;
  result.type = *type;
  if (tn_type_element_count(type) == 0 || tn_plan_view_is_contiguous(view)) {
    tn_contiguous_strides(type, result.strides);
    *out_view = result;
    return true;
  }
  // Walk from the last dimension: |run| is a maximal run of old dimensions that lie in one line of memory.
  int old_dim = view->type.rank - 1, new_dim = type->rank - 1;
  while (old_dim >= 0) {
    if (view->type.dims[old_dim] == 1) {
      --old_dim;
      continue;
    }
    const int64_t step = view->strides[old_dim];
    int64_t run = view->type.dims[old_dim];
    int64_t next_stride = step * run;
    --old_dim;
    while (old_dim >= 0 &&
           (view->type.dims[old_dim] == 1 || view->strides[old_dim] == next_stride)) {
      if (view->type.dims[old_dim] != 1) {
        run *= view->type.dims[old_dim];
        next_stride *= view->type.dims[old_dim];
      }
      --old_dim;
    }
    int64_t stride = step;
    while (new_dim >= 0 && (run > 1 || type->dims[new_dim] == 1)) {
      if (run % type->dims[new_dim]) return false;
      result.strides[new_dim] = stride;
      stride *= type->dims[new_dim];
      run /= type->dims[new_dim];
      --new_dim;
    }
    if (run != 1) return false;
  }
  for (; new_dim >= 0; --new_dim) result.strides[new_dim] = 0;  // extents 1 only
  *out_view = result;
  return true;
}
