// Processes hostile input in confined processes.
//
//   parent --request, input, pipe--> fork server --fork()--> confined process --pipe--> parent
//
// The fork server starts once and has only its socket. It forks one process for each request, so one input
// cannot affect the work on another. The process drops all privileges, keeps only the descriptors of the
// input and the pipe, and sets resource limits and a system call filter. If a step fails, the work does not
// begin.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/posix/fd.h"
#include "capture/linux/confined/fork_server.h"

namespace ptkit::capture::confined {

class ConfinedProcesses {
 public:
  struct Limits {
    std::uint64_t answer_bytes = 0;
    std::uint64_t memory_bytes = 0;  // in addition to a copy of the fork server's memory
    std::chrono::milliseconds time{0};
  };
  struct Answer {
    std::vector<std::uint8_t> bytes;
    std::string problem;  // "the process was killed by signal 11"; empty: the answer is complete
    bool late = false;    // the problem is a timeout
  };

  // Forks the fork server from this process. Each confined process has a copy of this process's memory, so
  // this is cheap only while the memory is small.
  explicit ConfinedProcesses(const Work& work);
  // Starts the fork server as a program. The program calls run_fork_server() with its only argument as the
  // parent's PID and with kForkServerSocket.
  explicit ConfinedProcesses(const std::string& executable);
  ~ConfinedProcesses();
  ConfinedProcesses(const ConfinedProcesses&) = delete;
  ConfinedProcesses& operator=(const ConfinedProcesses&) = delete;

  // Thread-safe; requests run one after another. Calls `meanwhile` every few milliseconds.
  [[nodiscard]] Answer ask(base::Bytes request, const base::Fd& input, const Limits& limits,
                           const std::function<void()>& meanwhile);
  [[nodiscard]] pid_t fork_server() const noexcept { return fork_server_; }  // 0: no fork server

  struct Started {
    pid_t pid = -1;  // -1: see `error`
    int error = 0;
  };

 private:
  void start(const char* how, const std::function<Started(const base::Fd& socket)>& begin);
  [[nodiscard]] bool send(base::Bytes request, const base::Fd& input, const base::Fd& output,
                          const Limits& limits) const;
  [[nodiscard]] std::string outcome();
  [[nodiscard]] std::string end_without_fork_server();
  void end();

  std::mutex mutex_;
  base::Fd socket_;
  pid_t fork_server_ = 0;
  std::string missing_;  // why there is no fork server
};

}  // namespace ptkit::capture::confined
