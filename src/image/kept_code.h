// Instructions of a file that were decoded before, by file offset, with the bytes that they were decoded
// from: what is taken from here is what those bytes mean, whatever the file is called. See docs/code-cache.md
// for the format.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "insn/insn.h"
#include "trace/buffer.h"

namespace ptkit::image {

// 64 bytes of a file.
struct KeptLine {
  static constexpr std::size_t kBytes = 64;
  static constexpr std::size_t kCompared = 16;  // bytes that recall() looks at

  std::array<std::uint8_t, kBytes + kCompared> code{};  // with what its last instruction has of the next line
  std::array<std::uint8_t, kBytes> entries{};           // by offset: size and form; 0: not known

  // The instruction at `offset` of the file, where the bytes now are `now`: false if it is not known, was
  // another one, or goes on behind them.
  [[nodiscard]] bool recall(std::uint64_t offset, insn::ExecMode mode, base::Bytes now,
                            insn::Insn& out) const noexcept;
  // Can an instruction like this be kept? Far transfers, and what events bind to, are decoded again.
  [[nodiscard]] static bool fits(const insn::Insn& insn) noexcept {
    return insn.kind == insn::InsnKind::OTHER && !insn.rep && insn.cls <= insn::InsnClass::RETURN;
  }
};

// What is kept of one file in one mode: a mapped file that was checked.
class KeptCode {
 public:
  // Fails for anything that was not written by this version for this build-id and mode, or is damaged.
  [[nodiscard]] static base::Result<std::unique_ptr<KeptCode>> open(const std::string& path,
                                                                    const std::string& build_id,
                                                                    insn::ExecMode mode);
  // The line with this offset, null if there is none. Thread-safe.
  [[nodiscard]] const KeptLine* line(std::uint64_t offset) const noexcept;
  [[nodiscard]] insn::ExecMode mode() const noexcept { return mode_; }
  // Numbers of all lines (offset / KeptLine::kBytes).
  [[nodiscard]] std::vector<std::uint64_t> lines() const;

 private:
  KeptCode(trace::TraceBuffer file, insn::ExecMode mode) noexcept : file_(std::move(file)), mode_(mode) {}
  [[nodiscard]] bool has_page(std::size_t page) const noexcept;

  enum class Check : std::uint8_t { NOT_YET, GOOD, DAMAGED };
  trace::TraceBuffer file_;
  insn::ExecMode mode_;
  std::uint64_t first_page_ = 0;
  base::Bytes table_;  // offset of each page's record, in units of 16 bytes; 0: no record
  std::unique_ptr<std::atomic<Check>[]> checks_;  // of records: made when first touched
};

// Lines to be written.
class KeptLines {
 public:
  explicit KeptLines(insn::ExecMode mode) noexcept : mode_(mode) {}

  // An instruction at `offset` whose bytes are `code`. The first that came wins where bytes differ.
  void add(std::uint64_t offset, base::Bytes code);
  void add_all(const KeptCode& kept);
  [[nodiscard]] std::size_t instructions() const noexcept { return instructions_; }
  [[nodiscard]] std::vector<std::uint8_t> file_bytes(const std::string& build_id) const;

 private:
  struct Line {
    KeptLine kept;
    std::bitset<KeptLine::kBytes + KeptLine::kCompared> known;
  };
  Line& line(std::uint64_t number);
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;

  insn::ExecMode mode_;
  std::unordered_map<std::uint64_t, Line> lines_;
  Line* last_ = nullptr;  // that line() gave: instructions come in order mostly
  std::uint64_t last_number_ = 0;
  std::size_t instructions_ = 0;
};

}  // namespace ptkit::image
