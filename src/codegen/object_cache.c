// Disk cache of objects: keys, reading, writing, and the bound on its size.
#define _GNU_SOURCE  // mkostemp
#include "codegen/object_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "base/os.h"
#include "codegen/object_file.h"

enum {
  FOLDER_MAX = 480,
  TOUCH_AFTER_S = 3600
};  // a file used again within the hour is not touched again

static tn_object_key_t digest(const char* emitter, const char* isa, const void* program,
                              size_t program_size) {
  tn_object_key_t key;
  tn_blake3_t state;
  const uint32_t format = TN_OBJECT_FORMAT;
  tn_blake3_init(&state);
  tn_blake3_update(&state, &format, sizeof format);
  tn_blake3_update(&state, emitter, strlen(emitter) + 1);
  tn_blake3_update(&state, isa, strlen(isa) + 1);
  tn_blake3_update(&state, program, program_size);
  tn_blake3_final(&state, key.digest);
  return key;
}

tn_object_key_t tn_object_key(const char* emitter, const char* isa, const void* family,
                              size_t family_size, const void* program, size_t program_size) {
  tn_object_key_t key = digest(emitter, isa, program, program_size);
  const tn_object_key_t related = digest(emitter, isa, family, family_size);
  memcpy(key.digest, related.digest, TN_OBJECT_RELATED_BYTES);
  return key;
}

// ---- the file ------------------------------------------------------------------------------------------------------
static void checksum(const tn_object_header_t* header, const uint8_t* payload, size_t size,
                     uint8_t out[24]) {
  uint8_t digest[TN_BLAKE3_SIZE];
  tn_blake3_t state;
  tn_blake3_init(&state);
  tn_blake3_update(&state, header, offsetof(tn_object_header_t, checksum));
  tn_blake3_update(&state, payload, size);
  tn_blake3_final(&state, digest);
  memcpy(out, digest, 24);
}

const char* tn_object_file_check(const uint8_t* data, size_t size, const tn_object_key_t* key) {
  tn_object_header_t header;
  if (size < sizeof header) return "is truncated";
  memcpy(&header, data, sizeof header);
  if (memcmp(header.magic, TN_OBJECT_MAGIC, sizeof header.magic) != 0) return "is no kernel file";
  if (header.format != TN_OBJECT_FORMAT) return "has another format";
  const uint64_t payload = (uint64_t)header.program_size + header.object_size;
  if (header.program_size % 8 != 0 || payload != size - sizeof header) return "has the wrong size";
  if (key && memcmp(header.key, key->digest, sizeof header.key) != 0)
    return "belongs to another key";
  uint8_t sum[24];
  checksum(&header, data + sizeof header, size - sizeof header, sum);
  return memcmp(sum, header.checksum, sizeof sum) == 0 ? NULL : "is damaged";
}

bool tn_object_cache_folder(char* out_path, size_t capacity) {
  if (tn_option_bool(TN_OPTION_DISABLE_NEFF_CACHE) || tn_option_bool(TN_OPTION_NEFF_DISABLE_CACHE))
    return false;
  tn_status_t status = tn_os_cache_folder(out_path, capacity < FOLDER_MAX ? capacity : FOLDER_MAX);
  if (!status) return true;
  tn_log(TN_LOG_WARNING, "kernel cache: %s", tn_status_message(status));
  tn_status_free(status);
  return false;
}

// <folder>/ab/cdef....tnk; |out_folder_end| is where the file name begins.
static void entry_path(const char* folder, const tn_object_key_t* key,
                       char out_path[TN_OBJECT_PATH_MAX], size_t* out_folder_end) {
  char hex[2 * TN_BLAKE3_SIZE + 1];
  tn_blake3_hex(key->digest, hex);
  *out_folder_end = strlen(folder) + 3;
  snprintf(out_path, TN_OBJECT_PATH_MAX, "%.*s/%.2s/%s.tnk", FOLDER_MAX, folder, hex, hex + 2);
}

bool tn_object_cache_has(const tn_object_key_t* key) {
  char folder[FOLDER_MAX], path[TN_OBJECT_PATH_MAX];
  size_t folder_end;
  if (!tn_object_cache_folder(folder, sizeof folder)) return false;
  entry_path(folder, key, path, &folder_end);
  return access(path, F_OK) == 0;
}

// Code from a file of another user would run as this one: only files that others cannot have written count.
static bool is_trusted(const struct stat* info) {
  return S_ISREG(info->st_mode) && (info->st_uid == geteuid() || info->st_uid == 0) &&
         (info->st_mode & 022) == 0;
}

tn_object_fault_t tn_object_file_read(const char* path, uint8_t** out_data, size_t* out_size,
                                      int64_t* out_used_s) {
  *out_data = NULL;
  *out_size = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT || errno == ENOTDIR ? TN_OBJECT_MISS : TN_OBJECT_BAD;
  struct stat info;
  uint8_t* data = NULL;
  size_t done = 0;
  tn_object_fault_t fault = TN_OBJECT_BAD;
  if (fstat(fd, &info) != 0 || !is_trusted(&info) || info.st_size > TN_OBJECT_FILE_MAX) goto done;
  data = malloc((size_t)info.st_size + 1);
  if (!data) goto done;
  while (done < (size_t)info.st_size) {
    const ssize_t n = read(fd, data + done, (size_t)info.st_size - done);
    if (n <= 0) goto done;
    done += (size_t)n;
  }
  fault = TN_OBJECT_HIT;
  *out_used_s = info.st_mtime;
done:
  close(fd);
  if (fault == TN_OBJECT_HIT) {
    *out_data = data;
    *out_size = done;
  } else {
    free(data);
  }
  return fault;
}

tn_object_fault_t tn_object_cache_read(const tn_object_key_t* key, const void* program,
                                       size_t program_size, void** out_object, size_t* out_size) {
  char folder[FOLDER_MAX], path[TN_OBJECT_PATH_MAX];
  uint8_t* data;
  size_t size, folder_end;
  int64_t used_s;
  *out_object = NULL;
  *out_size = 0;
  if (!tn_object_cache_folder(folder, sizeof folder)) return TN_OBJECT_MISS;
  entry_path(folder, key, path, &folder_end);
  const tn_object_fault_t fault = tn_object_file_read(path, &data, &size, &used_s);
  if (fault != TN_OBJECT_HIT) {
    if (fault == TN_OBJECT_BAD)
      tn_log(TN_LOG_WARNING, "kernel cache: %s cannot be read or is not ours alone", path);
    return fault;
  }
  const char* problem = tn_object_file_check(data, size, key);
  tn_object_header_t header;
  if (!problem) {
    // Equal keys with different programs would be a broken hash; comparing costs nothing.
    memcpy(&header, data, sizeof header);
    if (header.program_bytes != program_size || header.program_bytes > header.program_size ||
        memcmp(data + sizeof header, program, program_size) != 0)
      problem = "holds another program";
  }
  if (problem) {
    tn_log(TN_LOG_WARNING, "kernel cache: %s %s", path, problem);
    free(data);
    return TN_OBJECT_BAD;
  }
  if (time(NULL) - used_s > TOUCH_AFTER_S) utimensat(AT_FDCWD, path, NULL, 0);
  // The header and the program keep the object 8-aligned; moving it down gives one block to free.
  memmove(data, data + sizeof header + header.program_size, header.object_size);
  *out_object = data;
  *out_size = header.object_size;
  return TN_OBJECT_HIT;
}

// ---- writing ---------------------------------------------------------------------------------------------------------
// No fsync: a file torn by a crash fails its checksum and is a miss, and syncing would cost more than generating.
static bool write_file(const char* path, const uint8_t* data, size_t size) {
  char temporary[TN_OBJECT_PATH_MAX + 16];
  snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
  const int fd = mkostemp(temporary, O_CLOEXEC);  // mode 0600
  if (fd < 0) return false;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = write(fd, data + done, size - done);
    if (n <= 0) break;
    done += (size_t)n;
  }
  const bool is_closed = close(fd) == 0;
  if (is_closed && done == size && rename(temporary, path) == 0) return true;
  unlink(temporary);
  return false;
}

// Looks at the whole folder once in a while: after a sixteenth of the bound has been written by this process, and in
// one process of sixteen at its first write, so that many short processes prune too.
static void bound_size(size_t written) {
  static _Atomic int64_t since_check = -1;
  const int64_t limit = tn_option_int(TN_OPTION_CACHE_MAX_SIZE_MB) << 20;
  int64_t before = atomic_fetch_add(&since_check, (int64_t)written);
  const bool is_first = before == -1 && getpid() % 16 == 0;
  if (!is_first && before + (int64_t)written < limit / 16) return;
  atomic_store(&since_check, 0);
  int64_t deleted, remaining;
  tn_status_free(tn_object_cache_prune(limit, &deleted, &remaining));
}

void tn_object_cache_write(const tn_object_key_t* key, const void* program, size_t program_size,
                           const void* object, size_t object_size) {
  char folder[FOLDER_MAX], path[TN_OBJECT_PATH_MAX];
  size_t folder_end;
  if (!tn_object_cache_folder(folder, sizeof folder)) return;
  tn_object_header_t header = {.format = TN_OBJECT_FORMAT};
  memcpy(header.magic, TN_OBJECT_MAGIC, sizeof header.magic);
  header.program_bytes = (uint32_t)program_size;
  header.program_size = (uint32_t)((program_size + 7) & ~(size_t)7);
  header.object_size = (uint32_t)object_size;
  memcpy(header.key, key->digest, sizeof header.key);
  const size_t size = sizeof header + header.program_size + object_size;
  uint8_t* data = size <= TN_OBJECT_FILE_MAX ? calloc(1, size) : NULL;
  if (!data) return;
  memcpy(data + sizeof header, program, program_size);
  memcpy(data + sizeof header + header.program_size, object, object_size);
  checksum(&header, data + sizeof header, size - sizeof header, header.checksum);
  memcpy(data, &header, sizeof header);

  entry_path(folder, key, path, &folder_end);
  bool is_written = write_file(path, data, size);
  if (!is_written && errno == ENOENT) {
    char parent[TN_OBJECT_PATH_MAX];
    snprintf(parent, sizeof parent, "%.*s", (int)folder_end, path);
    tn_status_free(tn_os_make_folders(parent));
    is_written = write_file(path, data, size);
  }
  free(data);
  if (is_written) {
    bound_size(size);
  } else {
    tn_log(TN_LOG_WARNING, "kernel cache: %s cannot be written: %s", path, strerror(errno));
  }
}
