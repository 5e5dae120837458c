// Logs of what a thread executed, for tests: instructions, to which decoders are compared, and transfers of
// control, from which call trees are built.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ptkit::capture {

// A file of 64-bit words: executed IPs, times.
class ExecutionLog {
 public:
  ExecutionLog() = default;
  explicit ExecutionLog(const std::string& path) : file_(std::fopen(path.c_str(), "wbe")), on_(true) {}
  void add(std::uint64_t word) {
    if (!on_) return;
    pending_.push_back(word);
    if (pending_.size() >= kPendingWords) flush();
  }
  void flush() {
    if (file_ == nullptr) return;
    failed_ |=
        std::fwrite(pending_.data(), sizeof(std::uint64_t), pending_.size(), file_.get()) != pending_.size();
    failed_ |= std::fflush(file_.get()) != 0;
    pending_.clear();
  }
  [[nodiscard]] bool on() const noexcept { return on_; }
  [[nodiscard]] bool failed() const noexcept { return on_ && (file_ == nullptr || failed_); }

 private:
  static constexpr std::size_t kPendingWords = 8192;

  struct Closer {
    void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
  };
  std::unique_ptr<std::FILE, Closer> file_;
  std::vector<std::uint64_t> pending_;
  bool on_ = false;
  bool failed_ = false;
};

// The stack pointer of a thread after each transfer of control.
//
// A row for each transfer of control, in order; conditional jumps only if they were taken. Four words:
//
//   kind << 56 | bytes << 48 | IP of the instruction that transferred control (kInterrupt: was not executed)
//   IP to which control went
//   RSP there, before that instruction
//   instructions that the thread had executed
//
// A kind is an InsnClass, or one of the constants below. The last row leads to 0: a system call that did not
// return, or kEnd.
class TransferLog {
 public:
  static constexpr std::uint8_t kBegin = 32;      // the thread, or its recording, begins
  static constexpr std::uint8_t kInterrupt = 33;  // a fault, or a look for signals: control went nowhere
  static constexpr std::uint8_t kSignal = 34;     // after kInterrupt: to the signal's handler
  static constexpr std::uint8_t kEnd = 35;

  TransferLog() = default;
  explicit TransferLog(ExecutionLog log) : log_(std::move(log)) {}
  // A row has two halves: after a system call or an interrupt, it is not known yet where the thread goes on.
  void leave(std::uint8_t kind, std::uint64_t from, std::uint64_t bytes = 0) noexcept {
    from_ = std::uint64_t{kind} << kKindShift | bytes << kBytesShift | from;
    left_ = true;
  }
  void arrive(std::uint64_t to, std::uint64_t sp, std::uint64_t instructions) {
    left_ = false;
    if (!log_.on()) return;
    for (const std::uint64_t word : {from_, to, sp, instructions}) log_.add(word);
  }
  void finish(std::uint64_t instructions) {
    if (!left_) leave(kEnd, 0);
    arrive(0, 0, instructions);
    log_.flush();
  }
  [[nodiscard]] bool on() const noexcept { return log_.on(); }
  [[nodiscard]] bool failed() const noexcept { return log_.failed(); }

 private:
  static constexpr unsigned kKindShift = 56;
  static constexpr unsigned kBytesShift = 48;

  ExecutionLog log_;
  std::uint64_t from_ = std::uint64_t{kBegin} << kKindShift;
  bool left_ = true;
};

}  // namespace ptkit::capture
