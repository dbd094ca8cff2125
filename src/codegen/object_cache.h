// Objects of kernels on disk: written once, read by any process of this user, never trusted.
//
// File <cache folder>/ab/cdef...tnk, named by the key (which begins with the program's family): a 64-byte header, the program's canonical bytes, the
// ELF object. A file that is foreign, damaged or unreadable is a miss and a log line. Total size is bounded; the
// least recently used files go first. Thread-safe and safe between processes.
#ifndef TN_CODEGEN_OBJECT_CACHE_H_
#define TN_CODEGEN_OBJECT_CACHE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "tn/status.h"

enum { TN_OBJECT_FORMAT = 2, TN_OBJECT_RELATED_BYTES = 8 };

typedef struct tn_object_key {
  uint8_t digest[TN_BLAKE3_SIZE];
} tn_object_key_t;

// Key of a program for the code of |emitter| (plugin version text) and |isa|. Keys of related programs (of one
// |family|) begin alike.
tn_object_key_t tn_object_key(const char* emitter, const char* isa, const void* family,
                              size_t family_size, const void* program, size_t program_size);

typedef enum tn_object_fault { TN_OBJECT_HIT, TN_OBJECT_MISS, TN_OBJECT_BAD } tn_object_fault_t;
// On a hit |out_object| is malloc'ed, 8-aligned. BAD: a file is there but cannot be used.
tn_object_fault_t tn_object_cache_read(const tn_object_key_t* key, const void* program,
                                       size_t program_size, void** out_object, size_t* out_size);
bool tn_object_cache_has(const tn_object_key_t* key);  // a file that may still turn out to be bad
// Calls |visit| with the canonical bytes of every good entry whose key is related to |key|.
void tn_object_cache_each_related(const tn_object_key_t* key,
                                  void (*visit)(void* context, const uint8_t* program, size_t size),
                                  void* context);
// Best effort: a full disk or a read-only folder only costs the next process its hit.
void tn_object_cache_write(const tn_object_key_t* key, const void* program, size_t program_size,
                           const void* object, size_t size);

// ---- maintenance (tn cache) ----------------------------------------------------------------------------------
typedef struct tn_object_file {
  char path[600];
  int64_t size;
  int64_t used_ns;        // last use, since the epoch
  bool is_valid;          // only if checked
  uint8_t program[2048];  // canonical bytes, program_size of them
  size_t program_size;
} tn_object_file_t;
// Folder in use; false if the disk cache is switched off or has no folder.
bool tn_object_cache_folder(char* out_path, size_t capacity);
// Calls |visit| for every entry; reads and checks contents if |check|.
tn_status_t tn_object_cache_each(bool check,
                                 void (*visit)(void* context, const tn_object_file_t* file),
                                 void* context);
// Deletes least recently used files until at most |limit| bytes remain, and temporary files that were left behind.
tn_status_t tn_object_cache_prune(int64_t limit, int64_t* out_deleted, int64_t* out_remaining);

#endif  // TN_CODEGEN_OBJECT_CACHE_H_
