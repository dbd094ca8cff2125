// Constants, iota, random bits.
#include <string.h>

#include "ir/interp_internal.h"

tn_status_t tn_interp_constant(const tn_node_t* node, const void* const* operands,
                               void* const* results) {
  (void)operands;
  const tn_attr_t* value = tn_node_attr(node, TN_ATTR_VALUE);
  const size_t size = tn_dtype_size(node->types[0].dtype);
  const int64_t count = tn_type_element_count(&node->types[0]);
  const bool is_splat = (size_t)value->count == size;
  for (int64_t i = 0; i < count; ++i) {
    memcpy((uint8_t*)results[0] + (size_t)i * size,
           value->as.bytes + (is_splat ? 0 : (size_t)i * size), size);
  }
  return TN_OK;
}

tn_status_t tn_interp_iota(const tn_node_t* node, const void* const* operands,
                           void* const* results) {
  (void)operands;
  const tn_type_t* type = &node->types[0];
  const int64_t dimension = tn_node_int(node, TN_ATTR_DIMENSION, 0),
                count = tn_type_element_count(type);
  const size_t size = tn_dtype_size(type->dtype);
  int64_t strides[TN_MAX_RANK];
  tn_interp_strides(type, strides);
  for (int64_t i = 0; i < count; ++i) {
    const tn_scalar_t value =
        tn_scalar_from_int(type->dtype, i / strides[dimension] % type->dims[dimension]);
    memcpy((uint8_t*)results[0] + (size_t)i * size, &value, size);
  }
  return TN_OK;
}

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011).
static void philox(uint64_t seed, uint64_t counter, uint32_t out_words[4]) {
  uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = (uint64_t)0xD2511F53u * x[0], b = (uint64_t)0xCD9E8D57u * x[2];
    const uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                           (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
    memcpy(x, y, sizeof x);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  memcpy(out_words, x, sizeof x);
}

tn_status_t tn_interp_rng_bits(const tn_node_t* node, const void* const* operands,
                               void* const* results) {
  uint64_t state[2];
  memcpy(state, operands[0], sizeof state);
  const int64_t count = tn_type_element_count(&node->types[0]);
  const int64_t bytes = count * (int64_t)tn_dtype_size(node->types[0].dtype);
  for (int64_t at = 0; at < bytes; at += 16) {
    uint32_t words[4];
    philox(state[0], state[1] + (uint64_t)(at / 16), words);
    memcpy((uint8_t*)results[0] + at, words, (size_t)(bytes - at < 16 ? bytes - at : 16));
  }
  return TN_OK;
}
