// The disk cache as a whole: listing and pruning.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codegen/object_file.h"

enum { TEMPORARY_AGE_S = 3600 };  // an older temporary file belongs to a process that died

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
static bool is_key_folder(const char* name) {
  return is_hex(name[0]) && is_hex(name[1]) && name[2] == 0;
}

typedef struct tn_listed {
  char path[TN_OBJECT_PATH_MAX];
  int64_t size, used_ns;
  bool is_temporary;
} tn_listed_t;
typedef struct tn_listing {
  tn_listed_t* files;
  size_t count, capacity;
} tn_listing_t;

static bool append(tn_listing_t* list, const char* path, const struct stat* info,
                   bool is_temporary) {
  if (list->count == list->capacity) {
    const size_t capacity = 2 * list->capacity + 64;
    tn_listed_t* files = realloc(list->files, capacity * sizeof *files);
    if (!files) return false;
    list->files = files;
    list->capacity = capacity;
  }
  tn_listed_t* file = &list->files[list->count++];
  snprintf(file->path, sizeof file->path, "%s", path);
  file->size = info->st_size;
  file->used_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
  file->is_temporary = is_temporary;
  return true;
}

static bool list_folder(const char* folder, tn_listing_t* list) {
  DIR* directory = opendir(folder);
  if (!directory) return true;  // pruned by somebody else
  bool ok = true;
  for (struct dirent* entry; ok && (entry = readdir(directory));) {
    const char* ending = strstr(entry->d_name, ".tnk");
    char path[TN_OBJECT_PATH_MAX];
    struct stat info;
    if (!ending || snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
      continue;
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
    ok = append(list, path, &info, ending[4] != 0);
  }
  closedir(directory);
  return ok;
}

static tn_status_t list_all(tn_listing_t* list) {
  char folder[480], path[TN_OBJECT_PATH_MAX];
  *list = (tn_listing_t){0};
  if (!tn_object_cache_folder(folder, sizeof folder))
    return TN_ERROR(TN_UNAVAILABLE, "kernel cache: the disk cache is switched off");
  DIR* directory = opendir(folder);
  if (!directory) {
    if (errno == ENOENT) return TN_OK;
    return TN_ERROR(TN_UNAVAILABLE, "kernel cache: %s: %s", folder, strerror(errno));
  }
  bool ok = true;
  for (struct dirent* entry; ok && (entry = readdir(directory));) {
    if (!is_key_folder(entry->d_name)) continue;
    snprintf(path, sizeof path, "%s/%.2s", folder, entry->d_name);
    ok = list_folder(path, list);
  }
  closedir(directory);
  if (ok) return TN_OK;
  free(list->files);
  return TN_ERROR(TN_RESOURCE_EXHAUSTED, "kernel cache: no memory for the list of files");
}

void tn_object_cache_each_related(const tn_object_key_t* key,
                                  void (*visit)(void* context, const uint8_t* program, size_t size),
                                  void* context) {
  char folder[480], hex[2 * TN_BLAKE3_SIZE + 1], path[TN_OBJECT_PATH_MAX];
  if (!tn_object_cache_folder(folder, sizeof folder)) return;
  tn_blake3_hex(key->digest, hex);
  snprintf(path, sizeof path, "%s/%.2s", folder, hex);
  tn_listing_t list = {0};
  list_folder(path, &list);
  for (size_t i = 0; i < list.count; ++i) {
    const char* name = strrchr(list.files[i].path, '/') + 1;
    if (list.files[i].is_temporary || strncmp(name, hex + 2, 2 * TN_OBJECT_RELATED_BYTES - 2) != 0)
      continue;
    uint8_t* data;
    size_t size;
    int64_t used_s;
    if (tn_object_file_read(list.files[i].path, &data, &size, &used_s) != TN_OBJECT_HIT) continue;
    tn_object_header_t header;
    if (!tn_object_file_check(data, size, NULL)) {
      memcpy(&header, data, sizeof header);
      if (header.program_bytes <= header.program_size)
        visit(context, data + sizeof header, header.program_bytes);
    }
    free(data);
  }
  free(list.files);
}

static int by_use(const void* a, const void* b) {
  const tn_listed_t *x = a, *y = b;
  return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

tn_status_t tn_object_cache_each(bool check,
                                 void (*visit)(void* context, const tn_object_file_t* file),
                                 void* context) {
  tn_listing_t list;
  TN_TRY(list_all(&list));
  if (list.count) qsort(list.files, list.count, sizeof list.files[0], by_use);
  for (size_t i = 0; i < list.count; ++i) {
    const tn_listed_t* listed = &list.files[i];
    if (listed->is_temporary) continue;
    tn_object_file_t file = {.size = listed->size, .used_ns = listed->used_ns};
    snprintf(file.path, sizeof file.path, "%s", listed->path);
    uint8_t* data;
    size_t size;
    int64_t used_s;
    if (tn_object_file_read(listed->path, &data, &size, &used_s) == TN_OBJECT_HIT) {
      tn_object_header_t header;
      file.is_valid = size >= sizeof header && (!check || !tn_object_file_check(data, size, NULL));
      if (file.is_valid) {
        memcpy(&header, data, sizeof header);
        if (header.program_bytes <= sizeof file.program &&
            header.program_bytes <= size - sizeof header) {
          file.program_size = header.program_bytes;
          memcpy(file.program, data + sizeof header, file.program_size);
        }
      }
      free(data);
    }
    visit(context, &file);
  }
  free(list.files);
  return TN_OK;
}

tn_status_t tn_object_cache_prune(int64_t limit, int64_t* out_deleted, int64_t* out_remaining) {
  tn_listing_t list;
  *out_deleted = *out_remaining = 0;
  TN_TRY(list_all(&list));
  if (list.count) qsort(list.files, list.count, sizeof list.files[0], by_use);
  int64_t total = 0;
  const int64_t now_s = (int64_t)time(NULL);
  for (size_t i = 0; i < list.count; ++i) total += list.files[i].size;
  for (size_t i = 0; i < list.count; ++i) {
    const tn_listed_t* file = &list.files[i];
    const bool is_dead = file->is_temporary && now_s - file->used_ns / 1000000000 > TEMPORARY_AGE_S;
    if (!is_dead && (file->is_temporary || total <= limit)) continue;
    if (unlink(file->path) == 0) ++*out_deleted;
    total -= file->size;
  }
  *out_remaining = total;
  free(list.files);
  return TN_OK;
}
