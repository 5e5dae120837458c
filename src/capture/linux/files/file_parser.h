// Parses ELF files and jitdumps of recorded processes. If this process has privileges, confined processes
// without privileges parse them (capture/linux/confined/processes.h): a hostile file loses only its own
// symbols.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/linux/confined/processes.h"
#include "capture/linux/files/parse_request.h"
#include "trace/warning.h"

namespace ptkit::capture {

// Thread-safe.
class FileParser {
 public:
  // Uses confined processes if this process has privileges: ptkit-parser (src/capture/linux/files/parser)
  // from this library's folder, or forks of this process if that is missing. Construct it before trace is in
  // memory.
  FileParser();
  // nullptr: parses in this process.
  explicit FileParser(std::unique_ptr<confined::ConfinedProcesses> processes) noexcept
      : confined_(std::move(processes)) {}

  // `file` is a regular file that had at least request.file_bytes bytes. `path` is for warnings.
  [[nodiscard]] ParsedFile parse(ParseRequest request, const Fd& file, const std::string& path);
  // Requests of symbols also want debug information from now on.
  void keep_debug_information(bool keep) noexcept { keeps_debug_ = keep; }
  // Sets a function that the waiting thread calls every few milliseconds while a confined process parses.
  void while_waiting(std::function<void()> on_wait) { on_wait_ = std::move(on_wait); }
  // Warnings about files that were not parsed.
  [[nodiscard]] std::vector<trace::Warning> warnings() const;
  [[nodiscard]] pid_t fork_server() const noexcept { return confined_ ? confined_->fork_server() : 0; }

 private:
  [[nodiscard]] confined::ConfinedProcesses::Limits limits_of(const ParseRequest& request) const;
  void missed(const std::string& path, const std::string& problem);

  std::unique_ptr<confined::ConfinedProcesses> confined_;
  std::function<void()> on_wait_;
  bool keeps_debug_ = false;
  mutable std::mutex mutex_;                             // guards what follows
  std::map<std::string, std::set<std::string>> missed_;  // paths by problem
  std::chrono::milliseconds lost_time_{0};               // waiting for processes that gave no answer
};

}  // namespace ptkit::capture
