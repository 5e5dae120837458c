#include "capture/tracee.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

#include "capture/program_signals.h"

namespace ptkit::capture {

namespace {

// Linux' code segment selectors of user space.
constexpr std::uint64_t kCs64 = 0x33;

base::Failure failed(const std::string& what) {
  return {base::Status::UNSUPPORTED, 0, what + ": " + std::strerror(errno)};
}

constexpr long kOptions = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;

// After fork, before exec: only calls that are safe there.
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

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t take_hex(std::string_view& text) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);  // the separator
  return value;
}

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (open == nullptr) return out;
  while (const dirent* entry = ::readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    pid_t number = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [stop, error] = std::from_chars(entry->d_name, end, number);
    if (error == std::errc() && stop == end) out.push_back(number);
  }
  return out;
}

}  // namespace

base::Result<Launch> launch(const std::vector<std::string>& argv, const void* signal_mask, bool quiet) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  std::array<int, 2> go{};
  std::array<int, 2> error{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0) return failed("cannot make a pipe");
  Fd go_read(go[0]);
  Fd go_write(go[1]);
  if (::pipe2(error.data(), O_CLOEXEC) != 0) return failed("cannot make a pipe");
  Fd error_read(error[0]);
  Fd error_write(error[1]);
  sigset_t mask;
  std::memcpy(&mask, signal_mask, sizeof mask);
  const pid_t pid = ::fork();
  if (pid < 0) return failed("cannot fork");
  if (pid == 0) {
    ::close(go_write.get());
    run_program(pointers.data(), go_read.get(), error_write.get(), mask, quiet);
  }
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0) {
    const int cause = errno;
    static_cast<void>(::kill(pid, SIGKILL));
    static_cast<void>(::waitpid(pid, nullptr, 0));
    return ptrace_refusal(cause, read_line("/proc/sys/kernel/yama/ptrace_scope"));
  }
  return Launch{pid, std::move(go_write), std::move(error_read)};
}

// Scope 1 allows it: the program is a child.
base::Failure ptrace_refusal(int error, const std::string& scope) {
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

int exit_status_of(int wait_status) noexcept {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

bool read_registers(pid_t tid, Registers& out) {
  // The 64-bit view also of 32-bit programs.
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &registers) != 0) return false;
  out.ip = registers.rip;
  out.sp = registers.rsp;
  out.result = registers.rax;
  out.syscall = static_cast<std::int64_t>(registers.orig_rax);
  out.mode = registers.cs == kCs64 ? insn::ExecMode::BITS64 : insn::ExecMode::BITS32;
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

// A thread may be killed at any time: a failure shows when its end is reported.
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

Memory::Memory(pid_t pid) : fd_(::open((process_folder(pid) + "/mem").c_str(), O_RDWR | O_CLOEXEC)) {}

std::size_t Memory::read(std::uint64_t address, std::span<std::uint8_t> out) const {
  const ssize_t size = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(address));
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

bool Memory::write_byte(std::uint64_t address, std::uint8_t value) const {
  return ::pwrite(fd_.get(), &value, 1, static_cast<off_t>(address)) == 1;
}

std::string process_folder(pid_t pid) {
  std::string folder = "/proc/" + std::to_string(pid);
  if (::access((folder + "/root").c_str(), F_OK) == 0 || errno != ENOENT) return folder;
  for (const pid_t tid : threads_of(pid)) {
    std::string other = folder + "/task/" + std::to_string(tid);
    if (tid != pid && ::access((other + "/root").c_str(), F_OK) == 0) return other;
  }
  return folder;
}

std::vector<Mapping> read_maps(pid_t pid) { return read_maps_in(process_folder(pid)); }

std::vector<Mapping> read_maps_in(const std::string& folder) {
  std::ifstream file(folder + "/maps");
  std::vector<Mapping> mappings;
  for (std::string line; std::getline(file, line);) {
    std::string_view rest(line);
    Mapping mapping;
    mapping.begin = take_hex(rest);
    mapping.end = take_hex(rest);
    if (rest.size() < 5) continue;
    mapping.writable = rest[1] == 'w';
    mapping.executable = rest[2] == 'x';
    mapping.shared = rest[3] == 's';
    rest.remove_prefix(5);
    mapping.offset = take_hex(rest);
    // device ("08:01"), inode, blanks, path
    const auto major = static_cast<unsigned>(take_hex(rest));
    mapping.device = makedev(major, static_cast<unsigned>(take_hex(rest)));
    const auto number = std::from_chars(rest.data(), rest.data() + rest.size(), mapping.inode);
    rest.remove_prefix(static_cast<std::size_t>(number.ptr - rest.data()));
    const auto path = rest.find_first_not_of(' ');
    if (path != std::string_view::npos) mapping.path = rest.substr(path);
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

bool is_thread_of(pid_t pid, pid_t tid) {
  return ::access(("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid)).c_str(), F_OK) == 0;
}

std::vector<pid_t> processes() { return numbers_in("/proc"); }

std::vector<pid_t> threads_of(pid_t pid) { return numbers_in("/proc/" + std::to_string(pid) + "/task"); }

std::string thread_name(pid_t pid, pid_t tid) {
  return read_line("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/comm");
}

std::string program_path(pid_t pid) {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink((process_folder(pid) + "/exe").c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace ptkit::capture
