#include "src/kernels/view.h"

#include <assert.h>

tn_view_t tn_view_make(void* data, tn_dtype_t dtype, int rank, const int64_t* dims,
                       const int64_t* strides) {
  assert(rank >= 0 && rank <= TN_MAX_RANK);
  tn_view_t view = {.data = data, .dtype = dtype, .rank = rank};
  int64_t dense = 1;
  for (int i = rank - 1; i >= 0; --i) {
    view.dims[i] = dims[i];
    view.strides[i] = strides ? strides[i] : dense;
    dense *= dims[i];
  }
  return view;
}

int64_t tn_view_element_count(const tn_view_t* view) {
  int64_t count = 1;
  for (int i = 0; i < view->rank; ++i) count *= view->dims[i];
  return count;
}

bool tn_view_is_contiguous(const tn_view_t* view) {
  int64_t dense = 1;
  for (int i = view->rank - 1; i >= 0; --i) {
    if (view->dims[i] == 1) continue;
    if (view->dims[i] == 0) return true;
    if (view->strides[i] != dense) return false;
    dense *= view->dims[i];
  }
  return true;
}
