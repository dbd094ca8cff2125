// Mirrors src/runtime/device.c and stream.c.
#include "tests/c/test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "tn/device.h"

// The first tests run before the runtime is initialised; the order is that of this file.
static int count_with(const char* name, const char* value) {
  setenv(name, value, 1);
  tn_options_reread();
  const int count = tn_device_count();
  unsetenv(name);
  tn_options_reread();
  return count;
}

TN_TEST(count_follows_the_environment_until_the_first_use) {
  TN_EXPECT(!tn_device_is_initialized());
  TN_EXPECT_EQ(4, tn_device_count());
  TN_EXPECT_EQ(7, count_with("TORCH_NEURONX_NUM_DEVICES", "7"));
  TN_EXPECT_EQ(0, count_with("TORCH_NEURONX_NUM_DEVICES", "-3"));
  TN_EXPECT_EQ(128, count_with("TORCH_NEURONX_NUM_DEVICES", "100000"));
  TN_EXPECT_EQ(2, count_with("NEURON_RT_NUM_CORES", "2"));
  TN_EXPECT_EQ(5, count_with("NEURON_RT_VISIBLE_CORES", "0-3,6"));
  TN_EXPECT_EQ(1, count_with("NEURON_RT_VISIBLE_CORES", "9"));
  TN_EXPECT_EQ(4, count_with("NEURON_RT_VISIBLE_CORES", "3-1"));
  TN_EXPECT_EQ(4, count_with("NEURON_RT_VISIBLE_CORES", "0,"));
  TN_EXPECT(!tn_device_is_initialized());
}

TN_TEST(a_fork_before_the_first_use_is_fine) {
  const pid_t child = fork();
  if (child == 0) {
    tn_status_t status = tn_device_check(0);
    _exit(status == TN_OK && !tn_device_is_in_bad_fork() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  TN_EXPECT_EQ(0, status);
}

TN_TEST(check_names_the_range) {
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_device_check(-1));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_device_check(4));
  TN_EXPECT(!tn_device_is_initialized());
  TN_EXPECT_OK(tn_device_check(3));
  TN_EXPECT(tn_device_is_initialized());
  TN_EXPECT_EQ(4, count_with("TORCH_NEURONX_NUM_DEVICES", "7"));  // fixed now
}

TN_TEST(streams) {
  int64_t first, second, urgent;
  TN_EXPECT_OK(tn_stream_create(1, 0, &first));
  TN_EXPECT_OK(tn_stream_create(1, 0, &second));
  TN_EXPECT_OK(tn_stream_create(2, -100, &urgent));
  TN_EXPECT(first != second && first != 0 && urgent != first);
  TN_EXPECT(tn_stream_is_valid(1, first) && tn_stream_is_valid(1, second) &&
            tn_stream_is_valid(2, urgent));
  TN_EXPECT(!tn_stream_is_valid(0, first) && !tn_stream_is_valid(1, urgent));
  TN_EXPECT(tn_stream_is_valid(0, 0) && !tn_stream_is_valid(4, 0) && !tn_stream_is_valid(-1, 0));
  TN_EXPECT(!tn_stream_is_valid(1, -first) && !tn_stream_is_valid(1, first + (100 << 16)));
  TN_EXPECT_OK(tn_stream_synchronize(1, first));
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_stream_synchronize(0, first));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_stream_synchronize(9, 0));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_device_synchronize(-1));
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_stream_create(4, 0, &first));
  TN_EXPECT(tn_stream_query(1, second));
}

TN_TEST(events) {
  tn_event_t *start, *end, *plain;
  double ms = -1;
  TN_EXPECT_OK(tn_event_create(0, true, &start));
  TN_EXPECT_OK(tn_event_create(0, true, &end));
  TN_EXPECT_OK(tn_event_create(0, false, &plain));
  TN_EXPECT_CODE(TN_FAILED_PRECONDITION, tn_event_elapsed(start, end, &ms));
  TN_EXPECT(tn_event_query(start));
  TN_EXPECT_OK(tn_event_record(start, 0));
  usleep(2000);
  TN_EXPECT_OK(tn_event_record(end, 0));
  TN_EXPECT_OK(tn_event_record(plain, 0));
  TN_EXPECT_OK(tn_event_elapsed(start, end, &ms));
  TN_EXPECT(ms >= 2.0 && ms < 5000);
  TN_EXPECT_OK(tn_event_elapsed(end, start, &ms));
  TN_EXPECT(ms <= -2.0);
  TN_EXPECT_CODE(TN_FAILED_PRECONDITION, tn_event_elapsed(start, plain, &ms));
  TN_EXPECT_OK(tn_event_wait(end, 0));
  TN_EXPECT_OK(tn_event_synchronize(end));
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_event_record(end, -1));
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_event_wait(end, 12345 << 16));
  tn_event_t* none;
  TN_EXPECT_CODE(TN_OUT_OF_RANGE, tn_event_create(99, true, &none));
  TN_EXPECT(none == NULL);
  tn_event_destroy(start);
  tn_event_destroy(end);
  tn_event_destroy(plain);
  tn_event_destroy(NULL);
}

TN_TEST(thread_count) {
  TN_EXPECT(tn_device_thread_count() >= 1);
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_device_set_thread_count(0));
  TN_EXPECT_CODE(TN_INVALID_ARGUMENT, tn_device_set_thread_count(100000));
  TN_EXPECT_OK(tn_device_set_thread_count(3));
  TN_EXPECT_EQ(3, tn_device_thread_count());
}
