// Names of threads.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/linux/emulator/plugin/thread.h"

namespace ptkit::capture::plugin {

namespace {

constexpr size_t kNameBytes = 16;  // with the null byte

void mark_name(int32_t tid, const char (&name)[kNameBytes]) {
  uint64_t words[2];
  static_assert(sizeof words == sizeof name);
  memcpy(words, name, sizeof words);
  mark(MarkKind::NAME, static_cast<uint64_t>(tid), words[0], words[1]);
}

void mark_name_of(int32_t tid) {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char name[kNameBytes] = {};
  const ssize_t size = read(file, name, sizeof name);
  close(file);
  if (size <= 0) return;
  name[size - 1] = 0;  // a line feed
  mark_name(tid, name);
}

// The thread for a path of /proc/PID/task/TID/comm; 0 for other paths. A process can name only its own
// threads.
int32_t tid_of_name_file(const char* path) {
  if (strncmp(path, "/proc/", 6) != 0) return 0;
  int tid = 0;
  int pid = 0;
  int end = 0;
  if (sscanf(path, "/proc/self/task/%d/comm%n", &tid, &end) == 1 && end != 0 && path[end] == 0) return tid;
  end = 0;
  if (sscanf(path, "/proc/%d/task/%d/comm%n", &pid, &tid, &end) == 2 && end != 0 && path[end] == 0)
    return tid;
  if (strcmp(path, "/proc/self/comm") == 0) return getpid();
  if (strcmp(path, "/proc/thread-self/comm") == 0) return static_cast<int32_t>(syscall(SYS_gettid));
  return 0;
}

// The kernel has read the path, so it is readable here, too (guest_base is 0).
void follow_open(uint64_t path, int64_t file) {
  const int32_t tid = tid_of_name_file(reinterpret_cast<const char*>(path));
  if (tid == 0) return;
  thread.name_file = static_cast<int32_t>(file);
  thread.named_tid = tid;
}

}  // namespace

void mark_own_name() {
  char name[kNameBytes] = {};
  if (prctl(PR_GET_NAME, name) == 0) mark_name(static_cast<int32_t>(syscall(SYS_gettid)), name);
}

void follow_names(int64_t number, int64_t result) {
  if (result < 0) return;
  const bool on_name_file = thread.named_tid != 0 && static_cast<int32_t>(thread.call[0]) == thread.name_file;
  switch (number) {
    case SYS_prctl:
      if (thread.call[0] == PR_SET_NAME) mark_own_name();
      return;
    case SYS_open:
      return follow_open(thread.call[0], result);
    case SYS_openat:
      return follow_open(thread.call[1], result);
    case SYS_write:
      if (on_name_file) mark_name_of(thread.named_tid);
      return;
    case SYS_close:
      if (on_name_file) thread.named_tid = 0;
      return;
    default:
      return;
  }
}

}  // namespace ptkit::capture::plugin
