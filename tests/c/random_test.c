// mirrors src/kernels/random.c
#include "src/kernels/random.h"

#include <stdlib.h>

#include "tests/c/test.h"
#include "tests/c/views.h"

// Known answers of the Random123 distribution: counter and key all zero.
TN_TEST(known_answer) {
  uint32_t words[4];
  tn_random_philox(0, 0, words);
  TN_EXPECT(words[0] == 0x6627e8d5u && words[1] == 0xe169c58du && words[2] == 0xbc57ac4cu &&
            words[3] == 0x9b00dbd8u);
}
TN_TEST(arrays_equal_single_counters) {
  const int64_t counts[] = {0, 1, 3, 4, 63, 64, 65, 4097, 20000};
  for (int c = 0; c < 9; ++c)
    for (int threads = 1; threads <= 3; ++threads) {
      const int64_t count = counts[c];
      const uint64_t state[2] = {0x123456789abcdef0ull,
                                 0xfffffff0ull};  // carries into the high word
      uint32_t* bits = malloc((size_t)count * 4 + 4);
      uint64_t* wide = malloc((size_t)count * 8 + 8);
      float* uniform = malloc((size_t)count * 4 + 4);
      tn_random_bits(test_pool(threads), TN_U32, state, count, bits);
      tn_random_bits(test_pool(threads), TN_U64, state, count, wide);
      tn_random_uniform(test_pool(threads), state, count, uniform);
      bool same = true;
      for (int64_t i = 0; i < count; ++i) {
        uint32_t words[4], two[4];
        tn_random_philox(state[0], state[1] + (uint64_t)i / 4, words);
        tn_random_philox(state[0], state[1] + (uint64_t)i / 2, two);
        same =
            same && bits[i] == words[i % 4] && uniform[i] == (float)(words[i % 4] >> 8) * 0x1p-24f;
        same = same && wide[i] == (two[i % 2 * 2] | (uint64_t)two[i % 2 * 2 + 1] << 32);
      }
      TN_EXPECT(same);
      free(bits), free(wide), free(uniform);
    }
}
