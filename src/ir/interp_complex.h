// Complex functions in f64 pairs; for c64 the caller rounds the result once. (Sums and products are done by the
// caller in the precision of the dtype, by the plain formulas.)
#ifndef TN_IR_INTERP_COMPLEX_H_
#define TN_IR_INTERP_COMPLEX_H_

#include "tn/graph.h"

typedef struct tn_complex {
  double re, im;
} tn_complex_t;

// ABS: the magnitude in |re|. Ops without complex meaning give NaN.
tn_complex_t tn_complex_unary(tn_op_t op, double re, double im);
// DIV, POW.
tn_complex_t tn_complex_binary(tn_op_t op, tn_complex_t x, tn_complex_t y);

#endif  // TN_IR_INTERP_COMPLEX_H_
