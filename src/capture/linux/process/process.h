// Reads a process's mappings, threads, names and memory (/proc), and opens pidfds.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/posix/fd.h"

namespace ptkit::capture {

using base::Fd;

// Reads and writes a process's memory (/proc/PID/mem), regardless of page protection.
class Memory {
 public:
  explicit Memory(pid_t pid);
  [[nodiscard]] std::size_t read(std::uint64_t address, std::span<std::uint8_t> out) const;  // bytes read
  [[nodiscard]] bool write_byte(std::uint64_t address, std::uint8_t value) const;

 private:
  Fd fd_;
};

// A mapping: one line of /proc/PID/maps or one mapping record of the kernel.
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::string path;          // empty: anonymous
  std::uint64_t device = 0;  // makedev() encoding
  std::uint64_t inode = 0;   // 0: no file, or not recorded
  std::string build_id{};    // hex; empty: not recorded
};
[[nodiscard]] std::vector<Mapping> read_maps(pid_t pid);
[[nodiscard]] std::vector<Mapping> read_maps_in(const std::string& folder);  // "/proc/PID"
// A process's folder in /proc: "/proc/PID", or that of another thread after the main thread has ended.
[[nodiscard]] std::string process_folder(pid_t pid);
[[nodiscard]] std::vector<pid_t> processes();  // all visible processes
[[nodiscard]] std::vector<pid_t> threads_of(pid_t pid);
[[nodiscard]] bool is_thread_of(pid_t pid, pid_t tid);
[[nodiscard]] std::string thread_name(pid_t pid, pid_t tid);
[[nodiscard]] std::string program_path(pid_t pid);
[[nodiscard]] std::string working_directory(pid_t pid);
struct ProcessIdentity {
  uid_t user = 0;     // effective
  pid_t own_pid = 0;  // as the process sees it: in its PID namespace
};
// nullopt: the process has ended.
[[nodiscard]] std::optional<ProcessIdentity> identity_of(pid_t pid);
// The first line of a file; empty if the file cannot be read.
[[nodiscard]] std::string first_line(const std::string& path);

// Opens a pidfd; -1 if the process has ended.
[[nodiscard]] Fd open_process(pid_t pid);
// The exit status for a wait() status: the program's status, or 128 + signal.
[[nodiscard]] int exit_status_of(int wait_status) noexcept;

// The signals that a recorder resets to their defaults for the recorded program. An interpreter may ignore
// SIGPIPE and SIGXFSZ. A shell makes a background recorder and its program ignore SIGINT, which the recorder
// uses to end the program.
inline constexpr std::array kDefaultSignals{SIGINT, SIGPIPE, SIGXFSZ};

}  // namespace ptkit::capture
