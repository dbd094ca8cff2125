// Environment variables of the library by their full names, for callers outside the core.
#ifndef TN_OPTIONS_H_
#define TN_OPTIONS_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Text of a variable, or of its default; valid for the life of the process. NULL for a name the library does not know.
// A search through all names: keep the answer where it is asked often.
const char* tn_options_text(const char* name);
int64_t tn_options_int(
    const char* name);  // of a BOOL (0 or 1) or INT variable; 0 for an unknown name

// Complaints of the last reading: misspelt TORCH_NEURONX_* names with the nearest name, values of the wrong type.
// NULL past the last one. Valid until the next reading.
const char* tn_options_complaint(int index);

#ifdef __cplusplus
}
#endif
#endif  // TN_OPTIONS_H_
