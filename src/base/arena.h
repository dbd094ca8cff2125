// Memory of one compilation, freed whole.
//
// Allocations are 16-aligned, zeroed, and live until tn_arena_deinit (or tn_arena_reset). An arena belongs to
// one thread. Out of memory aborts the process only inside tn_arena_alloc's last resort: callers check for NULL.
#ifndef TN_BASE_ARENA_H_
#define TN_BASE_ARENA_H_

#include <stddef.h>
#include <stdint.h>

typedef struct tn_arena_block tn_arena_block_t;

typedef struct tn_arena {
  tn_arena_block_t* head;  // newest block
  uint8_t* next;           // next free byte in head
  uint8_t* limit;          // end of head
  size_t used;             // bytes handed out, for statistics
} tn_arena_t;

void tn_arena_init(tn_arena_t* arena);
void tn_arena_deinit(tn_arena_t* arena);
// Forgets all allocations, keeps the largest block for reuse.
void tn_arena_reset(tn_arena_t* arena);
// Returns |size| zeroed bytes, or NULL when the host is out of memory. |size| may be 0 (a valid pointer).
void* tn_arena_alloc(tn_arena_t* arena, size_t size);
// Copies |size| bytes of |data|.
void* tn_arena_copy(tn_arena_t* arena, const void* data, size_t size);
// printf into the arena.
char* tn_arena_printf(tn_arena_t* arena, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

#define TN_ARENA_NEW(arena, type) ((type*)tn_arena_alloc((arena), sizeof(type)))
#define TN_ARENA_ARRAY(arena, type, count) \
  ((type*)tn_arena_alloc((arena), sizeof(type) * (size_t)(count)))

#endif  // TN_BASE_ARENA_H_
