#define _GNU_SOURCE
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"

int64_t tn_os_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

size_t tn_os_page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

int tn_os_cpu_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    const int count = CPU_COUNT(&set);
    if (count > 0) return count;
  }
  // More CPUs than a cpu_set_t holds.
  const int64_t online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < 65536 ? (int)online : 1;
}

// First number of a small file; |fallback| if there is none ("max" of a control group).
static size_t read_number(const char* path, size_t fallback) {
  FILE* file = fopen(path, "re");
  if (!file) return fallback;
  unsigned long long value;
  const int fields = fscanf(file, "%llu", &value);
  fclose(file);
  return fields == 1 ? (size_t)value : fallback;
}

static size_t read_meminfo(const char* key) {
  FILE* file = fopen("/proc/meminfo", "re");
  if (!file) return 0;
  char line[128];
  size_t bytes = 0;
  const size_t length = strlen(key);
  while (fgets(line, sizeof(line), file)) {
    if (strncmp(line, key, length) != 0 || line[length] != ':') continue;
    bytes = (size_t)strtoull(line + length + 1, NULL, 10) << 10;
    break;
  }
  fclose(file);
  return bytes;
}

// Smallest limit on the way from the process's control group to the root; SIZE_MAX without one.
static size_t control_group_limit(void) {
  size_t limit = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", SIZE_MAX);  // version 1
  FILE* file = fopen("/proc/self/cgroup", "re");
  if (!file) return limit;
  char line[512], group[400] = "";
  while (fgets(line, sizeof(line), file))
    if (strncmp(line, "0::", 3) == 0 && strlen(line) < sizeof(group)) {
      line[strcspn(line, "\n")] = 0;
      strcpy(group, line + 3);
    }
  fclose(file);
  for (;;) {
    char path[512];
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max",
             strcmp(group, "/") == 0 ? "" : group);
    const size_t here = read_number(path, SIZE_MAX);
    if (here < limit) limit = here;
    char* slash = strrchr(group, '/');
    if (!slash) return limit;
    *slash = 0;
  }
}

size_t tn_os_memory_total(void) {
  size_t total = read_meminfo("MemTotal");
  if (total == 0) total = (size_t)sysconf(_SC_PHYS_PAGES) * tn_os_page_size();
  const size_t limit = control_group_limit();
  return limit < total ? limit : total;
}

size_t tn_os_memory_available(void) { return read_meminfo("MemAvailable"); }

void tn_os_futex_wait(_Atomic uint32_t* word, uint32_t expected, int64_t timeout_ns) {
  struct timespec timeout = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? NULL : &timeout, NULL, 0);
}

void tn_os_futex_wake(_Atomic uint32_t* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

tn_status_t tn_os_memfd_map(const char* name, size_t size, int* out_fd, void** out_pointer) {
  *out_fd = -1;
  *out_pointer = NULL;
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) return TN_ERROR(TN_RESOURCE_EXHAUSTED, "memfd_create: %s", strerror(errno));
  void* pointer = MAP_FAILED;
  if (ftruncate(fd, (off_t)size) == 0)
    pointer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pointer == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return TN_ERROR(TN_RESOURCE_EXHAUSTED, "mapping %zu bytes: %s", size, strerror(error));
  }
  *out_fd = fd;
  *out_pointer = pointer;
  return TN_OK;
}

void tn_os_memfd_unmap(int fd, void* pointer, size_t size) {
  if (pointer) munmap(pointer, size);
  if (fd >= 0) close(fd);
}

// ---- files -----------------------------------------------------------------------------------------------

static tn_status_t file_error(const char* verb, const char* path, int error) {
  return TN_ERROR(error == ENOENT                      ? TN_NOT_FOUND
                  : error == ENOSPC || error == ENOMEM ? TN_RESOURCE_EXHAUSTED
                                                       : TN_UNAVAILABLE,
                  "%s %s: %s", verb, path, strerror(error));
}

static int open_to_read(const char* path, size_t* out_size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat info;
  int error = fstat(fd, &info) ? errno : S_ISREG(info.st_mode) ? 0 : EISDIR;
  if (error) {
    close(fd);
    errno = error;
    return -1;
  }
  *out_size = (size_t)info.st_size;
  return fd;
}

tn_status_t tn_os_map_file(const char* path, tn_bytes_t* out_file) {
  *out_file = (tn_bytes_t){0};
  size_t size = 0;
  const int fd = open_to_read(path, &size);
  if (fd < 0) return file_error("open", path, errno);
  void* data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
  const int error = errno;
  close(fd);
  if (data == MAP_FAILED) return file_error("map", path, error);
  *out_file = (tn_bytes_t){data, size};
  return TN_OK;
}

void tn_os_unmap(tn_bytes_t file) {
  if (file.size) munmap((void*)(uintptr_t)file.data, file.size);
}

tn_status_t tn_os_read_file(const char* path, char** out_data, size_t* out_size) {
  *out_data = NULL;
  *out_size = 0;
  FILE* file = strcmp(path, "/dev/stdin") == 0 ? stdin : fopen(path, "re");
  if (!file) return file_error("open", path, errno);
  char* data = NULL;
  size_t size = 0, capacity = 0;
  int error = 0;
  for (;;) {
    if (capacity - size < 2) {
      capacity = capacity ? capacity * 2 : 16 << 10;
      char* grown = realloc(data, capacity);
      if (!grown) {
        error = ENOMEM;
        break;
      }
      data = grown;
    }
    errno = 0;
    const size_t count = fread(data + size, 1, capacity - size - 1, file);
    size += count;
    if (count == 0) {
      if (ferror(file)) error = errno ? errno : EIO;
      break;
    }
  }
  if (file != stdin) fclose(file);
  if (error) {
    free(data);
    return file_error("read", path, error);
  }
  data[size] = 0;
  *out_data = data;
  *out_size = size;
  return TN_OK;
}

tn_status_t tn_os_write_file(const char* path, const void* data, size_t size) {
  const size_t length = strlen(path);
  char* temporary = malloc(length + 16);
  if (!temporary) return file_error("write", path, ENOMEM);
  memcpy(temporary, path, length);
  strcpy(temporary + length, ".tmp-XXXXXX");
  int error = 0;
  const int fd = mkostemp(temporary, O_CLOEXEC);
  if (fd < 0) {
    error = errno;
  } else {
    for (size_t done = 0; done < size && !error;) {
      const ssize_t count = write(fd, (const char*)data + done, size - done);
      if (count > 0) done += (size_t)count;
      else if (errno != EINTR) error = errno ? errno : EIO;
    }
    if (!error && fsync(fd) != 0) error = errno;
    if (close(fd) != 0 && !error) error = errno;
    if (!error && rename(temporary, path) != 0) error = errno;
    if (error) unlink(temporary);
  }
  free(temporary);
  return error ? file_error("write", path, error) : TN_OK;
}

tn_status_t tn_os_make_folders(const char* path) {
  char* copy = strdup(path);
  if (!copy) return file_error("create", path, ENOMEM);
  tn_status_t status = TN_OK;
  for (char* cursor = copy + 1; !status; ++cursor) {
    if (*cursor != '/' && *cursor != 0) continue;
    const char kept = *cursor;
    *cursor = 0;
    if (mkdir(copy, 0700) != 0) {
      const int error = errno;
      struct stat info;
      if (stat(copy, &info) != 0 || !S_ISDIR(info.st_mode))
        status = file_error("create folder", copy, error);
    }
    if (kept == 0) break;
    *cursor = kept;
  }
  free(copy);
  return status;
}

tn_status_t tn_os_cache_folder(char* out_path, size_t capacity) {
  const char* chosen = tn_option_string(TN_OPTION_NEFF_CACHE_DIR);
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length;
  if (*chosen) length = snprintf(out_path, capacity, "%s", chosen);
  else if (xdg && xdg[0] == '/') length = snprintf(out_path, capacity, "%s/torch_neuronx", xdg);
  else if (home && home[0] == '/')
    length = snprintf(out_path, capacity, "%s/.cache/torch_neuronx", home);
  else length = snprintf(out_path, capacity, "/tmp/torch_neuronx-%u", (unsigned)getuid());
  if (length < 0 || (size_t)length >= capacity)
    return TN_ERROR(TN_OUT_OF_RANGE, "cache folder: the path has %d bytes, at most %zu are allowed",
                    length, capacity - 1);
  return TN_OK;
}
