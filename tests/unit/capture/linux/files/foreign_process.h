// A process that maps a file and then changes it. If the tests run as root, the process has another user.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "base/posix/map_memory.h"

namespace ptkit::capture::test {

constexpr uid_t kOtherUser = 65534;

class ForeignProcess {
 public:
  // Runs `run` in the process, which then waits for its end. `run` returns true on success and must not use
  // gtest.
  explicit ForeignProcess(const std::function<bool()>& run, bool other_user = true) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      static_cast<void>(::prctl(PR_SET_PDEATHSIG, SIGKILL));
      if (::getuid() == 0 && other_user && !become_other_user()) ::_exit(1);
      const char answer = run() ? 'y' : 'n';
      static_cast<void>(!::write(ready[1], &answer, 1));
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char answer = 0;
    worked_ = ::read(ready[0], &answer, 1) == 1 && answer == 'y';
    ::close(ready[0]);
  }
  ForeignProcess(const ForeignProcess&) = delete;
  ForeignProcess& operator=(const ForeignProcess&) = delete;
  ~ForeignProcess() { end(); }

  void end() {
    if (pid_ <= 0) return;
    static_cast<void>(::kill(pid_, SIGKILL));
    static_cast<void>(::waitpid(pid_, nullptr, 0));
    pid_ = 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool worked() const { return worked_; }

 private:
  static bool become_other_user() {
    return ::setgroups(0, nullptr) == 0 && ::setresgid(kOtherUser, kOtherUser, kOtherUser) == 0 &&
           ::setresuid(kOtherUser, kOtherUser, kOtherUser) == 0;
  }

  pid_t pid_ = 0;
  bool worked_ = false;
};

// Maps `bytes` bytes of the file as code. Returns the address or MAP_FAILED. Touches the first two pages, as
// execution does.
inline void* map_code(const std::string& path, std::uint64_t bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* memory = base::map_memory(bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  struct stat info {};
  const off_t size =
      ::fstat(file, &info) == 0 ? std::min({info.st_size, static_cast<off_t>(bytes), off_t{8192}}) : 0;
  ::close(file);
  if (memory == MAP_FAILED) return memory;
  for (off_t at = 0; at < size; at += 4096) static_cast<void>(static_cast<const volatile char*>(memory)[at]);
  return memory;
}

// Drops the capabilities that /proc/PID/map_files needs from this thread only.
class WithoutMapFiles {
 public:
  WithoutMapFiles() {
    get(before_);
    Words now = before_;
    for (const unsigned one : {unsigned{CAP_SYS_ADMIN}, unsigned{CAP_CHECKPOINT_RESTORE}})
      now[one / 32].effective &= ~(1U << one % 32);
    set(now);
  }
  WithoutMapFiles(const WithoutMapFiles&) = delete;
  WithoutMapFiles& operator=(const WithoutMapFiles&) = delete;
  ~WithoutMapFiles() { set(before_); }

 private:
  using Words = std::array<__user_cap_data_struct, 2>;
  static void get(Words& words) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    static_cast<void>(::syscall(SYS_capget, &header, words.data()));
  }
  static void set(const Words& words) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    static_cast<void>(::syscall(SYS_capset, &header, words.data()));
  }
  Words before_{};
};

}  // namespace ptkit::capture::test
