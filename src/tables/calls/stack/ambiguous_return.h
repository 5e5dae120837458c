// Which of several frames control went to: the returns that follow tell. Until then, rows wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "tables/calls/stack/current_stack.h"

namespace ptkit::tables::calls {

// A frame that control may have gone to, by the return addresses of it and of those below it.
class Candidate {
 public:
  // The frames of `stack` below `size` are open. `number`: the caller's name for it.
  Candidate(const ThreadStack& stack, std::size_t size, std::size_t number) noexcept
      : stack_(&stack), size_(size), number_(number) {}

  // The innermost frame returns to `ip`. False: it does not.
  [[nodiscard]] bool returns_to(std::uint64_t ip) noexcept {
    if (size_ == 0) return true;  // frames below are not known
    const OpenFrame& frame = stack_->at(size_ - 1);
    if ((frame.flags & FRAME_RETURN) == 0) return true;
    size_ -= 1 + std::min<std::size_t>(frame.tails, size_ - 1);
    return frame.return_ip == ip;
  }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }

  // A frame of which nothing is known: it returns to anywhere.
  static constexpr std::size_t kUnknown = SIZE_MAX;
  // The stack in use goes on.
  static constexpr std::size_t kSame = SIZE_MAX - 1;
  [[nodiscard]] static Candidate unknown(const ThreadStack& stack) noexcept { return {stack, 0, kUnknown}; }

 private:
  const ThreadStack* stack_;
  std::size_t size_;
  std::size_t number_;
};

// `Input`: an item that waits.
template <typename Input>
class AmbiguousReturn {
 public:
  static constexpr std::size_t kMostInputs = std::size_t{1} << 14U;
  static constexpr std::size_t kMostInAll = std::size_t{1} << 20U;
  static constexpr std::ptrdiff_t kMostCandidates = 64;

  // The first candidate is taken if returns do not tell. An unknown one comes last. `cause` is the branch to
  // one of them.
  void begin(std::vector<Candidate> candidates, const Input& cause) {
    left_out_.clear();
    if (std::ssize(candidates) > kMostCandidates) {
      const auto first = candidates.begin() + kMostCandidates - 1;
      left_out_.assign(first, candidates.end() - 1);
      candidates.erase(first, candidates.end() - 1);
    }
    candidates_ = std::move(candidates);
    cause_ = cause;
    depth_ = matched_ = 0;
  }
  [[nodiscard]] bool is_open() const noexcept { return !candidates_.empty(); }
  [[nodiscard]] const Input& cause() const noexcept { return cause_; }
  // `counts`: towards kMostInputs.
  void add(const Input& input, bool counts = true) {
    inputs_.push_back(input);
    if (counts) ++waiting_;
  }
  void call() noexcept { ++depth_; }
  void returns(std::uint64_t ip) {
    if (depth_ > 0) {
      --depth_;
      return;
    }
    std::vector<Candidate> left;
    for (Candidate one : candidates_) {
      if (one.returns_to(ip)) left.push_back(one);
    }
    is_lost_ = left.empty();
    if (!is_lost_) candidates_ = std::move(left);
    ++matched_;
  }
  // Nothing that follows can tell more.
  [[nodiscard]] bool is_known() const noexcept {
    return is_lost_ || is_found() || waiting_ >= kMostInputs || inputs_.size() >= kMostInAll;
  }

  struct Decision {
    std::size_t number = 0;
    bool is_certain = false;
    std::vector<Input> inputs;      // that have waited
    std::vector<Candidate> others;  // that may have gone on as well
  };
  [[nodiscard]] Decision decide() {
    Decision decision{candidates_.front().number(), is_found() && !is_lost_ && left_out_.empty(),
                      std::move(inputs_), std::move(candidates_)};
    decision.others.insert(decision.others.end(), left_out_.begin(), left_out_.end());
    candidates_.clear();
    inputs_.clear();
    is_lost_ = false;
    waiting_ = 0;
    return decision;
  }

 private:
  // So many returns in a row hardly fit another frame: functions above those that differ are often the same.
  [[nodiscard]] bool is_found() const noexcept {
    constexpr std::size_t kEnough = 8;
    const bool is_other = candidates_.back().number() == Candidate::kUnknown;
    return candidates_.size() == 1 || (candidates_.size() == 2 && is_other && matched_ >= kEnough);
  }

  std::vector<Candidate> candidates_;  // empty: nothing is undecided
  std::vector<Input> inputs_;
  Input cause_;
  std::size_t depth_ = 0;            // calls that have not returned
  std::size_t waiting_ = 0;          // inputs that count
  std::size_t matched_ = 0;          // returns of the frame and of those below
  std::vector<Candidate> left_out_;  // too many to be looked at
  bool is_lost_ = false;
};

// A row that waits, or the branch to one of several frames.
struct WaitingRow {
  enum class Kind : std::uint8_t { BRANCH, ENABLED, DISABLED, LIMIT, LONGJMP, SWITCH };
  BranchStep step;
  Kind kind = Kind::BRANCH;
};

class WaitingRows {
 public:
  explicit WaitingRows(CurrentCode& code) : code_(code) {}

  [[nodiscard]] bool is_open() const noexcept { return choice_.is_open(); }
  // `cause` leads to one of the candidates, the most likely one first. Its position is after the branch, with
  // counts of the thread.
  void begin(std::vector<Candidate> candidates, const WaitingRow& cause) {
    choice_.begin(std::move(candidates), cause);
  }
  // Adds a row while this is open. True: the rows decide, or the row cannot be understood without a decision.
  [[nodiscard]] bool add(const WaitingRow& row);
  [[nodiscard]] const WaitingRow& cause() const noexcept { return choice_.cause(); }
  [[nodiscard]] AmbiguousReturn<WaitingRow>::Decision decide() { return choice_.decide(); }

  // Rows that have waited are applied: so many come next.
  void set_replayed(std::size_t rows) noexcept { replayed_ = rows; }
  // Then each choice is decided at once: a row waits once.
  [[nodiscard]] bool is_replaying() const noexcept { return replayed_ != 0; }

 private:
  [[nodiscard]] bool can_wait(const BranchStep& step);

  CurrentCode& code_;
  AmbiguousReturn<WaitingRow> choice_;
  std::size_t replayed_ = 0;
};

}  // namespace ptkit::tables::calls
