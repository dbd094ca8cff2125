// Elements and indices: widening, rounding, combining, stepping, strided copies.
#include "ir/interp_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float_bits.h"

tn_elem_kind_t tn_elem_kind(tn_dtype_t dtype) {
  switch (dtype) {
    case TN_F64: return TN_ELEM_F64;
    case TN_C64: return TN_ELEM_C64;
    case TN_C128: return TN_ELEM_C128;
    default: break;
  }
  switch (tn_dtype_class(dtype)) {
    case TN_CLASS_FLOAT: return TN_ELEM_F32;
    case TN_CLASS_SIGNED: return TN_ELEM_I64;
    default: return TN_ELEM_U64;
  }
}

#define EACH(statement) \
  for (int64_t i = 0; i < count; ++i) statement

void tn_elems_load(tn_dtype_t dtype, const void* data, int64_t start, int64_t count,
                   tn_elems_t* out) {
  if (count <= 0) return;
  const uint8_t* p = (const uint8_t*)data + (size_t)start * tn_dtype_size(dtype);
  const size_t size = (size_t)count * tn_dtype_size(dtype);
  union {
    int8_t i8[TN_CHUNK];
    int16_t i16[TN_CHUNK];
    int32_t i32[TN_CHUNK];
    uint8_t u8[TN_CHUNK];
    uint16_t u16[TN_CHUNK];
    uint32_t u32[TN_CHUNK];
  } raw;
  switch (dtype) {
    case TN_F32:
    case TN_F64:
    case TN_I64:
    case TN_U64:
    case TN_C64:
    case TN_C128: memcpy(out, p, size); return;
    default: memcpy(&raw, p, size); break;
  }
  switch (dtype) {
    case TN_BOOL: EACH(out->u64[i] = raw.u8[i] != 0); break;
    case TN_I8: EACH(out->i64[i] = raw.i8[i]); break;
    case TN_I16: EACH(out->i64[i] = raw.i16[i]); break;
    case TN_I32: EACH(out->i64[i] = raw.i32[i]); break;
    case TN_U8: EACH(out->u64[i] = raw.u8[i]); break;
    case TN_U16: EACH(out->u64[i] = raw.u16[i]); break;
    case TN_U32: EACH(out->u64[i] = raw.u32[i]); break;
    case TN_F16: EACH(out->f32[i] = tn_f16_to_f32(raw.u16[i])); break;
    case TN_BF16: EACH(out->f32[i] = tn_bf16_to_f32(raw.u16[i])); break;
    case TN_F8E4M3FN: EACH(out->f32[i] = tn_f8e4m3fn_to_f32(raw.u8[i])); break;
    case TN_F8E5M2: EACH(out->f32[i] = tn_f8e5m2_to_f32(raw.u8[i])); break;
    default: break;
  }
}

void tn_elems_store(tn_dtype_t dtype, void* data, int64_t start, int64_t count,
                    const tn_elems_t* lanes) {
  if (count <= 0) return;
  uint8_t* p = (uint8_t*)data + (size_t)start * tn_dtype_size(dtype);
  const size_t size = (size_t)count * tn_dtype_size(dtype);
  union {
    uint8_t u8[TN_CHUNK];
    uint16_t u16[TN_CHUNK];
    uint32_t u32[TN_CHUNK];
  } raw;
  switch (dtype) {
    case TN_F32:
    case TN_F64:
    case TN_I64:
    case TN_U64:
    case TN_C64:
    case TN_C128: memcpy(p, lanes, size); return;
    case TN_BOOL: EACH(raw.u8[i] = lanes->u64[i] != 0); break;
    case TN_I8:
    case TN_U8: EACH(raw.u8[i] = (uint8_t)lanes->u64[i]); break;
    case TN_I16:
    case TN_U16: EACH(raw.u16[i] = (uint16_t)lanes->u64[i]); break;
    case TN_I32:
    case TN_U32: EACH(raw.u32[i] = (uint32_t)lanes->u64[i]); break;
    case TN_F16: EACH(raw.u16[i] = tn_f32_to_f16(lanes->f32[i])); break;
    case TN_BF16: EACH(raw.u16[i] = tn_f32_to_bf16(lanes->f32[i])); break;
    case TN_F8E4M3FN: EACH(raw.u8[i] = tn_f32_to_f8e4m3fn(lanes->f32[i])); break;
    case TN_F8E5M2: EACH(raw.u8[i] = tn_f32_to_f8e5m2(lanes->f32[i])); break;
    default: return;
  }
  memcpy(p, &raw, size);
}

tn_elem_t tn_elem_load(tn_dtype_t dtype, const void* data, int64_t index) {
  tn_elem_t lane = {.c128 = {0, 0}};
  const uint8_t* p = (const uint8_t*)data + (size_t)index * tn_dtype_size(dtype);
  if (dtype == TN_F32) {  // the usual case, without the detour
    memcpy(&lane.f32, p, sizeof lane.f32);
    return lane;
  }
  tn_elems_t lanes;
  tn_elems_load(dtype, data, index, 1, &lanes);
  memcpy(&lane, &lanes, sizeof lane);
  return lane;
}

void tn_elem_store(tn_dtype_t dtype, void* data, int64_t index, tn_elem_t value) {
  tn_elems_t lanes;
  memcpy(&lanes, &value, sizeof value);
  tn_elems_store(dtype, data, index, 1, &lanes);
}

tn_elem_t tn_elem_identity(tn_reduce_kind_t kind, tn_dtype_t dtype) {
  tn_elem_t lane = {.c128 = {0, 0}};
  const tn_elem_kind_t lanes = tn_elem_kind(dtype);
  const int width = (int)tn_dtype_size(dtype) * 8;
  const bool is_max = kind == TN_REDUCE_MAX;
  switch (kind) {
    case TN_REDUCE_PROD:
      switch (lanes) {
        case TN_ELEM_F32: lane.f32 = 1; break;
        case TN_ELEM_F64: lane.f64 = 1; break;
        case TN_ELEM_I64:
        case TN_ELEM_U64: lane.i64 = 1; break;
        case TN_ELEM_C64: lane.c64[0] = 1; break;
        case TN_ELEM_C128: lane.c128[0] = 1; break;
      }
      break;
    case TN_REDUCE_MAX:
    case TN_REDUCE_MIN:
      switch (lanes) {
        case TN_ELEM_F32: lane.f32 = is_max ? -INFINITY : INFINITY; break;
        case TN_ELEM_F64: lane.f64 = is_max ? -(double)INFINITY : (double)INFINITY; break;
        case TN_ELEM_I64:
          lane.i64 = is_max ? -(int64_t)((UINT64_C(1) << (width - 1)) - 1) - 1
                            : (int64_t)((UINT64_C(1) << (width - 1)) - 1);
          break;
        case TN_ELEM_U64:
          lane.u64 = is_max ? 0 : dtype == TN_BOOL ? 1 : UINT64_MAX >> (64 - width);
          break;
        case TN_ELEM_C64:
        case TN_ELEM_C128: break;
      }
      break;
    case TN_REDUCE_AND: lane.u64 = dtype == TN_BOOL ? 1 : UINT64_MAX; break;
    case TN_REDUCE_SUM:
    case TN_REDUCE_OR:
    case TN_REDUCE_ASSIGN: break;
  }
  return lane;
}

tn_elem_t tn_elem_combine(tn_reduce_kind_t kind, tn_elem_kind_t lanes, tn_elem_t a, tn_elem_t b) {
  const bool is_max = kind == TN_REDUCE_MAX;
  switch (kind) {
    case TN_REDUCE_SUM:
      switch (lanes) {
        case TN_ELEM_F32: a.f32 += b.f32; break;
        case TN_ELEM_F64: a.f64 += b.f64; break;
        case TN_ELEM_I64:
        case TN_ELEM_U64: a.u64 += b.u64; break;
        case TN_ELEM_C64: a.c64[0] += b.c64[0], a.c64[1] += b.c64[1]; break;
        case TN_ELEM_C128: a.c128[0] += b.c128[0], a.c128[1] += b.c128[1]; break;
      }
      return a;
    case TN_REDUCE_PROD: {
      const tn_elem_t x = a;
      switch (lanes) {
        case TN_ELEM_F32: a.f32 *= b.f32; break;
        case TN_ELEM_F64: a.f64 *= b.f64; break;
        case TN_ELEM_I64:
        case TN_ELEM_U64: a.u64 *= b.u64; break;
        case TN_ELEM_C64:
          a.c64[0] = x.c64[0] * b.c64[0] - x.c64[1] * b.c64[1];
          a.c64[1] = x.c64[0] * b.c64[1] + x.c64[1] * b.c64[0];
          break;
        case TN_ELEM_C128:
          a.c128[0] = x.c128[0] * b.c128[0] - x.c128[1] * b.c128[1];
          a.c128[1] = x.c128[0] * b.c128[1] + x.c128[1] * b.c128[0];
          break;
      }
      return a;
    }
    case TN_REDUCE_MAX:
    case TN_REDUCE_MIN:
      switch (lanes) {
        case TN_ELEM_F32: a.f32 = tn_extreme_f32(is_max, a.f32, b.f32); break;
        case TN_ELEM_F64: a.f64 = tn_extreme_f64(is_max, a.f64, b.f64); break;
        case TN_ELEM_I64: a.i64 = (is_max ? a.i64 > b.i64 : a.i64 < b.i64) ? a.i64 : b.i64; break;
        case TN_ELEM_U64: a.u64 = (is_max ? a.u64 > b.u64 : a.u64 < b.u64) ? a.u64 : b.u64; break;
        case TN_ELEM_C64:
        case TN_ELEM_C128: break;
      }
      return a;
    case TN_REDUCE_AND: a.u64 &= b.u64; return a;
    case TN_REDUCE_OR: a.u64 |= b.u64; return a;
    case TN_REDUCE_ASSIGN: break;
  }
  return b;
}

void tn_interp_strides(const tn_type_t* type, int64_t* out_strides) {
  int64_t stride = 1;
  for (int i = type->rank - 1; i >= 0; --i) {
    out_strides[i] = stride;
    stride *= type->dims[i];
  }
}

bool tn_interp_next(int rank, const int64_t* dims, int64_t* index) {
  for (int i = rank - 1; i >= 0; --i) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

void tn_interp_copy(size_t size, int rank, const int64_t* dims, const uint8_t* src,
                    const int64_t* src_strides, uint8_t* dst, const int64_t* dst_strides) {
  int64_t index[TN_MAX_RANK] = {0};
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return;
  }
  if (rank == 0) {
    memcpy(dst, src, size);
    return;
  }
  const int64_t inner = dims[rank - 1], from = src_strides[rank - 1], to = dst_strides[rank - 1];
  do {
    const uint8_t* s = src + tn_interp_offset(rank - 1, index, src_strides) * (int64_t)size;
    uint8_t* d = dst + tn_interp_offset(rank - 1, index, dst_strides) * (int64_t)size;
    if (from == 1 && to == 1) {
      memcpy(d, s, (size_t)inner * size);
    } else {
      for (int64_t i = 0; i < inner; ++i)
        memcpy(d + i * to * (int64_t)size, s + i * from * (int64_t)size, size);
    }
  } while (tn_interp_next(rank - 1, dims, index));
}

tn_status_t tn_interp_alloc(int64_t count, size_t size, void** out_data) {
  *out_data = calloc(count > 0 ? (size_t)count : 1, size);
  if (*out_data) return TN_OK;
  return TN_ERROR(TN_RESOURCE_EXHAUSTED, "interpreter: no memory for %lld x %zu bytes",
                  (long long)count, size);
}
