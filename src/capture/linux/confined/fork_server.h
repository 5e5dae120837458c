// The fork server: a process that forks a confined process for each request (processes.h). Also the messages
// between fork server and parent.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/posix/fd.h"
#include "capture/linux/confined/confinement.h"

namespace ptkit::capture::confined {

// Runs in a confined process and returns the answer.
using Work = std::function<std::vector<std::uint8_t>(base::Bytes request, const base::Fd& input)>;

// Parent to fork server: this head, the request's bytes, and two descriptors: the input, and the pipe for the
// answer.
struct RequestHead {
  ConfinementLimits limits;
};
constexpr std::size_t kMaxRequestBytes = 65536;
// The control message of two descriptors (cmsg(3)).
union FilesMessage {
  cmsghdr header;
  std::array<char, CMSG_SPACE(2 * sizeof(int))> bytes;
};

// Fork server to parent, when the confined process has ended.
struct Outcome {
  int error = 0;   // of fork()
  int status = 0;  // waitpid() status
};
enum ExitStatus : int { COMPLETE = 0, NOT_CONFINED = 3, NO_MEMORY = 4, NOT_WRITTEN = 5 };

constexpr int kForkServerSocket = 3;  // the fork server's descriptor of the socket

// For a single-threaded process with all signals blocked. Exits when the other end of `socket` is closed or
// `parent` has ended.
[[noreturn]] void run_fork_server(const Work& work, pid_t parent, int socket);

}  // namespace ptkit::capture::confined
