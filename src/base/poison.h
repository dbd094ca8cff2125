// Marks memory of our own allocators as out of bounds under AddressSanitizer; nothing in other builds.
#ifndef TN_BASE_POISON_H_
#define TN_BASE_POISON_H_

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
// Declared here rather than by the sanitizer's header, whose const parameter makes gcc warn about fresh memory.
void __asan_poison_memory_region(void* address, size_t size);
void __asan_unpoison_memory_region(void* address, size_t size);
#define TN_POISON(pointer, size)   __asan_poison_memory_region(pointer, size)
#define TN_UNPOISON(pointer, size) __asan_unpoison_memory_region(pointer, size)
#define TN_REDZONE \
  ((size_t)16)  // an overrun of one allocation meets poisoned bytes, not its neighbour
#else
#define TN_POISON(pointer, size)   ((void)(pointer), (void)(size))
#define TN_UNPOISON(pointer, size) ((void)(pointer), (void)(size))
#define TN_REDZONE                 ((size_t)0)
#endif

#endif  // TN_BASE_POISON_H_
