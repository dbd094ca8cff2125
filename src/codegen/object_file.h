// The files of the disk cache, shared by object_cache.c and object_cache_files.c.
#ifndef TN_CODEGEN_OBJECT_FILE_H_
#define TN_CODEGEN_OBJECT_FILE_H_

#include <assert.h>

#include "codegen/object_cache.h"

#define TN_OBJECT_MAGIC "TNKERNEL"
enum { TN_OBJECT_FILE_MAX = 16 << 20, TN_OBJECT_PATH_MAX = 600 };

typedef struct tn_object_header {
  char magic[8];
  uint32_t format;
  uint32_t program_bytes;  // canonical bytes of the program
  uint32_t program_size;   // the same, padded to a multiple of 8
  uint32_t object_size;
  uint8_t key[16];       // first half of the key
  uint8_t checksum[24];  // BLAKE3 of the fields above and everything behind the header
} tn_object_header_t;
static_assert(sizeof(tn_object_header_t) == 64, "the header is part of the file format");

// NULL if the bytes are a whole entry (of |key| if that is not NULL), else what is wrong with them.
const char* tn_object_file_check(const uint8_t* data, size_t size, const tn_object_key_t* key);
// Reads a file that nobody else can have written; |out_data| is malloc'ed on a hit.
tn_object_fault_t tn_object_file_read(const char* path, uint8_t** out_data, size_t* out_size,
                                      int64_t* out_used_s);

#endif  // TN_CODEGEN_OBJECT_FILE_H_
