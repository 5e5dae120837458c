#include "capture/linux/confined/fork_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/posix/fd.h"

namespace ptkit::capture::confined {

using base::Fd;

namespace {

constexpr int kParentCheckMs = 1000;

// Descriptors of confined processes.
constexpr int kInput = 3;
constexpr int kOutput = 4;

bool write_all(int file, base::Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

class ForkServer {
 public:
  ForkServer(const Work& work, pid_t parent) : work_(work), parent_(parent) {}

  [[noreturn]] void run(int socket);

 private:
  struct Request {
    RequestHead head;
    std::vector<std::uint8_t> bytes;
    Fd input;
    Fd output;
  };
  void set_up(int socket);
  [[nodiscard]] bool receive(Request& request) const;
  [[nodiscard]] Outcome serve(Request request) const;
  [[nodiscard]] int watch(pid_t child, const Fd& output) const;
  [[noreturn]] void work_confined(const Request& request) const;

  const Work& work_;
  pid_t parent_;
  pid_t own_pid_ = ::getpid();
  int ended_ = -1;  // signalfd for SIGCHLD of confined processes
};

// All signals are blocked in the fork server and in confined processes: the parent's handlers must not run
// there.
void ForkServer::set_up(int socket) {
  static_cast<void>(::setsid());
  static_cast<void>(!::chdir("/"));
  static_cast<void>(::prctl(PR_SET_NAME, "ptkit-parser", 0, 0, 0));
  static_cast<void>(::signal(SIGCHLD, SIG_DFL));
  if (socket != kForkServerSocket && ::dup2(socket, kForkServerSocket) < 0) ::_exit(1);
  for (int file = 0; file < kForkServerSocket; ++file) static_cast<void>(::close(file));
  close_descriptors_from(kForkServerSocket + 1);
  constexpr rlimit kFewFiles{64, 64};
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &kFewFiles));
  sigset_t children;
  static_cast<void>(::sigemptyset(&children));
  static_cast<void>(::sigaddset(&children, SIGCHLD));
  ended_ = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (ended_ < 0) ::_exit(1);
}

void ForkServer::run(int socket) {
  set_up(socket);
  for (;;) {
    pollfd file{kForkServerSocket, POLLIN, 0};
    static_cast<void>(::poll(&file, 1, kParentCheckMs));
    if (::getppid() != parent_) ::_exit(0);
    if (file.revents == 0) continue;
    Request request;
    if (!receive(request)) ::_exit(0);
    const Outcome outcome = serve(std::move(request));
    if (::send(kForkServerSocket, &outcome, sizeof outcome, MSG_NOSIGNAL) != sizeof outcome) ::_exit(0);
  }
}

// Returns false if the parent is gone.
bool ForkServer::receive(Request& request) const {
  request.bytes.resize(kMaxRequestBytes);
  std::array<iovec, 2> parts{iovec{&request.head, sizeof request.head},
                             iovec{request.bytes.data(), request.bytes.size()}};
  FilesMessage files{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = files.bytes.data();
  message.msg_controllen = files.bytes.size();
  const ssize_t got = ::recvmsg(kForkServerSocket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (got < static_cast<ssize_t>(sizeof request.head) || header == nullptr ||
      header->cmsg_len != CMSG_LEN(2 * sizeof(int)))
    return false;
  std::array<int, 2> numbers{};
  std::memcpy(numbers.data(), CMSG_DATA(header), sizeof numbers);
  request.input = Fd(numbers[0]);
  request.output = Fd(numbers[1]);
  request.bytes.resize(static_cast<std::size_t>(got) - sizeof request.head);
  return true;
}

// Calls clone() directly: fork() runs the atfork handlers of the parent's libraries.
Outcome ForkServer::serve(Request request) const {
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child < 0) return {errno, 0};
  if (child == 0) work_confined(request);
  return {0, watch(child, request.output)};
}

// Waits for the end of the process. Kills it if the answer's reader or the parent is gone.
int ForkServer::watch(pid_t child, const Fd& output) const {
  int status = 0;
  for (;;) {
    std::array<pollfd, 3> files{pollfd{ended_, POLLIN, 0}, pollfd{output.get(), 0, 0},
                                pollfd{kForkServerSocket, 0, 0}};
    static_cast<void>(::poll(files.data(), files.size(), kParentCheckMs));
    signalfd_siginfo taken{};
    while (::read(ended_, &taken, sizeof taken) > 0) {
    }
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    if (files[1].revents != 0 || files[2].revents != 0 || ::getppid() != parent_) break;
  }
  static_cast<void>(::kill(child, SIGKILL));
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void ForkServer::work_confined(const Request& request) const {
  if (::dup2(request.input.get(), kInput) < 0 || ::dup2(request.output.get(), kOutput) < 0)
    ::_exit(NOT_CONFINED);
  for (int file = 0; file < kInput; ++file) static_cast<void>(::close(file));
  close_descriptors_from(kOutput + 1);
  if (!confine(request.head.limits, own_pid_)) ::_exit(NOT_CONFINED);
  try {
    const Fd input(kInput);
    ::_exit(write_all(kOutput, work_(request.bytes, input)) ? COMPLETE : NOT_WRITTEN);
  } catch (const std::bad_alloc&) {
    ::_exit(NO_MEMORY);
  }
}

}  // namespace

void run_fork_server(const Work& work, pid_t parent, int socket) { ForkServer(work, parent).run(socket); }

}  // namespace ptkit::capture::confined
