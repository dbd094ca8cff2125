// What the core needs from the operating system; everything that is not portable C is here.
#ifndef TN_BASE_OS_H_
#define TN_BASE_OS_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tn/status.h"

// Monotonic clock in nanoseconds.
int64_t tn_os_now_ns(void);
size_t tn_os_page_size(void);
// CPUs that the calling thread may run on (affinity mask), at least 1.
int tn_os_cpu_count(void);
// Bytes of memory that this process may use: the host's, or the smallest limit of its control groups.
size_t tn_os_memory_total(void);
// Bytes that the host still has available (an estimate).
size_t tn_os_memory_available(void);

// Sleeps while *|word| == |expected|, at most |timeout_ns| (< 0: no limit); may wake early.
void tn_os_futex_wait(_Atomic uint32_t* word, uint32_t expected, int64_t timeout_ns);
void tn_os_futex_wake(_Atomic uint32_t* word, int count);  // INT_MAX wakes all
// Gives way inside a spin loop.
static inline void tn_os_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Shared mapping of |size| bytes (a multiple of the page size) of a new anonymous file. The caller unmaps both.
// RESOURCE_EXHAUSTED when the system refuses.
tn_status_t tn_os_memfd_map(const char* name, size_t size, int* out_fd, void** out_pointer);
void tn_os_memfd_unmap(int fd, void* pointer, size_t size);

typedef struct tn_bytes {
  const uint8_t* data;
  size_t size;
} tn_bytes_t;

// Maps a file for reading. An empty file gives {NULL, 0}. NOT_FOUND, or UNAVAILABLE with the system's reason.
tn_status_t tn_os_map_file(const char* path, tn_bytes_t* out_file);
void tn_os_unmap(tn_bytes_t file);  // {NULL, 0} is allowed
// Reads a file into memory that the caller frees; one 0 byte follows the data and is not counted.
tn_status_t tn_os_read_file(const char* path, char** out_data, size_t* out_size);
// Writes a temporary file in the same folder, syncs it and renames it to |path|: readers see all or nothing.
tn_status_t tn_os_write_file(const char* path, const void* data, size_t size);
// Creates |path| and its parents with mode 0700; existing folders are fine.
tn_status_t tn_os_make_folders(const char* path);
// Folder of the disk cache: TORCH_NEURONX_NEFF_CACHE_DIR, else $XDG_CACHE_HOME/torch_neuronx, else
// ~/.cache/torch_neuronx, else /tmp/torch_neuronx-<uid>. Does not create it. |out_path| is 0-terminated.
tn_status_t tn_os_cache_folder(char* out_path, size_t capacity);

#endif  // TN_BASE_OS_H_
