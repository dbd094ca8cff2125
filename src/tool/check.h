// Compares computed values with expected ones, for tn run.
#ifndef TN_TOOL_CHECK_H_
#define TN_TOOL_CHECK_H_

#include "ir/text.h"

// The first element of |type| at which |got| and |expected| (row-major) do not hold |check|, or -1.
int64_t tn_tool_check(const tn_text_check_t* check, const tn_type_t* type, const void* got,
                      const void* expected);
// Prints "FILE:LINE:COLUMN: check failed: element [i, j] is A, expected B (why)" to standard error; |file| has the
// place in it, such as "a.mlir:3:5".
void tn_tool_report(const char* place, const tn_text_check_t* check, const tn_type_t* type,
                    int64_t element, const void* got, const void* expected);

#endif  // TN_TOOL_CHECK_H_
