#include "capture/linux/confined/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/posix/signals_blocked.h"
#include "capture/linux/confined/fork_server.h"

namespace ptkit::capture::confined {

using base::Fd;
using base::SignalsBlocked;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kForkServerTimeout{5000};  // for an answer that the fork server sends at once

struct PipeEnd {
  std::string problem;  // why it was not read to its end; empty: it was
  bool late = false;    // the problem is a timeout
};

// Appends all bytes to `out` until all writers have closed the pipe. Calls `meanwhile` every few
// milliseconds.
PipeEnd read_pipe(const Fd& pipe, const ConfinedProcesses::Limits& limits,
                  const std::function<void()>& meanwhile, std::vector<std::uint8_t>& out) {
  constexpr std::size_t kReadBytes = 65536;
  constexpr int kTickMs = 10;
  const Clock::time_point end = Clock::now() + limits.time;
  std::array<std::uint8_t, kReadBytes> part{};
  while (out.size() <= limits.answer_bytes) {
    pollfd file{pipe.get(), POLLIN, 0};
    static_cast<void>(::poll(&file, 1, kTickMs));
    if (meanwhile) meanwhile();
    if (Clock::now() >= end)
      return {"the process gave no answer within " + std::to_string(limits.time.count()) + " ms", true};
    if (file.revents == 0) continue;
    const ssize_t got = ::read(pipe.get(), part.data(), part.size());
    if (got == 0) return {};
    if (got > 0) out.insert(out.end(), part.begin(), part.begin() + got);
  }
  return {"the process wrote more than " + std::to_string(limits.answer_bytes) + " bytes"};
}

std::string describe(const Outcome& outcome) {
  if (outcome.error != 0) return std::string("no process could be forked: ") + std::strerror(outcome.error);
  if (WIFSIGNALED(outcome.status))
    return "the process was killed by signal " + std::to_string(WTERMSIG(outcome.status));
  switch (WEXITSTATUS(outcome.status)) {
    case COMPLETE:
      return {};
    case NOT_CONFINED:
      return "the process could not give up its rights";
    case NO_MEMORY:
      return "the process needs more memory than it may have";
    default:
      return "the process ended with status " + std::to_string(WEXITSTATUS(outcome.status));
  }
}

// Starts the program without the caller's environment: the dynamic linker reads it.
ConfinedProcesses::Started spawn(const std::string& executable, const Fd& socket) {
  std::string parent = std::to_string(::getpid());
  std::string name = executable;
  const std::array<char*, 3> argv{name.data(), parent.data(), nullptr};
  const std::array<char*, 1> environment{nullptr};
  posix_spawn_file_actions_t actions;
  int error = ::posix_spawn_file_actions_init(&actions);
  if (error != 0) return {-1, error};
  error = ::posix_spawn_file_actions_adddup2(&actions, socket.get(), kForkServerSocket);
  pid_t pid = -1;
  if (error == 0)
    error = ::posix_spawn(&pid, executable.c_str(), &actions, nullptr, argv.data(), environment.data());
  static_cast<void>(::posix_spawn_file_actions_destroy(&actions));
  return {error == 0 ? pid : -1, error};
}

}  // namespace

ConfinedProcesses::ConfinedProcesses(const Work& work) {
  start("forked", [&work](const Fd& socket) {
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) run_fork_server(work, parent, socket.get());
    return Started{pid, errno};
  });
}

ConfinedProcesses::ConfinedProcesses(const std::string& executable) {
  start("started", [&executable](const Fd& socket) { return spawn(executable, socket); });
}

void ConfinedProcesses::start(const char* how, const std::function<Started(const Fd& socket)>& begin) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    missing_ = std::string("no socket could be created: ") + std::strerror(errno);
    return;
  }
  Fd own(ends[0]);
  const Fd other(ends[1]);
  sigset_t before;
  const SignalsBlocked blocked(before);
  const Started started = begin(other);
  if (started.pid < 0) {
    missing_ = std::string("no process could be ") + how + ": " + std::strerror(started.error);
    return;
  }
  fork_server_ = started.pid;
  socket_ = std::move(own);
}

ConfinedProcesses::~ConfinedProcesses() { end(); }

ConfinedProcesses::Answer ConfinedProcesses::ask(base::Bytes request, const Fd& input, const Limits& limits,
                                                 const std::function<void()>& meanwhile) {
  const std::lock_guard lock(mutex_);
  Answer answer;
  std::array<int, 2> ends{};
  if (socket_.get() < 0) {
    answer.problem = missing_;
  } else if (request.size() > kMaxRequestBytes) {
    answer.problem = "the request is longer than " + std::to_string(kMaxRequestBytes) + " bytes";
  } else if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    answer.problem = std::string("no pipe could be created: ") + std::strerror(errno);
  } else {
    Fd from(ends[0]);
    if (!send(request, input, Fd(ends[1]), limits)) {
      const int error = errno;
      const bool has_ended = error == EPIPE || error == ECONNRESET;
      answer.problem = has_ended ? end_without_fork_server()
                                 : std::string("no request could be sent: ") + std::strerror(error);
      return answer;
    }
    PipeEnd read = read_pipe(from, limits, meanwhile, answer.bytes);
    from = Fd();  // the fork server kills a process without a reader of its answer
    answer.problem = std::move(read.problem);
    answer.late = read.late;
    const std::string problem = outcome();
    if (answer.problem.empty()) answer.problem = problem;
  }
  if (!answer.problem.empty()) answer.bytes.clear();
  return answer;
}

bool ConfinedProcesses::send(base::Bytes request, const Fd& input, const Fd& output,
                             const Limits& limits) const {
  constexpr milliseconds kSecond{1000};
  RequestHead head;
  head.limits.memory_bytes = limits.memory_bytes;
  head.limits.cpu_seconds = static_cast<std::uint64_t>(limits.time / kSecond) + 1;
  std::array<iovec, 2> parts{iovec{&head, sizeof head},
                             iovec{const_cast<std::uint8_t*>(request.data()), request.size()}};
  FilesMessage files{};
  files.header.cmsg_level = SOL_SOCKET;
  files.header.cmsg_type = SCM_RIGHTS;
  files.header.cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> numbers{input.get(), output.get()};
  std::memcpy(CMSG_DATA(&files.header), numbers.data(), sizeof numbers);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = files.bytes.data();
  message.msg_controllen = files.bytes.size();
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) > 0;
}

// The fork server's report about the ended process.
std::string ConfinedProcesses::outcome() {
  pollfd file{socket_.get(), POLLIN, 0};
  while (::poll(&file, 1, static_cast<int>(kForkServerTimeout.count())) < 0 && errno == EINTR) {
  }
  Outcome reported;
  if (file.revents != 0 && ::recv(socket_.get(), &reported, sizeof reported, MSG_DONTWAIT) == sizeof reported)
    return describe(reported);
  return end_without_fork_server();
}

std::string ConfinedProcesses::end_without_fork_server() {
  end();
  missing_ = "the process that starts others has ended";
  return missing_;
}

// The fork server exits after shutdown() of its socket, even if another process has a copy of the socket.
// Kills a fork server that hangs.
void ConfinedProcesses::end() {
  if (socket_.get() >= 0) static_cast<void>(::shutdown(socket_.get(), SHUT_RDWR));
  socket_ = Fd();
  if (fork_server_ == 0) return;
  const Clock::time_point timeout = Clock::now() + kForkServerTimeout;
  for (milliseconds pause{0}; ::waitpid(fork_server_, nullptr, WNOHANG) == 0; pause = milliseconds(1)) {
    if (Clock::now() > timeout) static_cast<void>(::kill(fork_server_, SIGKILL));
    std::this_thread::sleep_for(pause);
  }
  fork_server_ = 0;
}

}  // namespace ptkit::capture::confined
