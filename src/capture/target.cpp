#include "capture/target.h"

#include <elf.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "capture/launcher.h"

namespace ptkit::capture {

namespace {

constexpr std::uint8_t kBreakpoint = 0xcc;  // INT3

base::Failure io_error(std::string what) { return {base::Status::IO_ERROR, 0, std::move(what)}; }

bool is_event(int status, int event) { return status >> 8 == (SIGTRAP | (event << 8)); }

std::uint64_t entry_point(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/auxv", std::ios::binary);
  std::array<std::uint64_t, 2> pair{};
  while (file.read(reinterpret_cast<char*>(pair.data()), sizeof pair)) {
    if (pair[0] == AT_ENTRY) return pair[1];
  }
  return 0;
}

}  // namespace

base::Result<Target> Target::launch(const RecordOptions& options, const sigset_t& mask) {
  auto launched = capture::launch(options.argv, &mask, options.quiet);
  if (!launched.ok()) return launched.failure();
  Target target;
  target.pid_ = launched.value().pid;
  target.ours_ = target.held_ = true;
  target.handle_ = open_process(target.pid_);
  launched.value().go = Fd();
  int status = 0;
  while (::waitpid(target.pid_, &status, __WALL) >= 0 || errno == EINTR) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      const int cause = capture::exec_error(launched.value());
      return io_error("cannot run " + options.argv.front() + ": " +
                      (cause != 0 ? std::strerror(cause) : "it was killed before it began"));
    }
    if (is_event(status, PTRACE_EVENT_EXEC)) break;
    const long signal = (status >> 16) == 0 ? WSTOPSIG(status) : 0;
    static_cast<void>(::ptrace(PTRACE_CONT, target.pid_, nullptr, signal));
  }
  return target;
}

base::Result<Target> Target::attach(int pid) {
  Target target;
  target.pid_ = pid;
  target.handle_ = open_process(pid);
  if (pid <= 0 || target.handle_.get() < 0)
    return base::Failure{
        base::Status::BAD_CONFIG, 0,
        "pid: there is no process " + std::to_string(pid) + " (a thread is recorded by its process)"};
  return target;
}

bool Target::wait_for_trap() {
  for (;;) {
    int status = 0;
    if (::waitpid(pid_, &status, __WALL) < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      end(status);
      return false;
    }
    const bool plain = (status >> 16) == 0;
    if (plain && WSTOPSIG(status) == SIGTRAP) return true;
    static_cast<void>(::ptrace(PTRACE_CONT, pid_, nullptr, plain ? long{WSTOPSIG(status)} : 0L));
  }
}

std::optional<base::Failure> Target::run_to_entry() {
  const base::Failure failed = io_error("filters: the program did not get as far as its entry point");
  const std::uint64_t entry = entry_point(pid_);
  const Memory memory(pid_);
  std::array<std::uint8_t, 1> before{};
  if (entry == 0 || memory.read(entry, before) != 1 || !memory.write_byte(entry, kBreakpoint)) return failed;
  static_cast<void>(::ptrace(PTRACE_CONT, pid_, nullptr, 0L));
  Registers registers;
  if (!wait_for_trap() || !read_registers(pid_, registers) || registers.ip != entry + 1) return failed;
  if (!memory.write_byte(entry, before[0]) || !set_ip(pid_, entry)) return failed;
  return {};
}

void Target::go() {
  if (held_) detach(pid_, 0);
  held_ = false;
}

void Target::kill() {
  if (!ours_ || ended_) return;
  static_cast<void>(::kill(pid_, SIGKILL));
  int status = 0;
  while (::waitpid(pid_, &status, __WALL) < 0 && errno == EINTR) {
  }
  held_ = false;
  ended_ = true;
}

void Target::signal(int number) const noexcept {
  if (!ended_) static_cast<void>(::kill(pid_, number));
}

void Target::end(int status) {
  ended_ = true;
  held_ = false;
  exit_status_ = exit_status_of(status);
}

bool Target::has_ended() {
  if (ended_) return true;
  if (!ours_) {
    pollfd file{handle_.get(), POLLIN, 0};
    ended_ = ::poll(&file, 1, 0) > 0;
    return ended_;
  }
  int status = 0;
  const pid_t pid = ::waitpid(pid_, &status, WNOHANG | __WALL);
  if (pid == pid_ && !WIFSTOPPED(status)) end(status);
  if (pid < 0 && errno == ECHILD) ended_ = true;
  return ended_;
}

}  // namespace ptkit::capture
