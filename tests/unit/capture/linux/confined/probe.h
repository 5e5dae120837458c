// What /proc says of confined processes, and a kernel that refuses some system calls.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ptkit::capture::confined::test {

// What follows `key` in a line of a file of /proc/PID, without blanks at its beginning; "?": there is no such
// line.
inline std::string line_of(pid_t pid, const std::string& file, const std::string& key) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", key.size());
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return "?";
}

inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  std::error_code ignored;
  for (const auto& one : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(one.path().filename().c_str());
    if (pid > 0 && line_of(pid, "status", "PPid:") == std::to_string(parent)) out.push_back(pid);
  }
  return out;
}

// This limit is the last thing that is set, save the filter.
inline bool is_confined(pid_t pid) { return line_of(pid, "limits", "Max msgqueue size").front() == '0'; }

inline std::set<std::string> descriptors_of(pid_t pid) {
  std::set<std::string> out;
  std::error_code ignored;
  for (const auto& one : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored))
    out.insert(one.path().filename());
  return out;
}

// A system call that fails; `first_argument` empty: whatever its arguments are.
struct Refusal {
  long number = 0;
  std::optional<std::uint32_t> first_argument;
  int error = 0;
};

// From here on, for this process and those that it begins.
inline bool refuse(const Refusal& refusal) {
  const std::uint32_t number = offsetof(seccomp_data, nr);
  const std::uint32_t argument = offsetof(seccomp_data, args);
  std::vector<sock_filter> program{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(refusal.number), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal.first_argument.value_or(0), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(refusal.error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  if (!refusal.first_argument) program[3] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return (::getuid() == 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

// Runs in a process of its own, which must not use gtest; what it returns, or "?".
inline std::string in_another_process(const std::function<std::string()>& run) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "?";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string text = run();
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  static_cast<void>(::waitpid(pid, &status, 0));
  return status == 0 ? text : "?";
}

}  // namespace ptkit::capture::confined::test
