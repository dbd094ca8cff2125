#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/poison.h"
#include "base/size.h"

// Blocks start small, because most compilations are of one operator, and double up to the limit.
enum { FIRST_BLOCK = 8 << 10, LARGEST_BLOCK = 1 << 20 };
#define LARGEST_REQUEST (SIZE_MAX >> 25)  // more is a miscalculation

struct tn_arena_block {
  tn_arena_block_t* previous;
  size_t size;  // of the bytes after this header
  _Alignas(16) uint8_t bytes[];
};

void tn_arena_init(tn_arena_t* arena) { *arena = (tn_arena_t){0}; }

static void free_block(tn_arena_block_t* block) {
  TN_UNPOISON(block->bytes, block->size);
  free(block);
}

void tn_arena_deinit(tn_arena_t* arena) {
  for (tn_arena_block_t* block = arena->head; block;) {
    tn_arena_block_t* previous = block->previous;
    free_block(block);
    block = previous;
  }
  *arena = (tn_arena_t){0};
}

static void open_block(tn_arena_t* arena, tn_arena_block_t* block) {
  arena->head = block;
  arena->next = block->bytes;
  arena->limit = block->bytes + block->size;
  TN_POISON(block->bytes, block->size);
}

void tn_arena_reset(tn_arena_t* arena) {
  tn_arena_block_t* largest = arena->head;
  for (tn_arena_block_t* block = arena->head; block; block = block->previous)
    if (block->size > largest->size) largest = block;
  for (tn_arena_block_t* block = arena->head; block;) {
    tn_arena_block_t* previous = block->previous;
    if (block != largest) free_block(block);
    block = previous;
  }
  *arena = (tn_arena_t){0};
  if (!largest) return;
  largest->previous = NULL;
  open_block(arena, largest);
}

static bool grow(tn_arena_t* arena, size_t needed) {
  size_t size = arena->head ? arena->head->size * 2 : FIRST_BLOCK, total;
  if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
  if (size < needed) size = needed;
  if (!tn_size_add(sizeof(tn_arena_block_t), size, &total)) return false;
  tn_arena_block_t* block = malloc(total);
  if (!block) return false;
  block->previous = arena->head;
  block->size = size;
  open_block(arena, block);
  return true;
}

void* tn_arena_alloc(tn_arena_t* arena, size_t size) {
  size_t rounded;
  if (size > LARGEST_REQUEST) return NULL;
  if (!tn_size_align(size, 16, &rounded) || !tn_size_add(rounded, TN_REDZONE, &rounded))
    return NULL;
  if (rounded == 0) rounded = 16;  // distinct allocations have distinct addresses
  if ((size_t)(arena->limit - arena->next) < rounded && !grow(arena, rounded)) return NULL;
  uint8_t* pointer = arena->next;
  arena->next += rounded;
  arena->used += rounded;
  TN_UNPOISON(pointer, size);
  memset(pointer, 0, size);
  return pointer;
}

void* tn_arena_copy(tn_arena_t* arena, const void* data, size_t size) {
  void* copy = tn_arena_alloc(arena, size);
  if (copy && size) memcpy(copy, data, size);
  return copy;
}

char* tn_arena_printf(tn_arena_t* arena, const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (length < 0) return NULL;
  char* text = tn_arena_alloc(arena, (size_t)length + 1);
  if (!text) return NULL;
  va_start(args, format);
  vsnprintf(text, (size_t)length + 1, format, args);
  va_end(args);
  return text;
}
