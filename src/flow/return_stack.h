// The call stack of return compression, as a processor keeps it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ptkit::flow {

// 64 return addresses; the oldest is dropped when another is pushed on a full stack.
class ReturnStack {
 public:
  static constexpr std::size_t kDepth = 64;

  void push(std::uint64_t ip) noexcept {
    top_ = (top_ + 1) % kDepth;
    entries_[top_] = ip;
    if (size_ < kDepth) ++size_;
  }
  // As if `depth` addresses were pushed and popped.
  void make_room(std::size_t depth) noexcept { size_ = size_ + depth > kDepth ? kDepth - depth : size_; }
  // Meaningful unless empty().
  [[nodiscard]] std::uint64_t top() const noexcept { return entries_[top_]; }
  void pop() noexcept {
    if (size_ == 0) return;
    top_ = (top_ + kDepth - 1) % kDepth;
    --size_;
  }
  void clear() noexcept { size_ = 0; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t at(std::size_t index) const noexcept {  // from the oldest on
    return entries_[(top_ + kDepth + 1 - size_ + index) % kDepth];
  }
  // For files: see base/fields.h.
  template <typename Fields>
  void describe(Fields& fields) {
    const ReturnStack now = *this;
    std::size_t size = size_;
    fields(size, kDepth);
    clear();
    for (std::size_t i = 0; i < size; ++i) {
      std::uint64_t ip = i < now.size() ? now.at(i) : 0;
      fields(ip);
      push(ip);
    }
  }
  [[nodiscard]] bool operator==(const ReturnStack& other) const noexcept {
    if (size_ != other.size_) return false;
    for (std::size_t i = 0; i < size_; ++i) {
      if (at(i) != other.at(i)) return false;
    }
    return true;
  }

 private:
  std::array<std::uint64_t, kDepth> entries_{};
  std::size_t top_ = 0;
  std::size_t size_ = 0;
};

// Two readings of the rules. The manual's: every near RET pops, and PSB, overflow and packets-off empty the
// stack. The other: only compressed RETs pop and nothing empties the stack; some encoders behave so. The
// manual's reading is followed until a compressed RET shows that it cannot be right; then the other one is,
// until reset().
class CallStack {
 public:
  void call(std::uint64_t return_ip) noexcept {
    manual_.push(return_ip);
    kept_.push(return_ip);
  }
  // Calls in between returned by compressed RETs: at most `depth` (not above ReturnStack::kDepth) were open
  // at a time, and `count` of them still are.
  void call(const std::uint64_t* return_ips, std::size_t count, std::size_t depth) noexcept {
    manual_.make_room(depth);
    kept_.make_room(depth);
    for (std::size_t i = 0; i < count; ++i) call(return_ips[i]);
  }
  void return_by_tip() noexcept { manual_.pop(); }
  void flush() noexcept { manual_.clear(); }  // PSB, overflow, packets off
  void reset() noexcept {                     // after an error: nothing is known
    manual_.clear();
    kept_.clear();
    trust_kept_ = false;
  }

  [[nodiscard]] bool empty() const noexcept { return manual_.empty() && kept_.empty(); }

  // Target of a compressed RET; not empty(). `plausible(ip)` says whether there is code at `ip`.
  template <typename Plausible>
  [[nodiscard]] std::uint64_t return_by_tnt(const Plausible& plausible) noexcept {
    if (guessed_ && !kept_.empty() && is_guess(kept_.top())) {
      relied_on_guess_ = relied_on_guess_ || trust_kept_ || manual_.empty() || !plausible(manual_.top());
    }
    if (!trust_kept_ && !kept_.empty() && (manual_.empty() || differs(plausible))) trust_kept_ = true;
    const std::uint64_t target = trust_kept_ && !kept_.empty() ? kept_.top() : manual_.top();
    manual_.pop();
    kept_.pop();
    return target;
  }

  // For a decoder that begins in the middle of a stream: what the second stack has is not known. It is filled
  // with guesses, which stand for the entries of the real one.
  void guess_kept() noexcept {
    kept_.clear();
    for (std::size_t i = 0; i < ReturnStack::kDepth; ++i) kept_.push(kFirstGuess + i);
    guessed_ = true;
  }
  // Did a target depend on a guess? It is wrong then.
  [[nodiscard]] bool relied_on_guess() const noexcept { return relied_on_guess_; }
  // Puts the real entries in the place of the guesses that are left.
  void fill_in(const CallStack& real) noexcept {
    if (!guessed_) return;
    const ReturnStack guessed = kept_;
    const std::size_t missing = ReturnStack::kDepth - real.kept_.size();
    kept_.clear();
    for (std::size_t i = 0; i < guessed.size(); ++i) {
      const std::uint64_t ip = guessed.at(i);
      if (!is_guess(ip)) {
        kept_.push(ip);
      } else if (ip - kFirstGuess >= missing) {
        kept_.push(real.kept_.at(static_cast<std::size_t>(ip - kFirstGuess) - missing));
      }
    }
    guessed_ = false;
  }
  [[nodiscard]] bool same_but_for_guesses(const CallStack& other) const noexcept {
    return trust_kept_ == other.trust_kept_ && manual_ == other.manual_;
  }
  [[nodiscard]] bool operator==(const CallStack& other) const noexcept {
    return same_but_for_guesses(other) && kept_ == other.kept_;
  }
  // For files: of a stack that has no guesses.
  template <typename Fields>
  void describe(Fields& fields) {
    manual_.describe(fields);
    kept_.describe(fields);
    fields(trust_kept_);
  }
  // Addresses that no call returns to, in no program: they are not canonical.
  [[nodiscard]] static bool is_guess(std::uint64_t ip) noexcept {
    return ip - kFirstGuess < ReturnStack::kDepth;
  }
  // Could code there return to such an address after all?
  [[nodiscard]] static bool may_hold_guess(std::uint64_t address, std::uint64_t size) noexcept {
    return kFirstGuess - address <= size || address - kFirstGuess < ReturnStack::kDepth;
  }

 private:
  static constexpr std::uint64_t kFirstGuess = 0x8000707400000000;

  template <typename Plausible>
  [[nodiscard]] bool differs(const Plausible& plausible) const noexcept {
    return manual_.top() != kept_.top() && !plausible(manual_.top()) && plausible(kept_.top());
  }

  ReturnStack manual_;
  ReturnStack kept_;
  bool trust_kept_ = false;
  bool guessed_ = false;
  bool relied_on_guess_ = false;
};

}  // namespace ptkit::flow
