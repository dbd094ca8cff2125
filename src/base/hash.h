// Hashes: a fast 64-bit one for tables in memory, BLAKE3-256 for keys on disk.
#ifndef TN_BASE_HASH_H_
#define TN_BASE_HASH_H_

#include <stddef.h>
#include <stdint.h>

// 64-bit hash of |size| bytes. Good for hash tables only: it differs between machines of other byte order, may change
// between versions, and is no defence against chosen keys.
uint64_t tn_hash_bytes(const void* data, size_t size, uint64_t seed);

// Mixes one word into a running hash.
static inline uint64_t tn_hash_mix(uint64_t hash, uint64_t word) {
  const __uint128_t product =
      (__uint128_t)(hash ^ UINT64_C(0x9E3779B97F4A7C15)) * (word ^ UINT64_C(0xE7037ED1A0B428DB));
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// BLAKE3 with a 256-bit digest. Feed any number of pieces; finish may be called once.
enum { TN_BLAKE3_SIZE = 32 };
typedef struct tn_blake3 {
  uint32_t stack[54]
                [8];  // chaining values of finished subtrees, largest first (2^54 chunks at most)
  uint32_t chunk[8];  // chaining value inside the open chunk
  uint8_t block[64];
  uint64_t chunk_count;  // chunks closed so far
  uint32_t stack_size;
  uint32_t block_count;  // blocks compressed in the open chunk
  uint32_t block_size;   // bytes held in block
} tn_blake3_t;

void tn_blake3_init(tn_blake3_t* state);
void tn_blake3_update(tn_blake3_t* state, const void* data, size_t size);
void tn_blake3_final(const tn_blake3_t* state, uint8_t out_digest[TN_BLAKE3_SIZE]);
// Digest of one piece.
void tn_blake3(const void* data, size_t size, uint8_t out_digest[TN_BLAKE3_SIZE]);
// Lower-case hexadecimal digits and a final 0.
void tn_blake3_hex(const uint8_t digest[TN_BLAKE3_SIZE], char out_text[2 * TN_BLAKE3_SIZE + 1]);

#endif  // TN_BASE_HASH_H_
