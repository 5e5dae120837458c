#include "base/confined/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/confined/confinement.h"
#include "base/confined/pipe.h"
#include "base/posix/signals_blocked.h"

namespace ptkit::base::confined {

using base::Fd;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kInputFile = 3;  // kProgramInput

// Statuses of the process where it does not become the program.
constexpr int kNotConfined = 125;
constexpr int kNotExecuted = 126;

bool is_program(const std::string& path) {
  struct stat seen {};
  return ::stat(path.c_str(), &seen) == 0 && S_ISREG(seen.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// 14 of "llvm-pdbutil-14".
std::optional<unsigned> version_in(std::string_view file, std::string_view name) {
  if (file.size() <= name.size() + 1 || !file.starts_with(name) || file[name.size()] != '-')
    return std::nullopt;
  unsigned version = 0;
  const char* const end = file.data() + file.size();
  const auto read = std::from_chars(file.data() + name.size() + 1, end, version);
  return read.ec == std::errc() && read.ptr == end ? std::optional(version) : std::nullopt;
}

std::string find_version(const std::vector<std::string>& folders, std::string_view name) {
  std::string best;
  unsigned highest = 0;
  for (const std::string& folder : folders) {
    const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir(folder.c_str()), &::closedir);
    while (const dirent* const entry = files ? ::readdir(files.get()) : nullptr) {
      const auto version = version_in(entry->d_name, name);
      if (!version || *version <= highest || !is_program(folder + "/" + entry->d_name)) continue;
      highest = *version;
      best = folder + "/" + entry->d_name;
    }
  }
  return best;
}

// What the process needs. All memory is taken before fork(): other threads may hold locks of the heap.
struct Launch {
  const char* path;
  std::vector<char*> arguments;
  ConfinementLimits limits;
  SystemCallFilter filter;
  int input;
  int output;
  pid_t parent;
};

// Gives the process descriptors 0 to 3 alone. They are moved up first, as they may have these numbers.
bool place_descriptors(const Launch& launch) {
  const int nothing = ::fcntl(::open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, kInputFile + 1);
  const int input = ::fcntl(launch.input, F_DUPFD_CLOEXEC, kInputFile + 1);
  const int output = ::fcntl(launch.output, F_DUPFD_CLOEXEC, kInputFile + 1);
  const bool placed = ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
                      ::dup2(nothing, STDERR_FILENO) >= 0 && ::dup2(input, kInputFile) >= 0;
  close_descriptors_from(kInputFile + 1);
  return placed;
}

// The program starts with the signals as the system has them.
void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) static_cast<void>(::sigaction(signal, &action, nullptr));
  sigset_t none;
  static_cast<void>(::sigemptyset(&none));
  static_cast<void>(::sigprocmask(SIG_SETMASK, &none, nullptr));
}

[[noreturn]] void become_program(const Launch& launch) {
  const std::array<char*, 1> environment{nullptr};
  reset_signals();
  static_cast<void>(!::chdir("/"));
  if (!place_descriptors(launch) || !confine_program(launch.limits, launch.parent, launch.filter))
    ::_exit(kNotConfined);
  ::execve(launch.path, launch.arguments.data(), environment.data());
  ::_exit(kNotExecuted);
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return killed_by(WTERMSIG(status));
  switch (WEXITSTATUS(status)) {
    case 0:
      return {};
    case kNotConfined:
      return "the process could not give up its rights";
    case kNotExecuted:
      return "the program could not be started";
    default:
      return "the process ended with status " + std::to_string(WEXITSTATUS(status));
  }
}

// Waits for the end of a process that has closed its output, until `end`; then kills it.
std::string wait_for(pid_t process, Clock::time_point end) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process) return describe(status);
    if (ended < 0 && errno != EINTR) return {};  // this process ignores SIGCHLD
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(milliseconds(1));
  }
  static_cast<void>(::kill(process, SIGKILL));
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return describe(status);
}

}  // namespace

std::string find_program(std::string_view name) {
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? std::string_view{} : variable;
  std::vector<std::string> folders;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (rest.front() == '/') folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string& folder : folders) {
    std::string path = folder + "/" + std::string(name);
    if (is_program(path)) return path;
  }
  return find_version(folders, name);
}

Fd sealed_copy(base::Bytes bytes) {
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  Fd file(::memfd_create("ptkit-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  while (file.get() >= 0 && !bytes.empty()) {
    const ssize_t put = ::write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return {};
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  if (file.get() < 0 || ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return {};
  return file;
}

std::string run_program(const std::string& path, const std::vector<std::string>& arguments, const Fd& input,
                        const ProgramLimits& limits, const std::function<bool(std::string_view)>& take) {
  const Clock::time_point end = Clock::now() + limits.time;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return std::string("no pipe could be created: ") + std::strerror(errno);
  const Fd from(ends[0]);
  Fd to(ends[1]);
  Launch launch{path.c_str(),
                {},
                {limits.memory_bytes, static_cast<std::uint64_t>(limits.time / milliseconds(1000)) + 1},
                SystemCallFilter::for_program(),
                input.get(),
                to.get(),
                ::getpid()};
  launch.arguments.push_back(const_cast<char*>(path.c_str()));  // execve() does not change them
  for (const std::string& one : arguments) launch.arguments.push_back(const_cast<char*>(one.c_str()));
  launch.arguments.push_back(nullptr);
  pid_t process = -1;
  {
    sigset_t before;
    const base::SignalsBlocked blocked(before);
    process = ::fork();
    if (process == 0) become_program(launch);
  }
  if (process < 0) return std::string("no process could be forked: ") + std::strerror(errno);
  to = Fd();
  bool stopped = false;
  const PipeEnd read = read_pipe(from, {limits.output_bytes, limits.time}, {}, [&](base::Bytes part) {
    stopped = !take({reinterpret_cast<const char*>(part.data()), part.size()});
    return !stopped;
  });
  const bool is_killed = stopped || !read.problem.empty();
  const std::string problem = wait_for(process, is_killed ? Clock::time_point{} : end);
  if (!read.problem.empty()) return read.problem;
  return stopped ? std::string() : problem;
}

}  // namespace ptkit::base::confined
