// The path of execution between two branch records, which has no other recorded branch.
#pragma once

#include <optional>
#include <vector>

#include "flow/walk/walker.h"

namespace ptkit::flow {

// Finds the path first and emits its rows afterwards, so that a path to another address emits none.
// Conditional branches fall through, because a taken one has a record. The recorder may have filtered out
// direct branches by their kind: the path follows them, unless the stream has records of the kind.
class Route {
 public:
  explicit Route(Walker& walker) : walker_(walker) {}

  // The stream has a record of this kind, so every later branch of the kind has one.
  void has(BranchKind kind) noexcept {
    has_jumps_ = has_jumps_ || kind == BranchKind::JUMP;
    has_calls_ = has_calls_ || kind == BranchKind::CALL;
  }

  // Finds the path from `from` to the instruction at `to`. If the path has a SYSCALL or INT, kernel code is
  // not recorded, and execution returns to the next instruction. RECORD_MISMATCH: the path does not lead to
  // `to`. NO_CODE, BAD_INSN: the instruction at ip() cannot be decoded.
  [[nodiscard]] base::Status find(std::uint64_t from, std::uint64_t to);
  // Finds the path to the entry into the kernel that later returned to `resume`: a system call right before
  // `resume`, or `resume` itself.
  [[nodiscard]] base::Status find_entry(std::uint64_t from, std::uint64_t resume);
  // Finds the path to the exit from the kernel.
  [[nodiscard]] base::Status find_exit(std::uint64_t from);

  // Address and block at the end of the path.
  [[nodiscard]] std::uint64_t ip() const noexcept { return ip_; }
  [[nodiscard]] const BasicBlock& block() const noexcept { return *block_; }
  // True if the path ends at the branch of block().
  [[nodiscard]] bool at_branch() const noexcept {
    return block_->end != Terminator::FALL && block_->end != Terminator::FAIL && ip_ == block_->last_ip;
  }
  // find_entry(), find_exit(): true if the path ends with a branch, false if it ends before an instruction
  // that was interrupted.
  [[nodiscard]] bool by_branch() const noexcept { return by_branch_; }
  [[nodiscard]] bool empty() const noexcept { return blocks_.empty() && count_ == 0; }

  // Emits blocks and branches up to the end of the path, with or without the instruction there.
  void emit(bool with_last);

 private:
  // Searches of these kinds look for an address, or for none.
  enum class Kind : std::uint8_t { PATH, ENTRY, EXIT };
  void begin(std::uint64_t from, Kind kind, std::optional<std::uint64_t> to);
  [[nodiscard]] bool reaches(std::uint64_t ip);
  [[nodiscard]] bool pass(bool over_calls);
  [[nodiscard]] bool failed_before();
  [[nodiscard]] bool follows(const BasicBlock& block) const noexcept;
  void end_at_branch() noexcept;
  [[nodiscard]] base::Status fail();

  Walker& walker_;
  std::vector<const BasicBlock*> blocks_;  // blocks that are passed completely
  BasicBlock* block_ = nullptr;
  std::uint64_t ip_ = 0;
  std::uint32_t count_ = 0;  // instructions of block_ before ip_
  SearchLimit limit_;
  unsigned kind_ = 0;  // for FailedSearches
  std::optional<std::uint64_t> to_;
  std::optional<std::uint64_t> anchor_;
  FailedSearch searched_;
  bool by_branch_ = false;
  bool has_jumps_ = false;
  bool has_calls_ = false;
};

}  // namespace ptkit::flow
