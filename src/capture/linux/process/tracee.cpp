#include "capture/linux/process/tracee.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "capture/linux/process/process.h"

namespace ptkit::capture {

namespace {

// Linux's 64-bit code segment selector of user space (__USER_CS).
constexpr std::uint64_t kCs64 = 0x33;

base::Failure system_call_failed(const std::string& what) {
  return {base::Status::UNSUPPORTED, 0, what + ": " + std::strerror(errno)};
}

constexpr long kOptions = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;

// Runs between fork() and exec(): only async-signal-safe calls.
[[noreturn]] void run_program(char* const* argv, int go, int error, const sigset_t& mask, bool quiet) {
  char byte = 0;
  while (::read(go, &byte, 1) < 0 && errno == EINTR) {
  }
  for (const int number : kDefaultSignals) static_cast<void>(::signal(number, SIG_DFL));
  static_cast<void>(::sigprocmask(SIG_SETMASK, &mask, nullptr));
  const int nothing = quiet ? ::open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
  if (nothing >= 0) static_cast<void>(::dup2(nothing, STDOUT_FILENO));
  ::execvp(argv[0], argv);
  const int cause = errno;
  static_cast<void>(!::write(error, &cause, sizeof cause));
  ::_exit(127);
}

}  // namespace

base::Result<Launch> launch(const std::vector<std::string>& argv, const void* signal_mask, bool quiet) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  std::array<int, 2> go{};
  std::array<int, 2> error{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0) return system_call_failed("cannot make a pipe");
  Fd go_read(go[0]);
  Fd go_write(go[1]);
  if (::pipe2(error.data(), O_CLOEXEC) != 0) return system_call_failed("cannot make a pipe");
  Fd error_read(error[0]);
  Fd error_write(error[1]);
  sigset_t mask;
  std::memcpy(&mask, signal_mask, sizeof mask);
  const pid_t pid = ::fork();
  if (pid < 0) return system_call_failed("cannot fork");
  if (pid == 0) {
    ::close(go_write.get());
    run_program(pointers.data(), go_read.get(), error_write.get(), mask, quiet);
  }
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0) {
    const int cause = errno;
    static_cast<void>(::kill(pid, SIGKILL));
    static_cast<void>(::waitpid(pid, nullptr, 0));
    return ptrace_failure(cause, first_line("/proc/sys/kernel/yama/ptrace_scope"));
  }
  return Launch{pid, std::move(go_write), std::move(error_read)};
}

// ptrace_scope 1 permits a tracer for its own children.
base::Failure ptrace_failure(int error, const std::string& scope) {
  std::string remedy = "in a container it may need the capability CAP_SYS_PTRACE";
  if (error == EPERM && scope == "2")
    remedy = "kernel.yama.ptrace_scope is 2: run with CAP_SYS_PTRACE, or set it to 1";
  if (error == EPERM && scope == "3")
    remedy = "kernel.yama.ptrace_scope is 3, until the next boot: boot without that setting";
  return {base::Status::UNSUPPORTED, 0,
          std::string("cannot trace the program (ptrace: ") + std::strerror(error) + "); " + remedy};
}

int exec_error(const Launch& launch) {
  int cause = 0;
  return ::read(launch.error.get(), &cause, sizeof cause) == sizeof cause ? cause : 0;
}

bool read_registers(pid_t tid, Registers& out) {
  // The 64-bit register set, also for 32-bit programs.
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) != 0) return false;
  out.ip = registers.rip;
  out.sp = registers.rsp;
  out.result = registers.rax;
  out.syscall = static_cast<std::int64_t>(registers.orig_rax);
  out.mode = registers.cs == kCs64 ? code::insn::ExecMode::BITS64 : code::insn::ExecMode::BITS32;
  return true;
}

bool read_ip(pid_t tid, std::uint64_t& out) {
  errno = 0;
  const long value = ::ptrace(PTRACE_PEEKUSER, tid, offsetof(user_regs_struct, rip), nullptr);
  out = static_cast<std::uint64_t>(value);
  return value != -1 || errno == 0;
}

bool set_ip(pid_t tid, std::uint64_t ip) {
  return ::ptrace(PTRACE_POKEUSER, tid, offsetof(user_regs_struct, rip), ip) == 0;
}

int signal_code(pid_t tid) {
  siginfo_t info{};
  return ::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) == 0 ? info.si_code : -1000;
}

unsigned long event_message(pid_t tid) {
  unsigned long message = 0;
  static_cast<void>(::ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &message));
  return message;
}

// Failures are ignored: a thread may be killed at any time, and waitpid() reports its end.
void step(pid_t tid, int signal) {
  static_cast<void>(::ptrace(PTRACE_SINGLESTEP, tid, nullptr, static_cast<long>(signal)));
}
bool end_with_tracer(pid_t tid, bool ends) {
  return ::ptrace(PTRACE_SETOPTIONS, tid, nullptr, kOptions | (ends ? long{PTRACE_O_EXITKILL} : 0L)) == 0;
}
void listen(pid_t tid) { static_cast<void>(::ptrace(PTRACE_LISTEN, tid, nullptr, nullptr)); }
void interrupt(pid_t tid) { static_cast<void>(::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr)); }
void detach(pid_t tid, int signal) {
  static_cast<void>(::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<long>(signal)));
}

}  // namespace ptkit::capture
