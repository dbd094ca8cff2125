#include "ir/interp_complex.h"

#include <complex.h>
#include <math.h>
#include <string.h>

static double complex join(double re, double im) {
  double complex z;
  const double parts[2] = {re, im};
  memcpy(&z, parts, sizeof z);
  return z;
}
static tn_complex_t split(double complex z) { return (tn_complex_t){creal(z), cimag(z)}; }

tn_complex_t tn_complex_unary(tn_op_t op, double re, double im) {
  const double complex z = join(re, im);
  const tn_complex_t one = {1.0, 0.0};
  switch (op) {
    case TN_OP_NEG: return (tn_complex_t){-re, -im};
    case TN_OP_ABS: return (tn_complex_t){hypot(re, im), 0.0};
    case TN_OP_SIGN: {
      const double magnitude = hypot(re, im);
      return magnitude == 0.0 ? (tn_complex_t){0.0, 0.0}
                              : (tn_complex_t){re / magnitude, im / magnitude};
    }
    case TN_OP_SQRT: return split(csqrt(z));
    case TN_OP_RSQRT: return tn_complex_binary(TN_OP_DIV, one, split(csqrt(z)));
    case TN_OP_EXP: return split(cexp(z));
    case TN_OP_EXP2: return split(cexp(join(re * M_LN2, im * M_LN2)));
    case TN_OP_EXPM1: {  // without cancellation near 0: e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y / 2)
      const double s = sin(im / 2);
      return (tn_complex_t){expm1(re) * cos(im) - 2 * s * s, exp(re) * sin(im)};
    }
    case TN_OP_LOG: return split(clog(z));
    case TN_OP_LOG2: {
      const tn_complex_t w = split(clog(z));
      return (tn_complex_t){w.re / M_LN2, w.im / M_LN2};
    }
    case TN_OP_LOG1P: {  // |1 + z|^2 - 1 = x (2 + x) + y^2
      if (fabs(re) < 0.5 && fabs(im) < 0.5)
        return (tn_complex_t){log1p(re * (2 + re) + im * im) / 2, atan2(im, 1 + re)};
      return split(clog(join(1 + re, im)));
    }
    case TN_OP_LOGISTIC: {
      tn_complex_t w = split(cexp(join(-re, -im)));
      w.re += 1;
      return tn_complex_binary(TN_OP_DIV, one, w);
    }
    case TN_OP_SIN: return split(csin(z));
    case TN_OP_COS: return split(ccos(z));
    case TN_OP_TAN: return split(ctan(z));
    case TN_OP_TANH: return split(ctanh(z));
    case TN_OP_ASIN: return split(casin(z));
    case TN_OP_ACOS: return split(cacos(z));
    case TN_OP_ATAN: return split(catan(z));
    case TN_OP_SINH: return split(csinh(z));
    case TN_OP_COSH: return split(ccosh(z));
    case TN_OP_ASINH: return split(casinh(z));
    case TN_OP_ACOSH: return split(cacosh(z));
    case TN_OP_ATANH: return split(catanh(z));
    default: return (tn_complex_t){NAN, NAN};
  }
}

// Smith's division: the smaller part of y is divided by the larger, so that nothing overflows on the way.
static tn_complex_t divide(tn_complex_t x, tn_complex_t y) {
  if (y.re == 0.0 && y.im == 0.0) return (tn_complex_t){x.re / y.re, x.im / y.re};
  if (fabs(y.re) >= fabs(y.im)) {
    const double ratio = y.im / y.re, scale = y.re + y.im * ratio;
    return (tn_complex_t){(x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale};
  }
  const double ratio = y.re / y.im, scale = y.re * ratio + y.im;
  return (tn_complex_t){(x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale};
}

tn_complex_t tn_complex_binary(tn_op_t op, tn_complex_t x, tn_complex_t y) {
  if (op == TN_OP_DIV) return divide(x, y);
  if (y.re == 0.0 && y.im == 0.0) return (tn_complex_t){1.0, 0.0};
  if (x.re == 0.0 && x.im == 0.0 && y.re > 0.0) return (tn_complex_t){0.0, 0.0};
  return split(cpow(join(x.re, x.im), join(y.re, y.im)));
}
