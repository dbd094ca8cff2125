// Philox over 16 counters at a time: plain loops over lanes, which the compiler turns into vectors.
#include "src/kernels/isa/random_table.h"

#include "src/kernels/isa/isa_names.h"

enum { LANES = 16 };

static void philox(uint64_t seed, uint64_t counter, int64_t groups, uint32_t* out) {
  for (int64_t group = 0; group < groups; ++group, counter += LANES, out += LANES * 4) {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    for (int i = 0; i < LANES; ++i) {
      c0[i] = (uint32_t)(counter + (uint64_t)i);
      c1[i] = (uint32_t)((counter + (uint64_t)i) >> 32);
      c2[i] = c3[i] = 0;
    }
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < LANES; ++i) {
        const uint64_t a = (uint64_t)0xD2511F53u * c0[i], b = (uint64_t)0xCD9E8D57u * c2[i];
        const uint32_t n0 = (uint32_t)(b >> 32) ^ c1[i] ^ k0, n2 = (uint32_t)(a >> 32) ^ c3[i] ^ k1;
        c1[i] = (uint32_t)b;
        c3[i] = (uint32_t)a;
        c0[i] = n0;
        c2[i] = n2;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < LANES; ++i) {
      out[4 * i] = c0[i];
      out[4 * i + 1] = c1[i];
      out[4 * i + 2] = c2[i];
      out[4 * i + 3] = c3[i];
    }
  }
}

const tn_random_table_t TN_ISA_NAME(tn_random_table) = {.philox = philox};
