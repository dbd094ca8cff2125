// Disk cache of objects (see object_cache.h).
#include "codegen/object_cache.h"

#include <stdlib.h>
#include <string.h>

tn_object_key_t tn_object_key(const char* emitter, const char* isa, const void* program, size_t program_size) {
  tn_object_key_t key;
  (void)emitter, (void)isa;
  tn_blake3(program, program_size, key.digest);
  return key;
}
tn_object_fault_t tn_object_cache_read(const tn_object_key_t* key, const void* program, size_t program_size,
                                       void** out_object, size_t* out_size) {
  (void)key, (void)program, (void)program_size, (void)out_object, (void)out_size;
  return TN_OBJECT_MISS;
}
void tn_object_cache_write(const tn_object_key_t* key, const void* program, size_t program_size, const void* object,
                           size_t size) {
  (void)key, (void)program, (void)program_size, (void)object, (void)size;
}
