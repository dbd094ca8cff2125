// Philox4x32-10 random numbers, a function of {seed, offset} and the element's index.
//
// The key is the seed (low word first), the counter is {low, high of offset + i / 4, 0, 0}; word i mod 4 is
// element i (u64: offset + i / 2, words 2 (i mod 2) and 2 (i mod 2) + 1, low word first). |pool| may be NULL.
#ifndef TN_KERNELS_RANDOM_H_
#define TN_KERNELS_RANDOM_H_

#include <stdint.h>

#include "src/base/pool.h"
#include "tn/dtype.h"

// One counter's four words.
void tn_random_philox(uint64_t seed, uint64_t counter, uint32_t out_words[4]);
// Random bits of |dtype| U32 or U64 (tn_rng_bits); state = {seed, offset}.
void tn_random_bits(tn_pool_t* pool, tn_dtype_t dtype, const uint64_t state[2], int64_t count,
                    void* out);
// Uniform in [0, 1): the upper 24 bits of word i times 2^-24.
void tn_random_uniform(tn_pool_t* pool, const uint64_t state[2], int64_t count, float* out);

#endif  // TN_KERNELS_RANDOM_H_
