// Elementwise instructions: arithmetic, comparison, bits, and the combining step of reductions.
#include "codegen/llvm/emit.h"

static LLVMValueRef zero_like(LLVMValueRef x) { return LLVMConstNull(LLVMTypeOf(x)); }
static LLVMValueRef lane_int(const tn_emit_t* e, int dtype, uint64_t value) {
  return tn_emit_int(e, tn_emit_element_type(e, dtype), value);
}
static unsigned width_of(const tn_emit_t* e, int dtype) {
  return LLVMGetIntTypeWidth(tn_emit_element_type(e, dtype));
}
static LLVMTypeRef bits_type(const tn_emit_t* e, int dtype) {
  return dtype == TN_F64 ? e->i64 : e->i32;
}
static LLVMValueRef to_bits(tn_emit_t* e, int dtype, LLVMValueRef x) {
  return LLVMBuildBitCast(e->b, x, tn_emit_vector(e, bits_type(e, dtype)), "");
}
static LLVMValueRef from_bits(tn_emit_t* e, int dtype, LLVMValueRef x) {
  return LLVMBuildBitCast(e->b, x, tn_emit_vector(e, tn_emit_element_type(e, dtype)), "");
}
static uint64_t sign_bit(int dtype) {
  return dtype == TN_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
}

static LLVMValueRef float_abs(tn_emit_t* e, LLVMValueRef x) {
  return tn_emit_intrinsic1(e, "llvm.fabs", x);
}

static LLVMValueRef copy_sign(tn_emit_t* e, int dtype, LLVMValueRef magnitude, LLVMValueRef sign) {
  LLVMValueRef mask = tn_emit_int(e, bits_type(e, dtype), sign_bit(dtype));
  LLVMValueRef s = LLVMBuildAnd(e->b, to_bits(e, dtype, sign), mask, "");
  LLVMValueRef m = LLVMBuildAnd(e->b, to_bits(e, dtype, magnitude), LLVMConstNot(mask), "");
  return from_bits(e, dtype, LLVMBuildOr(e->b, m, s, ""));
}

// min and max: a NaN wins, the first one if both are; equal values give b (maxps and minps do).
static LLVMValueRef extreme(tn_emit_t* e, bool is_max, int dtype, LLVMValueRef a, LLVMValueRef b) {
  if (dtype == TN_BOOL) return is_max ? LLVMBuildOr(e->b, a, b, "") : LLVMBuildAnd(e->b, a, b, "");
  if (!tn_emit_is_float(dtype)) {
    const bool is_signed = tn_emit_is_signed(dtype);
    return tn_emit_intrinsic2(e,
                              is_max      ? is_signed ? "llvm.smax" : "llvm.umax"
                              : is_signed ? "llvm.smin"
                                          : "llvm.umin",
                              a, b);
  }
  LLVMValueRef is_better = LLVMBuildFCmp(e->b, is_max ? LLVMRealOGT : LLVMRealOLT, a, b, "");
  LLVMValueRef best = LLVMBuildSelect(e->b, is_better, a, b, "");
  return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealUNO, a, a, ""), a, best, "");
}

// Quotient of integers of up to 32 bits by a divisor that is not 0, nor -1 if signed: the truncated f64 quotient is
// exact (f32 for up to 16 bits), and there are no vector instructions for integers.
static LLVMValueRef narrow_quotient(tn_emit_t* e, int dtype, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef real = tn_emit_vector(e, tn_emit_dtype_size(dtype) == 4 ? e->f64 : e->f32),
              own = LLVMTypeOf(a);
  LLVMTypeRef wide = tn_emit_vector(e, e->i32);
  if (tn_emit_is_signed(dtype)) {
    LLVMValueRef q = LLVMBuildFDiv(e->b, LLVMBuildSIToFP(e->b, a, real, ""),
                                   LLVMBuildSIToFP(e->b, b, real, ""), "");
    q = LLVMBuildFPToSI(e->b, q, wide, "");
    return own == wide ? q : LLVMBuildTrunc(e->b, q, own, "");
  }
  LLVMValueRef q = LLVMBuildFDiv(e->b, LLVMBuildUIToFP(e->b, a, real, ""),
                                 LLVMBuildUIToFP(e->b, b, real, ""), "");
  if (own != wide) return LLVMBuildTrunc(e->b, LLVMBuildFPToSI(e->b, q, wide, ""), own, "");
  return LLVMBuildFPToUI(e->b, q, wide, "");
}

static LLVMValueRef quotient(tn_emit_t* e, int dtype, LLVMValueRef a, LLVMValueRef b) {
  if (tn_emit_dtype_size(dtype) < 8) return narrow_quotient(e, dtype, a, b);
  return tn_emit_is_signed(dtype) ? LLVMBuildSDiv(e->b, a, b, "") : LLVMBuildUDiv(e->b, a, b, "");
}

// x / 0 and x % 0 are 0, INT_MIN / -1 wraps: the divisor is replaced where the instruction would trap.
static LLVMValueRef int_divide(tn_emit_t* e, int dtype, bool is_remainder, LLVMValueRef a,
                               LLVMValueRef b) {
  LLVMValueRef is_zero = LLVMBuildICmp(e->b, LLVMIntEQ, b, zero_like(b), "");
  LLVMValueRef divisor = LLVMBuildSelect(e->b, is_zero, lane_int(e, dtype, 1), b, "");
  LLVMValueRef is_minus_one = NULL;
  if (tn_emit_is_signed(dtype)) {
    is_minus_one = LLVMBuildICmp(e->b, LLVMIntEQ, b, lane_int(e, dtype, UINT64_MAX), "");
    divisor = LLVMBuildSelect(e->b, is_minus_one, lane_int(e, dtype, 1), divisor, "");
  }
  LLVMValueRef result = quotient(e, dtype, a, divisor);
  if (is_remainder) {
    result =
        LLVMBuildSub(e->b, a, LLVMBuildMul(e->b, result, divisor, ""), "");  // by 1: 0, as by -1
  } else if (is_minus_one) {
    result = LLVMBuildSelect(e->b, is_minus_one, LLVMBuildNeg(e->b, a, ""), result, "");
  }
  return LLVMBuildSelect(e->b, is_zero, zero_like(a), result, "");
}

// Shifts by the width or more (as unsigned) give 0, the arithmetic one the sign.
static LLVMValueRef shift(tn_emit_t* e, int op, int dtype, LLVMValueRef a, LLVMValueRef b) {
  const unsigned width = width_of(e, dtype);
  LLVMValueRef is_inside = LLVMBuildICmp(e->b, LLVMIntULT, b, lane_int(e, dtype, width), "");
  LLVMValueRef most = lane_int(e, dtype, width - 1);
  LLVMValueRef amount = LLVMBuildSelect(e->b, is_inside, b, most, "");
  if (op == TN_OP_SHR_A) return LLVMBuildAShr(e->b, a, amount, "");
  LLVMValueRef shifted =
      op == TN_OP_SHL ? LLVMBuildShl(e->b, a, amount, "") : LLVMBuildLShr(e->b, a, amount, "");
  return LLVMBuildSelect(e->b, is_inside, shifted, zero_like(a), "");
}

static LLVMValueRef compare(tn_emit_t* e, int direction, int dtype, LLVMValueRef a,
                            LLVMValueRef b) {
  static const LLVMRealPredicate real[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
                                           LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
  static const LLVMIntPredicate with_sign[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntSLT,
                                               LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
  static const LLVMIntPredicate without[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntULT,
                                             LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
  if (tn_emit_is_float(dtype)) return LLVMBuildFCmp(e->b, real[direction], a, b, "");
  return LLVMBuildICmp(e->b, (tn_emit_is_signed(dtype) ? with_sign : without)[direction], a, b, "");
}

// Integer power by squaring, modulo 2^width: exponents below 0 give 0 unless the base is 1 or -1.
static LLVMValueRef int_power(tn_emit_t* e, int dtype, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef result = lane_int(e, dtype, 1), square = a;
  LLVMValueRef one = lane_int(e, dtype, 1);
  const unsigned width = width_of(e, dtype);
  for (unsigned i = 0; i < width; ++i) {
    LLVMValueRef bit =
        LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, b, lane_int(e, dtype, i), ""), one, "");
    LLVMValueRef is_set = LLVMBuildICmp(e->b, LLVMIntNE, bit, zero_like(b), "");
    result = LLVMBuildSelect(e->b, is_set, LLVMBuildMul(e->b, result, square, ""), result, "");
    if (i + 1 < width) square = LLVMBuildMul(e->b, square, square, "");
  }
  if (!tn_emit_is_signed(dtype)) return result;
  LLVMValueRef is_negative = LLVMBuildICmp(e->b, LLVMIntSLT, b, zero_like(b), "");
  LLVMValueRef is_odd =
      LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, b, one, ""), zero_like(b), "");
  LLVMValueRef minus_one = lane_int(e, dtype, UINT64_MAX);
  LLVMValueRef is_one = LLVMBuildICmp(e->b, LLVMIntEQ, a, one, "");
  LLVMValueRef is_minus_one = LLVMBuildICmp(e->b, LLVMIntEQ, a, minus_one, "");
  LLVMValueRef of_minus_one = LLVMBuildSelect(e->b, is_odd, minus_one, one, "");
  LLVMValueRef below = LLVMBuildSelect(e->b, is_minus_one, of_minus_one, zero_like(a), "");
  below = LLVMBuildSelect(e->b, is_one, one, below, "");
  return LLVMBuildSelect(e->b, is_negative, below, result, "");
}

static LLVMValueRef unary(tn_emit_t* e, int op, int dtype, LLVMValueRef a) {
  LLVMBuilderRef b = e->b;
  const bool is_float = tn_emit_is_float(dtype);
  switch (op) {
    case TN_OP_NEG: return is_float ? LLVMBuildFNeg(b, a, "") : LLVMBuildNeg(b, a, "");
    case TN_OP_ABS:
      if (is_float) return float_abs(e, a);
      if (!tn_emit_is_signed(dtype)) return a;
      return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, a, zero_like(a), ""),
                             LLVMBuildNeg(b, a, ""), a, "");
    case TN_OP_SIGN: {
      if (is_float) {  // zeros and NaN are themselves
        LLVMValueRef one =
            copy_sign(e, dtype, tn_emit_float(e, tn_emit_element_type(e, dtype), 1), a);
        LLVMValueRef is_number = LLVMBuildFCmp(b, LLVMRealONE, a, zero_like(a), "");
        return LLVMBuildSelect(b, is_number, one, a, "");
      }
      LLVMValueRef is_zero = LLVMBuildICmp(b, LLVMIntEQ, a, zero_like(a), "");
      LLVMValueRef sign = lane_int(e, dtype, 1);
      if (tn_emit_is_signed(dtype)) {
        LLVMValueRef is_negative = LLVMBuildICmp(b, LLVMIntSLT, a, zero_like(a), "");
        sign = LLVMBuildSelect(b, is_negative, lane_int(e, dtype, UINT64_MAX), sign, "");
      }
      return LLVMBuildSelect(b, is_zero, zero_like(a), sign, "");
    }
    case TN_OP_NOT: return LLVMBuildNot(b, a, "");
    case TN_OP_POPCNT: return tn_emit_intrinsic1(e, "llvm.ctpop", a);
    case TN_OP_CLZ: {
      LLVMTypeRef type = LLVMTypeOf(a);
      LLVMValueRef args[] = {a, LLVMConstInt(e->i1, 0, 0)};
      return tn_emit_intrinsic(e, "llvm.ctlz", &type, 1, args, 2);
    }
    case TN_OP_CEIL: return is_float ? tn_emit_intrinsic1(e, "llvm.ceil", a) : a;
    case TN_OP_FLOOR: return is_float ? tn_emit_intrinsic1(e, "llvm.floor", a) : a;
    case TN_OP_TRUNC: return is_float ? tn_emit_intrinsic1(e, "llvm.trunc", a) : a;
    case TN_OP_ROUND_EVEN: return is_float ? tn_emit_intrinsic1(e, "llvm.rint", a) : a;
    case TN_OP_ROUND_AFZ: {
      if (!is_float) return a;
      // trunc, and one more away from zero where the (exact) rest is at least a half.
      LLVMValueRef whole = tn_emit_intrinsic1(e, "llvm.trunc", a);
      LLVMValueRef rest = float_abs(e, LLVMBuildFSub(b, a, whole, ""));
      LLVMTypeRef element = tn_emit_element_type(e, dtype);
      LLVMValueRef is_up = LLVMBuildFCmp(b, LLVMRealOGE, rest, tn_emit_float(e, element, 0.5), "");
      LLVMValueRef one = copy_sign(e, dtype, tn_emit_float(e, element, 1), a);
      return LLVMBuildSelect(b, is_up, LLVMBuildFAdd(b, whole, one, ""), whole, "");
    }
    case TN_OP_SQRT: return tn_emit_intrinsic1(e, "llvm.sqrt", a);
    case TN_OP_IS_FINITE: {
      if (!is_float) return LLVMBuildICmp(b, LLVMIntEQ, zero_like(a), zero_like(a), "");
      LLVMValueRef infinity = tn_emit_float(e, tn_emit_element_type(e, dtype), __builtin_inf());
      return LLVMBuildFCmp(b, LLVMRealOLT, float_abs(e, a), infinity, "");
    }
    case TN_OP_REAL: return a;
    case TN_OP_IMAG: return zero_like(a);
    default: return NULL;
  }
}

static LLVMValueRef binary(tn_emit_t* e, int op, int dtype, LLVMValueRef x, LLVMValueRef y) {
  LLVMBuilderRef b = e->b;
  const bool is_float = tn_emit_is_float(dtype), is_bool = dtype == TN_BOOL;
  switch (op) {
    case TN_OP_ADD:
      return is_float  ? LLVMBuildFAdd(b, x, y, "")
             : is_bool ? LLVMBuildOr(b, x, y, "")
                       : LLVMBuildAdd(b, x, y, "");
    case TN_OP_SUB:
      return is_float  ? LLVMBuildFSub(b, x, y, "")
             : is_bool ? LLVMBuildXor(b, x, y, "")
                       : LLVMBuildSub(b, x, y, "");
    case TN_OP_MUL:
      return is_float  ? LLVMBuildFMul(b, x, y, "")
             : is_bool ? LLVMBuildAnd(b, x, y, "")
                       : LLVMBuildMul(b, x, y, "");
    case TN_OP_DIV:
      if (is_float) return LLVMBuildFDiv(b, x, y, "");
      return is_bool ? LLVMBuildAnd(b, x, y, "") : int_divide(e, dtype, false, x, y);
    case TN_OP_REM:
      if (is_float) return NULL;
      return is_bool ? zero_like(x) : int_divide(e, dtype, true, x, y);
    case TN_OP_POW:
      if (is_float) return NULL;
      return is_bool ? LLVMBuildOr(b, x, LLVMBuildNot(b, y, ""), "") : int_power(e, dtype, x, y);
    case TN_OP_MIN: return extreme(e, false, dtype, x, y);
    case TN_OP_MAX: return extreme(e, true, dtype, x, y);
    case TN_OP_AND: return LLVMBuildAnd(b, x, y, "");
    case TN_OP_OR: return LLVMBuildOr(b, x, y, "");
    case TN_OP_XOR: return LLVMBuildXor(b, x, y, "");
    case TN_OP_SHL:
    case TN_OP_SHR_A:
    case TN_OP_SHR_L: return is_bool || is_float ? NULL : shift(e, op, dtype, x, y);
    default: return NULL;
  }
}

// Operations on f16 and bf16 values whose f32 results need no rounding.
static bool gives_values_of_its_type(int op) {
  switch (op) {
    case TN_OP_NEG:
    case TN_OP_ABS:
    case TN_OP_SIGN:
    case TN_OP_CEIL:
    case TN_OP_FLOOR:
    case TN_OP_TRUNC:
    case TN_OP_ROUND_EVEN:
    case TN_OP_ROUND_AFZ:
    case TN_OP_MIN:
    case TN_OP_MAX:
    case TN_OP_NEXTAFTER: return true;
    default: return false;
  }
}

LLVMValueRef tn_emit_elementwise(tn_emit_t* e, const tn_kernel_inst_t* inst, LLVMValueRef a,
                                 LLVMValueRef b, LLVMValueRef c) {
  const tn_kernel_inst_t* first = &e->program->inst[inst->a];
  LLVMValueRef result;
  switch (inst->op) {
    case TN_OP_CONVERT: return tn_emit_convert(e, inst->dtype, first->dtype, a);
    case TN_OP_BITCAST: return tn_emit_bitcast(e, inst->dtype, first->dtype, a);
    case TN_OP_COMPARE: return compare(e, inst->index, first->dtype, a, b);
    case TN_OP_SELECT: return LLVMBuildSelect(e->b, a, b, c, "");
    case TN_OP_CLAMP: return extreme(e, false, inst->dtype, extreme(e, true, inst->dtype, b, a), c);
    case TN_OP_FMA:
      result = tn_emit_is_float(inst->dtype)
                   ? tn_emit_fma(e, a, b, c)
                   : LLVMBuildAdd(e->b, LLVMBuildMul(e->b, a, b, ""), c, "");
      return tn_emit_round_arithmetic(e, inst->dtype, result);
    case TN_OP_IS_FINITE: return unary(e, inst->op, first->dtype, a);
    default: break;
  }
  result = unary(e, inst->op, inst->dtype, a);
  if (!result && b) result = binary(e, inst->op, inst->dtype, a, b);
  if (!result) result = tn_emit_math(e, inst->op, inst->dtype, a, b);
  if (!result) {
    tn_emit_fail(e, TN_UNIMPLEMENTED, "kernel program: no code for operation %d on dtype %d",
                 inst->op, inst->dtype);
    return LLVMConstNull(tn_emit_vector(e, tn_emit_element_type(e, inst->dtype)));
  }
  if (gives_values_of_its_type(inst->op)) return result;
  const bool is_arithmetic = inst->op == TN_OP_ADD || inst->op == TN_OP_SUB ||
                             inst->op == TN_OP_MUL || inst->op == TN_OP_DIV ||
                             inst->op == TN_OP_SQRT;
  return is_arithmetic ? tn_emit_round_arithmetic(e, inst->dtype, result)
                       : tn_emit_round(e, inst->dtype, result);
}

LLVMValueRef tn_emit_combine(tn_emit_t* e, int kind, int dtype, LLVMValueRef a, LLVMValueRef b) {
  switch (kind) {
    case TN_REDUCE_SUM: return binary(e, TN_OP_ADD, dtype, a, b);
    case TN_REDUCE_PROD: return binary(e, TN_OP_MUL, dtype, a, b);
    case TN_REDUCE_MAX: return extreme(e, true, dtype, a, b);
    case TN_REDUCE_MIN: return extreme(e, false, dtype, a, b);
    case TN_REDUCE_AND: return LLVMBuildAnd(e->b, a, b, "");
    default: return LLVMBuildOr(e->b, a, b, "");
  }
}

LLVMValueRef tn_emit_identity(tn_emit_t* e, int kind, int dtype) {
  LLVMTypeRef element = tn_emit_element_type(e, dtype);
  if (tn_emit_is_float(dtype)) {
    const double infinity = __builtin_inf();
    const double value = kind == TN_REDUCE_PROD  ? 1
                         : kind == TN_REDUCE_MAX ? -infinity
                         : kind == TN_REDUCE_MIN ? infinity
                                                 : 0;
    return tn_emit_float(e, element, value);
  }
  const unsigned width = LLVMGetIntTypeWidth(element);
  const uint64_t top = UINT64_C(1) << (width - 1);
  const bool is_signed = tn_emit_is_signed(dtype);
  switch (kind) {
    case TN_REDUCE_PROD: return tn_emit_int(e, element, 1);
    case TN_REDUCE_MAX: return tn_emit_int(e, element, is_signed ? top : 0);
    case TN_REDUCE_MIN: return tn_emit_int(e, element, is_signed ? top - 1 : UINT64_MAX);
    case TN_REDUCE_AND: return tn_emit_int(e, element, UINT64_MAX);
    default: return tn_emit_int(e, element, 0);
  }
}

int tn_emit_inst_cost(const tn_kernel_program_t* program, int i) {
  const tn_kernel_inst_t* inst = &program->inst[i];
  const bool is_float = tn_emit_is_float(inst->dtype);
  if (inst->op == TN_KOP_LOAD || inst->op == TN_KOP_STORE)
    return program->operand[inst->index].vector == TN_OPERAND_STRIDED ? 8 : 0;  // lane by lane
  if (inst->op >= TN_KOP_LOAD) return 0;
  int cost = tn_emit_is_small_float(inst->dtype) ? 6 : 1;
  if ((inst->op >= TN_OP_RSQRT && inst->op <= TN_OP_DIGAMMA) || inst->op == TN_OP_ATAN2) cost += 20;
  if (inst->op == TN_OP_POW) cost += 60;
  if ((inst->op == TN_OP_DIV || inst->op == TN_OP_REM) && !is_float) cost += 30;
  if (inst->op == TN_OP_CONVERT || inst->op == TN_OP_MAX || inst->op == TN_OP_MIN ||
      inst->op == TN_OP_CLAMP)
    cost += 4;
  return cost;
}
