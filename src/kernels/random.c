// Philox4x32-10 over arrays.
#include "src/kernels/random.h"

#include <string.h>

#include "src/kernels/isa.h"
#include "src/kernels/isa/random_table.h"
#include "src/kernels/philox.h"

TN_ISA_TABLES(tn_random_table_t, tn_random_table)

enum { BLOCK = 1024 };  // counters per task: 16 KiB

void tn_random_philox(uint64_t seed, uint64_t counter, uint32_t out_words[4]) {
  tn_philox(seed, counter, out_words);
}

typedef struct job {
  const uint64_t* state;
  int64_t words;  // 32-bit words wanted
  uint32_t* bits;
  float* uniform;  // instead of |bits|
} job_t;

static void fill_blocks(void* context, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const job_t* job = context;
  const tn_random_table_t* table = TN_ISA_PICK(tn_random_table);
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = block * BLOCK * 4, left = job->words - first,
                  count = left < BLOCK * 4 ? left : BLOCK * 4;
    uint32_t words[64];
    const uint64_t counter = job->state[1] + (uint64_t)(block * BLOCK);
    // Whole groups of 16 counters go straight to memory, the rest through a buffer.
    int64_t done = 0;
    if (job->bits) {
      const int64_t groups = count / 64;
      table->philox(job->state[0], counter, groups, job->bits + first);
      done = groups * 64;
    }
    for (; done < count; done += 64) {
      const int64_t n = count - done < 64 ? count - done : 64;
      table->philox(job->state[0], counter + (uint64_t)(done / 4), 1, words);
      if (job->bits) {
        memcpy(job->bits + first + done, words, (size_t)n * sizeof(uint32_t));
      } else {
        for (int64_t i = 0; i < n; ++i)
          job->uniform[first + done + i] = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
      }
    }
  }
}

static void run(tn_pool_t* pool, const job_t* job) {
  const int64_t blocks = (job->words + BLOCK * 4 - 1) / (BLOCK * 4);
  tn_pool_run(blocks < 3 ? NULL : pool, blocks, 2, fill_blocks, (void*)(uintptr_t)job);
}

void tn_random_bits(tn_pool_t* pool, tn_dtype_t dtype, const uint64_t state[2], int64_t count,
                    void* out) {
  // Narrower integers, should they come, are the bytes of the same stream.
  const int64_t bytes = count * (int64_t)tn_dtype_size(dtype), whole = bytes / 4 * 4;
  const job_t job = {.state = state, .words = whole / 4, .bits = out};
  run(pool, &job);
  if (whole < bytes) {
    uint32_t words[4];
    tn_philox(state[0], state[1] + (uint64_t)(whole / 16), words);
    memcpy((char*)out + whole, (const char*)words + whole % 16, (size_t)(bytes - whole));
  }
}

void tn_random_uniform(tn_pool_t* pool, const uint64_t state[2], int64_t count, float* out) {
  const job_t job = {.state = state, .words = count, .uniform = out};
  run(pool, &job);
}
