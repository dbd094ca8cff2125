// Transcendental functions. f32: the steps of the shared recipes, so results are those of the interpreter bit for bit.
// f64, and what has no recipe: one call per vector to a C function that works on the lanes in memory.
#include <string.h>

#include "base/math_recipes.h"
#include "codegen/llvm/emit.h"
#include "codegen/math_calls.h"

typedef struct tn_steps {
  LLVMValueRef value[TN_MATH_MAX_STEPS];  // of 'I' steps: i32 lanes, or <n x i1> for masks
} tn_steps_t;

static bool is_mask(const tn_emit_t* e, LLVMValueRef x) {
  return LLVMGetElementType(LLVMTypeOf(x)) == e->i1;
}
static LLVMValueRef as_int(tn_emit_t* e, LLVMValueRef x) {
  return is_mask(e, x) ? LLVMBuildSExt(e->b, x, tn_emit_vector(e, e->i32), "") : x;
}
static LLVMValueRef as_mask(tn_emit_t* e, LLVMValueRef x) {
  return is_mask(e, x) ? x : LLVMBuildICmp(e->b, LLVMIntSLT, x, LLVMConstNull(LLVMTypeOf(x)), "");
}

// |function| over the lanes of |x| (and |y|), through memory. See codegen/math_calls.h.
static LLVMValueRef call_lanes(tn_emit_t* e, const char* symbol, int function, LLVMValueRef x,
                               LLVMValueRef y) {
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef slots[3];
  for (int i = 0; i < 3; ++i) {
    slots[i] = i == 1 && !y ? slots[0] : tn_emit_alloca(e, type, 64);
    if (i < 2 && (i == 0 || y))
      LLVMSetAlignment(LLVMBuildStore(e->b, i == 0 ? x : y, slots[i]), 64);
  }
  LLVMTypeRef params[] = {e->i32, e->ptr, e->ptr, e->ptr, e->i64};
  LLVMTypeRef signature = LLVMFunctionType(e->void_type, params, 5, 0);
  LLVMValueRef callee = LLVMGetNamedFunction(e->module, symbol);
  if (!callee) callee = LLVMAddFunction(e->module, symbol, signature);
  LLVMValueRef args[] = {LLVMConstInt(e->i32, (unsigned)function, 0), slots[0], slots[1], slots[2],
                         tn_emit_i64(e, e->is_uniform ? 1 : e->lanes)};
  LLVMBuildCall2(e->b, signature, callee, args, 5, "");
  if (e->is_uniform) {
    LLVMTypeRef element = LLVMGetElementType(type);
    return tn_emit_splat(e, LLVMBuildLoad2(e->b, element, slots[2], ""));
  }
  LLVMValueRef result = LLVMBuildLoad2(e->b, type, slots[2], "");
  LLVMSetAlignment(result, 64);
  return result;
}

// mask ? f(x) : y, computing f only if a lane needs it: a call out of the hot path.
static LLVMValueRef rare(tn_emit_t* e, LLVMValueRef mask, LLVMValueRef y, LLVMValueRef x,
                         int function) {
  LLVMTypeRef bits = LLVMIntTypeInContext(e->context, (unsigned)e->lanes);
  LLVMValueRef any = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, mask, bits, ""),
                                   LLVMConstNull(bits), "");
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b), cold = tn_emit_block(e),
                    join = tn_emit_block(e);
  LLVMValueRef branch = LLVMBuildCondBr(e->b, any, cold, join);
  LLVMMetadataRef weights[] = {
      LLVMMDStringInContext2(e->context, "branch_weights", 14),
      LLVMValueAsMetadata(LLVMConstInt(e->i32, 1, 0)),
      LLVMValueAsMetadata(LLVMConstInt(e->i32, 100000, 0)),
  };
  LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->context, "prof", 4),
                  LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, weights, 3)));
  tn_emit_enter(e, cold);
  // Masks must not live across blocks (they would be taken apart), so the call selects by itself: near lanes too
  // get the value of the whole function, which is the same.
  const int whole = function == TN_MATH_SIN_FAR   ? TN_MATH_SIN
                    : function == TN_MATH_COS_FAR ? TN_MATH_COS
                                                  : TN_MATH_TAN;
  LLVMValueRef far = call_lanes(e, TN_MATH_CALL_F32, whole, x, NULL);
  LLVMBuildBr(e->b, join);
  tn_emit_enter(e, join);
  LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(y), "");
  LLVMAddIncoming(phi, (LLVMValueRef[]){y, far}, (LLVMBasicBlockRef[]){here, cold}, 2);
  return phi;
}

static LLVMValueRef compare_select(tn_emit_t* e, LLVMRealPredicate predicate, LLVMValueRef a,
                                   LLVMValueRef b) {
  return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, predicate, a, b, ""), a, b, "");
}

static LLVMValueRef bit_step(tn_emit_t* e, int op, LLVMValueRef a, LLVMValueRef b) {
  if (!is_mask(e, a) || !is_mask(e, b)) {
    a = as_int(e, a);
    b = as_int(e, b);
  }
  return op == TN_MATH_OP_I_AND  ? LLVMBuildAnd(e->b, a, b, "")
         : op == TN_MATH_OP_I_OR ? LLVMBuildOr(e->b, a, b, "")
                                 : LLVMBuildXor(e->b, a, b, "");
}

static LLVMValueRef step(tn_emit_t* e, const tn_math_step_t* s, tn_steps_t* steps, LLVMValueRef x,
                         LLVMValueRef y) {
  LLVMBuilderRef b = e->b;
  LLVMTypeRef fv = tn_emit_vector(e, e->f32), iv = tn_emit_vector(e, e->i32),
              dv = tn_emit_vector(e, e->f64);
  LLVMValueRef p = s->a >= 0 ? steps->value[s->a] : NULL, q = s->b >= 0 ? steps->value[s->b] : NULL;
  LLVMValueRef r = s->c >= 0 ? steps->value[s->c] : NULL;
  switch ((tn_math_op_t)s->op) {
    case TN_MATH_OP_F_ARG: return s->imm.i == 0 ? x : y;
    case TN_MATH_OP_F_CONST: {
      uint32_t bits;
      memcpy(&bits, &s->imm.f, sizeof bits);
      return tn_emit_f32_bits(e, bits);
    }
    case TN_MATH_OP_I_CONST: return tn_emit_int(e, e->i32, (uint32_t)s->imm.i);
    case TN_MATH_OP_D_CONST: return tn_emit_float(e, e->f64, s->imm.d);
    case TN_MATH_OP_F_ADD:
    case TN_MATH_OP_D_ADD: return LLVMBuildFAdd(b, p, q, "");
    case TN_MATH_OP_F_SUB:
    case TN_MATH_OP_D_SUB: return LLVMBuildFSub(b, p, q, "");
    case TN_MATH_OP_F_MUL:
    case TN_MATH_OP_D_MUL: return LLVMBuildFMul(b, p, q, "");
    case TN_MATH_OP_F_DIV:
    case TN_MATH_OP_D_DIV: return LLVMBuildFDiv(b, p, q, "");
    case TN_MATH_OP_F_FMA:
    case TN_MATH_OP_D_FMA: return tn_emit_fma(e, p, q, r);
    case TN_MATH_OP_F_SQRT:
    case TN_MATH_OP_D_SQRT: return tn_emit_intrinsic1(e, "llvm.sqrt", p);
    case TN_MATH_OP_F_NEG: return LLVMBuildFNeg(b, p, "");
    case TN_MATH_OP_F_ABS: return tn_emit_intrinsic1(e, "llvm.fabs", p);
    case TN_MATH_OP_F_MIN: return compare_select(e, LLVMRealOLT, p, q);
    case TN_MATH_OP_F_MAX: return compare_select(e, LLVMRealOGT, p, q);
    case TN_MATH_OP_I_LT: return LLVMBuildFCmp(b, LLVMRealOLT, p, q, "");
    case TN_MATH_OP_I_LE: return LLVMBuildFCmp(b, LLVMRealOLE, p, q, "");
    case TN_MATH_OP_I_EQ: return LLVMBuildFCmp(b, LLVMRealOEQ, p, q, "");
    case TN_MATH_OP_F_SEL:
    case TN_MATH_OP_D_SEL: return LLVMBuildSelect(b, as_mask(e, p), q, r, "");
    case TN_MATH_OP_I_BITS: return LLVMBuildBitCast(b, p, iv, "");
    case TN_MATH_OP_F_BITS: return LLVMBuildBitCast(b, as_int(e, p), fv, "");
    case TN_MATH_OP_I_FROM_F: return LLVMBuildFPToSI(b, p, iv, "");
    case TN_MATH_OP_F_FROM_I: return LLVMBuildSIToFP(b, as_int(e, p), fv, "");
    case TN_MATH_OP_I_ADD: return LLVMBuildAdd(b, as_int(e, p), as_int(e, q), "");
    case TN_MATH_OP_I_SUB: return LLVMBuildSub(b, as_int(e, p), as_int(e, q), "");
    case TN_MATH_OP_I_AND:
    case TN_MATH_OP_I_OR:
    case TN_MATH_OP_I_XOR: return bit_step(e, s->op, p, q);
    case TN_MATH_OP_I_SHL:
      return LLVMBuildShl(b, as_int(e, p), tn_emit_int(e, e->i32, (uint32_t)s->imm.i), "");
    case TN_MATH_OP_I_SHR:
      return LLVMBuildAShr(b, as_int(e, p), tn_emit_int(e, e->i32, (uint32_t)s->imm.i), "");
    case TN_MATH_OP_I_SRL:
      return LLVMBuildLShr(b, as_int(e, p), tn_emit_int(e, e->i32, (uint32_t)s->imm.i), "");
    case TN_MATH_OP_I_IEQ: return LLVMBuildICmp(b, LLVMIntEQ, as_int(e, p), as_int(e, q), "");
    case TN_MATH_OP_I_ILT: return LLVMBuildICmp(b, LLVMIntSLT, as_int(e, p), as_int(e, q), "");
    case TN_MATH_OP_D_FROM_F: return LLVMBuildFPExt(b, p, dv, "");
    case TN_MATH_OP_F_FROM_D: return LLVMBuildFPTrunc(b, p, fv, "");
    case TN_MATH_OP_F_RARE: return rare(e, as_mask(e, p), q, r, s->imm.i);
    default: return NULL;
  }
}

static LLVMValueRef recipe(tn_emit_t* e, tn_math_fn_t function, LLVMValueRef x, LLVMValueRef y) {
  tn_math_step_t list[TN_MATH_MAX_STEPS];
  tn_steps_t steps;
  const int count = tn_math_recipe(function, list);
  for (int i = 0; i < count; ++i) steps.value[i] = step(e, &list[i], &steps, x, y);
  return steps.value[count - 1];
}

LLVMValueRef tn_emit_math(tn_emit_t* e, int op, int dtype, LLVMValueRef a, LLVMValueRef b) {
  if (!tn_emit_is_float(dtype)) return NULL;
  const int function = tn_math_call_function(op, dtype);
  if (function < 0) return NULL;
  if (dtype == TN_F64 && op == TN_OP_RSQRT)
    return LLVMBuildFDiv(e->b, tn_emit_float(e, e->f64, 1), tn_emit_intrinsic1(e, "llvm.sqrt", a),
                         "");
  if (dtype == TN_F64) return call_lanes(e, TN_MATH_CALL_F64, function, a, b);
  if (function >= TN_MATH_COUNT_OF_FUNCTIONS)
    return call_lanes(e, TN_MATH_CALL_F32, function, a, b);
  return recipe(e, (tn_math_fn_t)function, a, b);
}
