#include "capture/linux/session/target_process.h"

#include <elf.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace ptkit::capture {

namespace {

constexpr std::uint8_t kBreakpoint = 0xcc;  // INT3

base::Failure io_error(std::string what) { return {base::Status::IO_ERROR, 0, std::move(what)}; }

// pidfd_open(2) of a thread that is no thread group leader fails with EINVAL or ENOENT.
base::Failure attach_error(int pid, int error) {
  const std::string process = "process " + std::to_string(pid);
  if (error == ESRCH || error == EINVAL || error == ENOENT) {
    return {base::Status::BAD_CONFIG, 0,
            "pid: there is no " + process + " (a thread is recorded by its process)"};
  }
  const char* remedy = error == ENOSYS ? "boot Linux 5.3 or newer"
                       : error == EMFILE || error == ENFILE
                           ? "too many files are open; close some, or raise the limit (ulimit -n)"
                           : "in a container allow pidfd_open in its seccomp profile";
  return {base::Status::UNSUPPORTED, 0,
          "pid: " + process + " cannot be watched (pidfd_open: " + std::strerror(error) + "); " + remedy};
}

bool is_event(int status, int event) { return status >> 8 == (SIGTRAP | (event << 8)); }

bool begins_another(int status) {
  return is_event(status, PTRACE_EVENT_FORK) || is_event(status, PTRACE_EVENT_VFORK) ||
         is_event(status, PTRACE_EVENT_CLONE);
}

template <typename Word>
std::uint64_t find_entry(std::ifstream& file) {
  std::array<Word, 2> pair{};
  while (file.read(reinterpret_cast<char*>(pair.data()), sizeof pair)) {
    if (pair[0] == AT_ENTRY) return pair[1];
  }
  return 0;
}

// The entry point of a stopped program (AT_ENTRY). Words of its auxiliary vector are 4 or 8 bytes long.
std::uint64_t entry_point(pid_t pid) {
  Registers registers;
  if (!read_registers(pid, registers)) return 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/auxv", std::ios::binary);
  return registers.mode == code::insn::ExecMode::BITS64 ? find_entry<std::uint64_t>(file)
                                                        : find_entry<std::uint32_t>(file);
}

}  // namespace

// A software breakpoint (INT3) at the entry point of a stopped program.
class TargetProcess::EntryBreakpoint {
 public:
  explicit EntryBreakpoint(pid_t pid) : pid_(pid), address_(entry_point(pid)), memory_(pid) {}

  // A killed recorder cannot remove the breakpoint, and SIGTRAP would kill the program later. So the program
  // ends with the recorder (PTRACE_O_EXITKILL), as do stopped children, which have the breakpoint, too. The
  // program has had no effect yet. Attached processes get no breakpoint and outlive the recorder.
  [[nodiscard]] bool set() {
    return end_with_tracer(pid_, true) && address_ != 0 && memory_.read(address_, before_) == 1 &&
           memory_.write_byte(address_, kBreakpoint);
  }
  // Whether the thread has just executed the breakpoint: its IP is right after INT3.
  [[nodiscard]] bool reached() const {
    std::uint64_t ip = 0;
    return read_ip(pid_, ip) && ip == address_ + 1;
  }
  [[nodiscard]] bool clear() const {
    return memory_.write_byte(address_, before_[0]) && set_ip(pid_, address_) && end_with_tracer(pid_, false);
  }

  // Detaches from a new thread or child. A child has a copy of the breakpoint, unless it shares the memory
  // (CLONE_VM): the byte is restored in the child, and the breakpoint is set again in the program.
  void detach_child(pid_t child) const {
    int status = 0;
    while (::waitpid(child, &status, __WALL) < 0) {
      if (errno != EINTR) return;
    }
    if (!WIFSTOPPED(status)) return;
    static_cast<void>(Memory(child).write_byte(address_, before_[0]));
    static_cast<void>(memory_.write_byte(address_, kBreakpoint));
    detach(child, 0);
  }

 private:
  pid_t pid_;
  std::uint64_t address_;
  Memory memory_;
  std::array<std::uint8_t, 1> before_{};
};

base::Result<TargetProcess> TargetProcess::launch(const RecordOptions& options, const sigset_t& mask) {
  auto launched = capture::launch(options.argv, &mask, options.quiet);
  if (!launched.ok()) return launched.failure();
  TargetProcess target;
  target.pid_ = launched.value().pid;
  target.launched_ = target.held_ = true;
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

base::Result<TargetProcess> TargetProcess::attach(int pid) {
  TargetProcess target;
  target.pid_ = pid;
  target.handle_ = open_process(pid);
  if (pid > 0 && target.handle_.get() >= 0) return target;
  return attach_error(pid, pid > 0 ? errno : EINVAL);
}

// Returns nothing if the program has exited.
std::optional<TargetProcess::Arrival> TargetProcess::wait_for_arrival(const EntryBreakpoint& entry) {
  for (;;) {
    int status = 0;
    if (::waitpid(pid_, &status, __WALL) < 0) {
      if (errno == EINTR) continue;
      return {};
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      end(status);
      return {};
    }
    if (is_event(status, PTRACE_EVENT_EXEC)) return Arrival::EXEC;
    if (begins_another(status)) entry.detach_child(static_cast<pid_t>(event_message(pid_)));
    const bool plain = (status >> 16) == 0;
    if (plain && WSTOPSIG(status) == SIGTRAP && entry.reached()) return Arrival::ENTRY;
    static_cast<void>(::ptrace(PTRACE_CONT, pid_, nullptr, plain ? long{WSTOPSIG(status)} : 0L));
  }
}

std::optional<base::Failure> TargetProcess::run_to_entry() {
  const std::string never = "filters, triggers: the program did not get as far as its entry point";
  for (;;) {
    EntryBreakpoint entry(pid_);
    if (!entry.set()) return io_error(never + ": its memory cannot be written");
    static_cast<void>(::ptrace(PTRACE_CONT, pid_, nullptr, 0L));
    const auto arrival = wait_for_arrival(entry);
    if (!arrival) {
      return io_error(never + ", where its libraries would be known: it ended before (exit status " +
                      std::to_string(exit_status_.value_or(0)) + ")");
    }
    if (*arrival == Arrival::EXEC) continue;
    return entry.clear() ? std::nullopt : std::optional(io_error(never + ": it is gone"));
  }
}

void TargetProcess::release() {
  if (held_) detach(pid_, 0);
  held_ = false;
}

void TargetProcess::kill() {
  if (!launched_ || ended_) return;
  static_cast<void>(::kill(pid_, SIGKILL));
  int status = 0;
  while (::waitpid(pid_, &status, __WALL) < 0 && errno == EINTR) {
  }
  held_ = false;
  ended_ = true;
}

void TargetProcess::signal(int number) const noexcept {
  if (!ended_) static_cast<void>(::kill(pid_, number));
}

void TargetProcess::end(int status) {
  ended_ = true;
  held_ = false;
  exit_status_ = exit_status_of(status);
}

bool TargetProcess::has_ended() {
  if (ended_) return true;
  if (!launched_) {
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
