// Mirrors src/base/os.c.
#include "tests/c/test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/os.h"

static char folder[128];

__attribute__((constructor)) static void choose_folder(void) {
  snprintf(folder, sizeof(folder), "/tmp/tn_os_test.%d", (int)getpid());
}

TN_TEST(files_are_written_whole) {
  char path[300], nested[256];
  snprintf(nested, sizeof(nested), "%s/a/b", folder);
  TN_EXPECT_OK(tn_os_make_folders(nested));
  TN_EXPECT_OK(tn_os_make_folders(nested));
  struct stat info;
  TN_EXPECT(stat(nested, &info) == 0 && (info.st_mode & 0777) == 0700);
  snprintf(path, sizeof(path), "%s/file", nested);
  tn_bytes_t file;
  TN_EXPECT_CODE(TN_NOT_FOUND, tn_os_map_file(path, &file));
  for (int round = 0; round < 3; ++round) {
    static const char* const texts[] = {"first", "", "a longer text"};
    TN_EXPECT_OK(tn_os_write_file(path, texts[round], strlen(texts[round])));
    TN_EXPECT_OK(tn_os_map_file(path, &file));
    TN_EXPECT_EQ(strlen(texts[round]), file.size);
    TN_EXPECT(file.size == 0 || memcmp(file.data, texts[round], file.size) == 0);
    tn_os_unmap(file);
    char* data;
    size_t size;
    TN_EXPECT_OK(tn_os_read_file(path, &data, &size));
    TN_EXPECT_STR(texts[round], data);
    free(data);
  }
  // A file in the way is an error, a folder is no file, and nothing temporary stays behind.
  char below[400];
  snprintf(below, sizeof(below), "%s/x/y", path);
  TN_EXPECT_CODE(TN_UNAVAILABLE, tn_os_make_folders(below));
  TN_EXPECT_CODE(TN_UNAVAILABLE, tn_os_map_file(nested, &file));
  TN_EXPECT_CODE(TN_UNAVAILABLE, tn_os_write_file(nested, "x", 1));
  TN_EXPECT_CODE(TN_NOT_FOUND, tn_os_write_file("/tmp/no/such/folder/file", "x", 1));
  unlink(path);
  TN_EXPECT_EQ(0, rmdir(nested));
  snprintf(nested, sizeof(nested), "%s/a", folder);
  TN_EXPECT_EQ(0, rmdir(nested));
  TN_EXPECT_EQ(0, rmdir(folder));
}

TN_TEST(the_cache_folder_follows_the_environment) {
  char path[200], small[4];
  setenv("HOME", "/home/someone", 1);
  unsetenv("XDG_CACHE_HOME");
  TN_EXPECT_OK(tn_os_cache_folder(path, sizeof(path)));
  TN_EXPECT_STR("/home/someone/.cache/torch_neuronx", path);
  setenv("XDG_CACHE_HOME", "/var/xdg", 1);
  TN_EXPECT_OK(tn_os_cache_folder(path, sizeof(path)));
  TN_EXPECT_STR("/var/xdg/torch_neuronx", path);
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_os_cache_folder(small, sizeof(small)));
  setenv("TORCH_NEURONX_NEFF_CACHE_DIR", "/elsewhere", 1);
  tn_options_reread();
  TN_EXPECT_OK(tn_os_cache_folder(path, sizeof(path)));
  TN_EXPECT_STR("/elsewhere", path);
  unsetenv("TORCH_NEURONX_NEFF_CACHE_DIR");
  tn_options_reread();
  setenv("XDG_CACHE_HOME", "relative", 1);
  unsetenv("HOME");
  TN_EXPECT_OK(tn_os_cache_folder(path, sizeof(path)));
  TN_EXPECT(strncmp(path, "/tmp/torch_neuronx-", 19) == 0);
}

TN_TEST(the_machine_is_described) {
  TN_EXPECT(tn_os_cpu_count() >= 1);
  TN_EXPECT(tn_os_memory_total() > ((size_t)1 << 28));
  TN_EXPECT(tn_os_memory_available() > 0);
  const int64_t before = tn_os_now_ns();
  usleep(1000);
  TN_EXPECT(tn_os_now_ns() - before >= 1000000);
}

TN_TEST(a_futex_wait_ends) {
  _Atomic uint32_t word = 1;
  tn_os_futex_wait(&word, 0, -1);  // another value: returns at once
  const int64_t before = tn_os_now_ns();
  tn_os_futex_wait(&word, 1, 2000000);
  TN_EXPECT(tn_os_now_ns() - before >= 1000000);
  tn_os_futex_wake(&word, 1);
}
