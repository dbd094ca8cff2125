#include "base/hash.h"

#include <string.h>

// ---- 64-bit hash: one 64x64->128 multiplication per 16 bytes --------------------------------------------------

static const uint64_t multipliers[2] = {UINT64_C(0xA0761D6478BD642F), UINT64_C(0x8EBC6AF09C88C6E3)};

static inline uint64_t load64(const uint8_t* bytes) {
  uint64_t word;
  memcpy(&word, bytes, 8);
  return word;
}

static inline uint64_t load32(const uint8_t* bytes) {
  uint32_t word;
  memcpy(&word, bytes, 4);
  return word;
}

static inline uint64_t fold(uint64_t a, uint64_t b) {
  const __uint128_t product = (__uint128_t)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t tn_hash_bytes(const void* data, size_t size, uint64_t seed) {
  const uint8_t* bytes = data;
  uint64_t hash = fold(seed ^ multipliers[0], (uint64_t)size ^ multipliers[1]);
  size_t left = size;
  if (left >
      32) {  // two chains run side by side: the multiplication has a latency of 3 to 4 cycles
    uint64_t other = hash ^ multipliers[0];
    for (; left > 32; left -= 32, bytes += 32) {
      hash = fold(load64(bytes) ^ multipliers[0], load64(bytes + 8) ^ hash);
      other = fold(load64(bytes + 16) ^ multipliers[1], load64(bytes + 24) ^ other);
    }
    hash ^= other;
  }
  for (; left > 16; left -= 16, bytes += 16)
    hash = fold(load64(bytes) ^ multipliers[0], load64(bytes + 8) ^ hash);
  uint64_t a = 0, b = 0;
  if (left >= 8) {  // the two words overlap and cover 8 to 16 bytes
    a = load64(bytes);
    b = load64(bytes + left - 8);
  } else if (left >= 4) {
    a = load32(bytes);
    b = load32(bytes + left - 4);
  } else if (left > 0) {
    a = (uint64_t)bytes[0] << 16 | (uint64_t)bytes[left >> 1] << 8 | bytes[left - 1];
  }
  return fold(fold(a ^ multipliers[1], b ^ hash), hash ^ multipliers[0]);
}

// ---- BLAKE3, written from its specification; portable, sequential ---------------------------------------------

enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8, CHUNK_BLOCKS = 16, BLOCK = 64 };

static const uint32_t initial[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
// Order of the message words in each round: every row is the one before it, permuted by the second row.
static const uint8_t schedule[7][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
    {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
    {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13},
};

static inline uint32_t rotate(uint32_t word, int bits) {
  return word >> bits | word << (32 - bits);
}

static inline void mix(uint32_t v[16], int a, int b, int c, int d, uint32_t x, uint32_t y) {
  v[a] += v[b] + x;
  v[d] = rotate(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = rotate(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 7);
}

// One compression; |out| may be |chaining|. Only the first half of the output is needed for 256 bits.
static void compress(const uint32_t chaining[8], const uint32_t message[16], uint64_t counter,
                     uint32_t size, uint32_t flags, uint32_t out[8]) {
  uint32_t v[16];
  memcpy(v, chaining, 32);
  memcpy(v + 8, initial, 16);
  v[12] = (uint32_t)counter;
  v[13] = (uint32_t)(counter >> 32);
  v[14] = size;
  v[15] = flags;
#pragma GCC unroll 7  // the schedule becomes constants and the state stays in registers
  for (int round = 0; round < 7; ++round) {
    const uint8_t* order = schedule[round];
    mix(v, 0, 4, 8, 12, message[order[0]], message[order[1]]);
    mix(v, 1, 5, 9, 13, message[order[2]], message[order[3]]);
    mix(v, 2, 6, 10, 14, message[order[4]], message[order[5]]);
    mix(v, 3, 7, 11, 15, message[order[6]], message[order[7]]);
    mix(v, 0, 5, 10, 15, message[order[8]], message[order[9]]);
    mix(v, 1, 6, 11, 12, message[order[10]], message[order[11]]);
    mix(v, 2, 7, 8, 13, message[order[12]], message[order[13]]);
    mix(v, 3, 4, 9, 14, message[order[14]], message[order[15]]);
  }
  for (int i = 0; i < 8; ++i) out[i] = v[i] ^ v[i + 8];
}

static void words_of(const uint8_t block[BLOCK], uint32_t out[16]) {
  for (int i = 0; i < 16; ++i)
    out[i] = (uint32_t)block[4 * i] | (uint32_t)block[4 * i + 1] << 8 |
             (uint32_t)block[4 * i + 2] << 16 | (uint32_t)block[4 * i + 3] << 24;
}

static void parent(const uint32_t left[8], const uint32_t right[8], uint32_t flags,
                   uint32_t out[8]) {
  uint32_t message[16];
  memcpy(message, left, 32);
  memcpy(message + 8, right, 32);
  compress(initial, message, 0, BLOCK, PARENT | flags, out);
}

void tn_blake3_init(tn_blake3_t* state) {
  memset(state, 0, sizeof(*state));
  memcpy(state->chunk, initial, sizeof(initial));
}

// Closes a full chunk that is not the last one: merges the subtrees that became complete.
static void push_chunk(tn_blake3_t* state, uint32_t value[8]) {
  uint64_t count = ++state->chunk_count;
  for (; (count & 1) == 0; count >>= 1) parent(state->stack[--state->stack_size], value, 0, value);
  memcpy(state->stack[state->stack_size++], value, 32);
}

void tn_blake3_update(tn_blake3_t* state, const void* data, size_t size) {
  const uint8_t* bytes = data;
  while (size > 0) {
    if (state->block_size == BLOCK) {  // more input follows, so the held block is not the last one
      uint32_t message[16];
      words_of(state->block, message);
      const uint32_t start = state->block_count == 0 ? CHUNK_START : 0;
      if (state->block_count < CHUNK_BLOCKS - 1) {
        compress(state->chunk, message, state->chunk_count, BLOCK, start, state->chunk);
        ++state->block_count;
      } else {
        uint32_t value[8];
        compress(state->chunk, message, state->chunk_count, BLOCK, start | CHUNK_END, value);
        push_chunk(state, value);
        memcpy(state->chunk, initial, sizeof(initial));
        state->block_count = 0;
      }
      state->block_size = 0;
    }
    const size_t space = BLOCK - state->block_size, take = size < space ? size : space;
    memcpy(state->block + state->block_size, bytes, take);
    state->block_size += (uint32_t)take;
    bytes += take;
    size -= take;
  }
}

void tn_blake3_final(const tn_blake3_t* state, uint8_t out_digest[TN_BLAKE3_SIZE]) {
  uint8_t block[BLOCK] = {0};
  uint32_t message[16], value[8];
  memcpy(block, state->block, state->block_size);
  words_of(block, message);
  uint32_t index = state->stack_size;
  const uint32_t flags =
      (state->block_count == 0 ? CHUNK_START : 0) | CHUNK_END | (index == 0 ? ROOT : 0);
  compress(state->chunk, message, state->chunk_count, state->block_size, flags, value);
  while (index-- > 0) parent(state->stack[index], value, index == 0 ? ROOT : 0, value);
  for (int i = 0; i < 8; ++i)
    for (int byte = 0; byte < 4; ++byte) out_digest[4 * i + byte] = (uint8_t)(value[i] >> 8 * byte);
}

void tn_blake3(const void* data, size_t size, uint8_t out_digest[TN_BLAKE3_SIZE]) {
  tn_blake3_t state;
  tn_blake3_init(&state);
  tn_blake3_update(&state, data, size);
  tn_blake3_final(&state, out_digest);
}

void tn_blake3_hex(const uint8_t digest[TN_BLAKE3_SIZE], char out_text[2 * TN_BLAKE3_SIZE + 1]) {
  for (int i = 0; i < TN_BLAKE3_SIZE; ++i) {
    out_text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    out_text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  out_text[2 * TN_BLAKE3_SIZE] = 0;
}
