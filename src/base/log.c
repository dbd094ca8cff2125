#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/options.h"
#include "base/os.h"

bool tn_log_is_enabled(tn_log_level_t level) {
  return tn_option_int(TN_OPTION_LOG_LEVEL) >= (int64_t)level;
}

void tn_log(tn_log_level_t level, const char* format, ...) {
  if (!tn_log_is_enabled(level)) return;
  const int saved = errno;
  static const char letters[] = "?WID";
  char line[1024];
  const int64_t now = tn_os_now_ns();
  int size =
      snprintf(line, sizeof(line), "torch_neuronx %c %lld.%06lld %d] ", letters[level & 3],
               (long long)(now / 1000000000), (long long)(now / 1000 % 1000000), (int)getpid());
  va_list args;
  va_start(args, format);
  const int text = vsnprintf(line + size, sizeof(line) - (size_t)size - 1, format, args);
  va_end(args);
  const int space = (int)sizeof(line) - size - 2;
  size += text < 0 ? 0 : text < space ? text : space;
  line[size++] = '\n';
  // Opened for each message: messages are rare, and a rotated or forked log needs no further care.
  const char* path = tn_option_string(TN_OPTION_LOG_FILE);
  const int file = *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  const ssize_t written = write(file >= 0 ? file : STDERR_FILENO, line, (size_t)size);
  (void)written;  // nothing can be done about a log that cannot be written
  if (file >= 0) close(file);
  errno = saved;
}
