// Mirrors src/base/arena.c.
#include "tests/c/test.h"

#include "base/arena.h"

TN_TEST(allocations_are_zeroed_aligned_and_apart) {
  tn_arena_t arena;
  tn_arena_init(&arena);
  uint8_t* pointers[2000];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2000; ++i) {
      const size_t size = (size_t)(i * 7919 % 400);
      uint8_t* pointer = pointers[i] = tn_arena_alloc(&arena, size);
      TN_EXPECT(pointer != NULL && ((uintptr_t)pointer & 15) == 0);
      TN_EXPECT(i == 0 || pointer != pointers[i - 1]);
      for (size_t byte = 0; byte < size; ++byte) TN_EXPECT(pointer[byte] == 0);
      memset(pointer, i & 255, size);
    }
    for (int i = 0; i < 2000; ++i)
      for (size_t byte = 0; byte < (size_t)(i * 7919 % 400); ++byte)
        TN_EXPECT(pointers[i][byte] == (i & 255));
    TN_EXPECT(arena.used >= 2000 * 100);
    tn_arena_reset(&arena);
    TN_EXPECT_EQ(0, arena.used);
  }
  tn_arena_deinit(&arena);
  tn_arena_deinit(&arena);  // harmless
}

TN_TEST(large_requests_have_their_own_block) {
  tn_arena_t arena;
  tn_arena_init(&arena);
  uint8_t* large = tn_arena_alloc(&arena, (size_t)5 << 20);
  TN_EXPECT(large != NULL && large[((size_t)5 << 20) - 1] == 0);
  TN_EXPECT(tn_arena_alloc(&arena, SIZE_MAX) == NULL);
  TN_EXPECT(tn_arena_alloc(&arena, SIZE_MAX - 100) == NULL);
  TN_EXPECT(tn_arena_alloc(&arena, SIZE_MAX / 2) == NULL);
  TN_EXPECT(tn_arena_alloc(&arena, 100) != NULL);  // still usable
  tn_arena_reset(&arena);
  TN_EXPECT(tn_arena_alloc(&arena, (size_t)5 << 20) == large);  // the largest block is kept
  tn_arena_deinit(&arena);
}

TN_TEST(copies_and_texts) {
  tn_arena_t arena;
  tn_arena_init(&arena);
  const int numbers[] = {1, 2, 3};
  int* copy = tn_arena_copy(&arena, numbers, sizeof(numbers));
  TN_EXPECT(copy != numbers && memcmp(copy, numbers, sizeof(numbers)) == 0);
  TN_EXPECT(tn_arena_copy(&arena, NULL, 0) != NULL);
  TN_EXPECT_STR("f32[2,3] and 00007", tn_arena_printf(&arena, "f32[%d,%d] and %05d", 2, 3, 7));
  tn_arena_deinit(&arena);
}
