// A log of executed instructions. Tests compare decoders with it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace ptkit::capture {

// A file of 64-bit words: executed IPs, times.
class ExecutionLog {
 public:
  ExecutionLog() = default;
  explicit ExecutionLog(const std::string& path) : file_(std::fopen(path.c_str(), "wbe")), on_(true) {}
  void add(std::uint64_t word);
  void flush();
  [[nodiscard]] bool on() const noexcept { return on_; }
  [[nodiscard]] bool failed() const noexcept { return on_ && (file_ == nullptr || failed_); }

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
  };
  std::unique_ptr<std::FILE, Closer> file_;
  std::vector<std::uint64_t> pending_;
  bool on_ = false;
  bool failed_ = false;
};

}  // namespace ptkit::capture
