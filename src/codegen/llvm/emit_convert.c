// Conversions between element types, and the rounding of small floats.
#include "codegen/llvm/emit.h"

static LLVMTypeRef vec(const tn_emit_t* e, LLVMTypeRef element) {
  return tn_emit_vector(e, element);
}
static LLVMValueRef cast(tn_emit_t* e, LLVMValueRef x, LLVMTypeRef element) {
  return LLVMBuildBitCast(e->b, x, vec(e, element), "");
}
static LLVMValueRef ints(const tn_emit_t* e, uint64_t value) {
  return tn_emit_int(e, e->i32, value);
}

// bf16 bits of f32 in the high half, nearest even; the low half is left over. Of NaNs only those whose low half is 0
// stay what they are.
static LLVMValueRef round_bf16_numbers(tn_emit_t* e, LLVMValueRef x) {
  LLVMValueRef bits = cast(e, x, e->i32);
  LLVMValueRef odd = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, bits, ints(e, 16), ""), ints(e, 1), "");
  return LLVMBuildAdd(e->b, LLVMBuildAdd(e->b, bits, ints(e, 0x7fff), ""), odd, "");
}
// The same with one NaN.
static LLVMValueRef round_bf16_bits(tn_emit_t* e, LLVMValueRef x) {
  LLVMValueRef sum = round_bf16_numbers(e, x);
  LLVMValueRef is_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, "");
  return LLVMBuildSelect(e->b, is_nan, ints(e, 0x7fc00000u), sum, "");
}

static bool has_f16c(const tn_emit_t* e) { return e->isa >= TN_CODEGEN_AVX2; }

// Without F16C: the integer steps of tn_f32_to_f16, with subnormals rounded by adding 0.5 (an ulp of which is 2^-24).
static LLVMValueRef f16_bits(tn_emit_t* e, LLVMValueRef x) {
  if (has_f16c(e)) {
    LLVMValueRef half = LLVMBuildFPTrunc(e->b, x, vec(e, e->half), "");
    return LLVMBuildBitCast(e->b, half, vec(e, e->i16), "");
  }
  LLVMBuilderRef b = e->b;
  LLVMValueRef bits = cast(e, x, e->i32);
  LLVMValueRef sign = LLVMBuildAnd(b, LLVMBuildLShr(b, bits, ints(e, 16), ""), ints(e, 0x8000), "");
  LLVMValueRef magnitude = LLVMBuildAnd(b, bits, ints(e, 0x7fffffff), "");
  LLVMValueRef odd = LLVMBuildAnd(b, LLVMBuildLShr(b, magnitude, ints(e, 13), ""), ints(e, 1), "");
  LLVMValueRef normal = LLVMBuildSub(b, magnitude, ints(e, 112u << 23), "");
  normal = LLVMBuildAdd(b, LLVMBuildAdd(b, normal, ints(e, 0xfff), ""), odd, "");
  normal = LLVMBuildLShr(b, normal, ints(e, 13), "");
  LLVMValueRef small =
      LLVMBuildFAdd(b, cast(e, magnitude, e->f32), tn_emit_float(e, e->f32, 0.5), "");
  small = LLVMBuildSub(b, cast(e, small, e->i32), ints(e, 0x3f000000), "");
  LLVMValueRef nan =
      LLVMBuildAnd(b, LLVMBuildLShr(b, magnitude, ints(e, 13), ""), ints(e, 0x1ff), "");
  nan = LLVMBuildOr(b, nan, ints(e, 0x7e00), "");
  LLVMValueRef result = LLVMBuildSelect(
      b, LLVMBuildICmp(b, LLVMIntULT, magnitude, ints(e, 0x38800000), ""), small, normal, "");
  result = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGE, magnitude, ints(e, 0x47800000), ""),
                           ints(e, 0x7c00), result, "");
  result = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGT, magnitude, ints(e, 0x7f800000), ""), nan,
                           result, "");
  return LLVMBuildTrunc(b, LLVMBuildOr(b, result, sign, ""), vec(e, e->i16), "");
}

static LLVMValueRef f16_to_f32(tn_emit_t* e, LLVMValueRef x) {
  if (has_f16c(e)) {
    LLVMValueRef half = LLVMBuildBitCast(e->b, x, vec(e, e->half), "");
    return LLVMBuildFPExt(e->b, half, vec(e, e->f32), "");
  }
  LLVMBuilderRef b = e->b;
  LLVMValueRef wide = LLVMBuildZExt(b, x, vec(e, e->i32), "");
  LLVMValueRef sign = LLVMBuildShl(b, LLVMBuildAnd(b, wide, ints(e, 0x8000), ""), ints(e, 16), "");
  LLVMValueRef rest = LLVMBuildAnd(b, wide, ints(e, 0x7fff), "");
  LLVMValueRef shifted = LLVMBuildShl(b, rest, ints(e, 13), "");
  LLVMValueRef normal = LLVMBuildAdd(b, shifted, ints(e, 112u << 23), "");
  LLVMValueRef small = LLVMBuildFMul(b, LLVMBuildSIToFP(b, rest, vec(e, e->f32), ""),
                                     tn_emit_float(e, e->f32, 0x1p-24), "");
  LLVMValueRef result = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, rest, ints(e, 0x400), ""),
                                        cast(e, small, e->i32), normal, "");
  LLVMValueRef special = LLVMBuildOr(b, shifted, ints(e, 0x7f800000), "");
  result = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGE, rest, ints(e, 0x7c00), ""), special,
                           result, "");
  return cast(e, LLVMBuildOr(b, result, sign, ""), e->f32);
}

LLVMValueRef tn_emit_widen(tn_emit_t* e, int dtype, LLVMValueRef x) {
  switch (dtype) {
    case TN_BOOL: return LLVMBuildICmp(e->b, LLVMIntNE, x, tn_emit_int(e, e->i8, 0), "");
    case TN_F16: return f16_to_f32(e, x);
    case TN_BF16: {
      LLVMValueRef wide = LLVMBuildZExt(e->b, x, vec(e, e->i32), "");
      return cast(e, LLVMBuildShl(e->b, wide, ints(e, 16), ""), e->f32);
    }
    default: return x;
  }
}

LLVMValueRef tn_emit_narrow(tn_emit_t* e, int dtype, LLVMValueRef x) {
  switch (dtype) {
    case TN_BOOL: return LLVMBuildZExt(e->b, x, vec(e, e->i8), "");
    case TN_F16: return f16_bits(e, x);
    case TN_BF16: {  // already rounded
      LLVMValueRef high = LLVMBuildLShr(e->b, cast(e, x, e->i32), ints(e, 16), "");
      return LLVMBuildTrunc(e->b, high, vec(e, e->i16), "");
    }
    default: return x;
  }
}

LLVMValueRef tn_emit_round(tn_emit_t* e, int dtype, LLVMValueRef x) {
  switch (dtype) {
    case TN_F16: return f16_to_f32(e, f16_bits(e, x));
    case TN_BF16:
      return cast(e, LLVMBuildAnd(e->b, round_bf16_bits(e, x), ints(e, 0xffff0000u), ""), e->f32);
    default: return x;
  }
}

// After arithmetic on values of |dtype|: a NaN is then the default one or that of an operand, and its low half is 0.
LLVMValueRef tn_emit_round_arithmetic(tn_emit_t* e, int dtype, LLVMValueRef x) {
  if (dtype != TN_BF16) return tn_emit_round(e, dtype, x);
  return cast(e, LLVMBuildAnd(e->b, round_bf16_numbers(e, x), ints(e, 0xffff0000u), ""), e->f32);
}

// Float to integer of at most 32 bits, modulo 2^32 as through int64. cvttps2dq is right below 2^31; above, the low
// word of the integer is the significand shifted left, and 0 from 2^55 on (and for NaN and infinities).
static LLVMValueRef f32_to_i32(tn_emit_t* e, LLVMValueRef x) {
  LLVMBuilderRef b = e->b;
  LLVMValueRef bits = cast(e, x, e->i32);
  LLVMValueRef magnitude = LLVMBuildAnd(b, bits, ints(e, 0x7fffffff), "");
  LLVMValueRef is_plain = LLVMBuildICmp(b, LLVMIntSLT, magnitude, ints(e, 0x4f000000), "");
  LLVMValueRef plain = LLVMBuildFPToSI(b, x, vec(e, e->i32), "");
  LLVMValueRef significand =
      LLVMBuildOr(b, LLVMBuildAnd(b, bits, ints(e, 0x7fffff), ""), ints(e, 0x800000), "");
  LLVMValueRef shift =
      LLVMBuildSub(b, LLVMBuildLShr(b, magnitude, ints(e, 23), ""), ints(e, 127 + 23), "");
  LLVMValueRef is_small = LLVMBuildICmp(b, LLVMIntULT, shift, ints(e, 32), "");
  LLVMValueRef amount = LLVMBuildAnd(b, shift, ints(e, 31), "");
  LLVMValueRef low = LLVMBuildShl(b, significand, amount, "");
  low = LLVMBuildSelect(b, is_small, low, ints(e, 0), "");
  LLVMValueRef sign = LLVMBuildAShr(b, bits, ints(e, 31), "");
  low = LLVMBuildSub(b, LLVMBuildXor(b, low, sign, ""), sign, "");
  return LLVMBuildSelect(b, is_plain, plain, low, "");
}

static LLVMValueRef float_to_int(tn_emit_t* e, int to, int from, LLVMValueRef x) {
  LLVMBuilderRef b = e->b;
  LLVMTypeRef type = vec(e, tn_emit_element_type(e, to));
  const size_t size = tn_emit_dtype_size(to);
  if (size < 8 && from != TN_F64) {
    LLVMValueRef y = f32_to_i32(e, x);
    return size == 4 ? y : LLVMBuildTrunc(b, y, type, "");
  }
  // cvttss2si gives INT64_MIN outside its range, which is what the IR wants.
  LLVMValueRef y = LLVMBuildFPToSI(b, x, vec(e, e->i64), "");
  if (size < 8) return LLVMBuildTrunc(b, y, type, "");
  if (to != TN_U64) return y;
  LLVMTypeRef real = from == TN_F64 ? e->f64 : e->f32;
  LLVMValueRef limit = tn_emit_float(e, real, 0x1p63);
  LLVMValueRef is_high =
      LLVMBuildAnd(b, LLVMBuildFCmp(b, LLVMRealOGE, x, limit, ""),
                   LLVMBuildFCmp(b, LLVMRealOLT, x, tn_emit_float(e, real, 0x1p64), ""), "");
  LLVMValueRef high = LLVMBuildFPToSI(b, LLVMBuildFSub(b, x, limit, ""), vec(e, e->i64), "");
  high = LLVMBuildXor(b, high, tn_emit_int(e, e->i64, UINT64_C(1) << 63), "");
  return LLVMBuildSelect(b, is_high, high, y, "");
}

LLVMValueRef tn_emit_convert(tn_emit_t* e, int to, int from, LLVMValueRef x) {
  LLVMBuilderRef b = e->b;
  if (to == from) return x;
  LLVMTypeRef type = vec(e, tn_emit_element_type(e, to));
  if (tn_emit_is_float(from)) {
    if (to == TN_BOOL) return LLVMBuildFCmp(b, LLVMRealUNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
    if (!tn_emit_is_float(to)) return float_to_int(e, to, from, x);
    if (to == TN_F64) return LLVMBuildFPExt(b, x, type, "");
    if (from == TN_F64) x = LLVMBuildFPTrunc(b, x, type, "");
    return tn_emit_round(e, to, x);
  }
  if (tn_emit_is_float(to)) {
    LLVMValueRef y =
        tn_emit_is_signed(from) ? LLVMBuildSIToFP(b, x, type, "") : LLVMBuildUIToFP(b, x, type, "");
    return tn_emit_round(e, to, y);
  }
  if (to == TN_BOOL) return LLVMBuildICmp(b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
  const size_t from_size = tn_emit_dtype_size(from), to_size = tn_emit_dtype_size(to);
  if (from != TN_BOOL && from_size == to_size) return x;
  if (from != TN_BOOL && from_size > to_size) return LLVMBuildTrunc(b, x, type, "");
  return tn_emit_is_signed(from) ? LLVMBuildSExt(b, x, type, "") : LLVMBuildZExt(b, x, type, "");
}

LLVMValueRef tn_emit_bitcast(tn_emit_t* e, int to, int from, LLVMValueRef x) {
  if (to == from) return x;
  LLVMValueRef memory = tn_emit_narrow(e, from, x);
  return tn_emit_widen(e, to,
                       LLVMBuildBitCast(e->b, memory, vec(e, tn_emit_memory_type(e, to)), ""));
}
