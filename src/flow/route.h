// The way that execution took between two branch records: what lies between them is straight.
#pragma once

#include <vector>

#include "flow/walker.h"

namespace ptkit::flow {

// A way is found without giving rows, so that one that leads elsewhere gives none. Conditionals fall through:
// those that were taken have records. Direct branches may have been left out by their kind: they are
// followed, unless the stream has had some of the kind.
class Route {
 public:
  explicit Route(Walker& walker) : walker_(walker) {}

  // The stream had a record of this kind: from here on, each has one.
  void has(BranchKind kind) noexcept {
    has_jumps_ = has_jumps_ || kind == BranchKind::JUMP;
    has_calls_ = has_calls_ || kind == BranchKind::CALL;
  }

  // From `from` to the instruction at `to`. What the system does behind a SYSCALL or INT on the way is not
  // recorded then: execution comes back behind it.
  // RECORD_MISMATCH: it does not lead there. NO_CODE, BAD_INSN: it goes on at ip(), which cannot be decoded.
  [[nodiscard]] base::Status find(std::uint64_t from, std::uint64_t to);
  // To where the system was entered that went on at `resume` afterwards: a call right before it, or `resume`
  // itself.
  [[nodiscard]] base::Status find_entry(std::uint64_t from, std::uint64_t resume);
  // To where the system was left.
  [[nodiscard]] base::Status find_exit(std::uint64_t from);

  // Where the way ends, and in which run.
  [[nodiscard]] std::uint64_t ip() const noexcept { return ip_; }
  [[nodiscard]] const Run& run() const noexcept { return *run_; }
  // There is a branch, the end of run().
  [[nodiscard]] bool at_branch() const noexcept {
    return run_->end != RunEnd::FALL && run_->end != RunEnd::FAIL && ip_ == run_->last_ip;
  }
  // find_entry(), find_exit(): it ends with a branch; else with what did not run.
  [[nodiscard]] bool by_branch() const noexcept { return by_branch_; }
  [[nodiscard]] bool empty() const noexcept { return runs_.empty() && count_ == 0; }

  // Gives blocks and branches up to the end of the way: with the instruction there, or without.
  void give(bool with_last);

 private:
  void begin(std::uint64_t from);
  [[nodiscard]] bool reaches(std::uint64_t ip);
  [[nodiscard]] bool pass(bool over_calls);
  [[nodiscard]] bool follows(const Run& run) const noexcept;
  void end_at_branch() noexcept;
  [[nodiscard]] base::Status fail();

  Walker& walker_;
  std::vector<const Run*> runs_;  // that are passed whole
  Run* run_ = nullptr;
  std::uint64_t ip_ = 0;
  std::uint32_t count_ = 0;  // instructions of run_ before ip_
  std::uint64_t walked_ = 0;
  bool by_branch_ = false;
  bool has_jumps_ = false;
  bool has_calls_ = false;
};

}  // namespace ptkit::flow
