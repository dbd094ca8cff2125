// NumPy's .npy files: versions 1 to 3, little-endian numbers.
#ifndef TN_TOOL_NPY_H_
#define TN_TOOL_NPY_H_

#include "tn/dtype.h"
#include "tn/graph.h"

// Reads |path| as row-major elements; the caller frees |out_data|. |type| is what is expected: shape and element type
// must match (bf16 and f8, which NumPy lacks, take any elements of equal size).
tn_status_t tn_npy_read(const char* path, const tn_type_t* type, void** out_data);
// Writes row-major elements; bf16 and f8 as unsigned integers of equal size.
tn_status_t tn_npy_write(const char* path, const tn_type_t* type, const void* data);

#endif  // TN_TOOL_NPY_H_
