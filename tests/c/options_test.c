// Mirrors src/base/options.c and log.c.
#include "tests/c/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "base/os.h"

static void set(const char* name, const char* value) {
  if (value) setenv(name, value, 1);
  else unsetenv(name);
  tn_options_reread();
}

TN_TEST(every_row_is_sound) {
  for (int i = 0; i < TN_OPTION_COUNT; ++i) {
    const tn_option_info_t* info = tn_option_info((tn_option_t)i);
    TN_EXPECT(*info->name && *info->meaning);
    for (int j = 0; j < i; ++j)
      TN_EXPECT(strcmp(info->name, tn_option_info((tn_option_t)j)->name) != 0);
    // Each default is a valid value, or empty for a string.
    if (info->type == TN_OPTION_TYPE_STRING) continue;
    TN_EXPECT(*info->fallback != 0);
    set(info->name, info->fallback);
    TN_EXPECT(tn_option_is_set((tn_option_t)i));
    TN_EXPECT(tn_options_complaint(0) == NULL);
    set(info->name, "maybe");
    TN_EXPECT(!tn_option_is_set((tn_option_t)i));
    TN_EXPECT(tn_options_complaint(0) && strstr(tn_options_complaint(0), info->name));
    TN_EXPECT_STR(info->fallback, tn_option_string((tn_option_t)i));
    set(info->name, NULL);
  }
}

TN_TEST(values_follow_a_reread) {
  TN_EXPECT_EQ(4, tn_option_int(TN_OPTION_NUM_DEVICES));
  TN_EXPECT(!tn_option_is_set(TN_OPTION_NUM_DEVICES));
  set("TORCH_NEURONX_NUM_DEVICES", "16");
  TN_EXPECT_EQ(16, tn_option_int(TN_OPTION_NUM_DEVICES));
  TN_EXPECT(tn_option_is_set(TN_OPTION_NUM_DEVICES));
  TN_EXPECT_STR("16", tn_option_string(TN_OPTION_NUM_DEVICES));
  set("TORCH_NEURONX_NUM_DEVICES", "");
  TN_EXPECT_EQ(4, tn_option_int(TN_OPTION_NUM_DEVICES));
  set("TORCH_NEURONX_NUM_DEVICES", "99999999999999999999");
  TN_EXPECT_EQ(4, tn_option_int(TN_OPTION_NUM_DEVICES));
  set("TORCH_NEURONX_NUM_DEVICES", NULL);
  static const struct {
    const char* text;
    int value;
  } words[] = {{"1", 1}, {"true", 1}, {"True", 1}, {"0", 0}, {"false", 0}, {"FALSE", 0}};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
    set("NEURON_LAUNCH_BLOCKING", words[i].text);
    TN_EXPECT_EQ(words[i].value, tn_option_bool(TN_OPTION_NEURON_LAUNCH_BLOCKING));
    TN_EXPECT(tn_option_is_set(TN_OPTION_NEURON_LAUNCH_BLOCKING));
  }
  set("NEURON_LAUNCH_BLOCKING", NULL);
}

TN_TEST(strings_stay_valid) {
  set("TORCH_NEURONX_TARGET", "trn3");
  const char* before = tn_option_string(TN_OPTION_TARGET);
  set("TORCH_NEURONX_TARGET", "host");
  TN_EXPECT_STR("trn3", before);
  TN_EXPECT_STR("host", tn_option_string(TN_OPTION_TARGET));
  set("TORCH_NEURONX_TARGET", NULL);
  TN_EXPECT_STR("trn2", tn_option_string(TN_OPTION_TARGET));
}

TN_TEST(a_misspelt_name_is_reported_with_the_nearest) {
  set("TORCH_NEURONX_FALBACK", "error");
  TN_EXPECT_STR(
      "unknown environment variable TORCH_NEURONX_FALBACK; the nearest name is "
      "TORCH_NEURONX_FALLBACK",
      tn_options_complaint(0));
  TN_EXPECT(tn_options_complaint(1) == NULL);
  set("TORCH_NEURONX_FALBACK", NULL);
  TN_EXPECT(tn_options_complaint(0) == NULL);
  set("TORCH_NEURONX_NUM_DEVICSE", "1");
  TN_EXPECT(strstr(tn_options_complaint(0), "is TORCH_NEURONX_NUM_DEVICES") != NULL);
  set("TORCH_NEURONX_NUM_DEVICSE", NULL);
}

static void read_log(const char* path, char* text, size_t capacity) {
  text[0] = 0;
  char* data;
  size_t size;
  tn_status_t status = tn_os_read_file(path, &data, &size);
  if (status) return tn_status_free(status);
  snprintf(text, capacity, "%s", data);
  free(data);
}

TN_TEST(the_log_is_silent_unless_asked) {
  char path[64], text[4096], line[2000];
  snprintf(path, sizeof(path), "/tmp/tn_log_test.%d", (int)getpid());
  set("TORCH_NEURONX_LOG_FILE", path);
  tn_log(TN_LOG_WARNING, "not wanted");
  read_log(path, text, sizeof(text));
  TN_EXPECT_STR("", text);
  set("TORCH_NEURONX_LOG_LEVEL", "1");
  TN_EXPECT(tn_log_is_enabled(TN_LOG_WARNING) && !tn_log_is_enabled(TN_LOG_INFO));
  tn_log(TN_LOG_WARNING, "wanted %d", 5);
  tn_log(TN_LOG_INFO, "too much");
  set("TORCH_NEURONX_TARGT", "x");  // complaints of the options come through the log
  memset(line, 'y', sizeof(line) - 1);
  line[sizeof(line) - 1] = 0;
  tn_log(TN_LOG_WARNING, "%s", line);
  read_log(path, text, sizeof(text));
  TN_EXPECT(strstr(text, "] wanted 5\n") && !strstr(text, "too much") &&
            strstr(text, "TORCH_NEURONX_TARGT;"));
  TN_EXPECT(text[strlen(text) - 1] == '\n' && strlen(text) < 1500);
  set("TORCH_NEURONX_TARGT", NULL);
  set("TORCH_NEURONX_LOG_LEVEL", NULL);
  set("TORCH_NEURONX_LOG_FILE", NULL);
  unlink(path);
}
