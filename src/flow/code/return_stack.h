// The call stack of return compression (manual, "Indirect Transfer Compression for Returns").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ptkit::flow {

// Ring buffer of 64 return addresses. A push on a full stack drops the oldest address.
class ReturnStack {
 public:
  static constexpr std::size_t kDepth = 64;

  void push(std::uint64_t ip) noexcept {
    top_ = (top_ + 1) % kDepth;
    entries_[top_] = ip;
    if (size_ < kDepth) ++size_;
  }
  // Has the effect of `depth` pushes followed by `depth` pops.
  void make_room(std::size_t depth) noexcept { size_ = size_ + depth > kDepth ? kDepth - depth : size_; }
  // Valid unless empty().
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

// Two call stacks for two readings of the rules. `manual_`: every near RET pops, and PSB, overflow and
// disabled packets empty the stack. `kept_`: only compressed RETs pop, and nothing empties the stack; some
// encoders behave so. Targets come from `manual_` until a compressed RET contradicts it, then from `kept_`
// until reset().
class CallStack {
 public:
  void call(std::uint64_t return_ip) noexcept {
    manual_.push(return_ip);
    kept_.push(return_ip);
  }
  // A path's calls at once. At most `depth` (<= ReturnStack::kDepth) calls were open at a time, and `count`
  // of them still are. Compressed RETs returned from the others.
  void call(const std::uint64_t* return_ips, std::size_t count, std::size_t depth) noexcept {
    manual_.make_room(depth);
    kept_.make_room(depth);
    for (std::size_t i = 0; i < count; ++i) call(return_ips[i]);
  }
  void return_by_tip() noexcept { manual_.pop(); }
  void flush() noexcept { manual_.clear(); }  // PSB, overflow, packets disabled
  void reset() noexcept {                     // after an error: nothing is known
    manual_.clear();
    kept_.clear();
    trust_kept_ = false;
  }

  [[nodiscard]] bool empty() const noexcept { return manual_.empty() && kept_.empty(); }
  // Return address of the last call since the stack was emptied.
  [[nodiscard]] std::optional<std::uint64_t> top() const noexcept {
    if (manual_.empty()) return std::nullopt;
    return manual_.top();
  }

  // Target of a compressed RET; the stack is not empty(). `plausible(ip)` is true if there is code at `ip`.
  template <typename Plausible>
  [[nodiscard]] std::uint64_t return_by_tnt(const Plausible& plausible) noexcept {
    if (has_placeholders_ && !kept_.empty() && is_placeholder(kept_.top())) {
      used_placeholder_ = used_placeholder_ || trust_kept_ || manual_.empty() || !plausible(manual_.top());
    }
    if (!trust_kept_ && !kept_.empty() && (manual_.empty() || differs(plausible))) trust_kept_ = true;
    const std::uint64_t target = trust_kept_ && !kept_.empty() ? kept_.top() : manual_.top();
    manual_.pop();
    kept_.pop();
    return target;
  }

  // For a decoder that starts in the middle of a stream: the entries of `kept_` are unknown. Placeholders
  // represent the entries of the actual stack.
  void fill_with_placeholders() noexcept {
    kept_.clear();
    for (std::size_t i = 0; i < ReturnStack::kDepth; ++i) kept_.push(kFirstPlaceholder + i);
    has_placeholders_ = true;
  }
  // True if a return used a placeholder. Its target is wrong then.
  [[nodiscard]] bool used_placeholder() const noexcept { return used_placeholder_; }
  // Replaces the remaining placeholders by the actual entries.
  void fill_in(const CallStack& actual) noexcept {
    if (!has_placeholders_) return;
    const ReturnStack with_placeholders = kept_;
    const std::size_t missing = ReturnStack::kDepth - actual.kept_.size();
    kept_.clear();
    for (std::size_t i = 0; i < with_placeholders.size(); ++i) {
      const std::uint64_t ip = with_placeholders.at(i);
      if (!is_placeholder(ip)) {
        kept_.push(ip);
      } else if (ip - kFirstPlaceholder >= missing) {
        kept_.push(actual.kept_.at(static_cast<std::size_t>(ip - kFirstPlaceholder) - missing));
      }
    }
    has_placeholders_ = false;
  }
  [[nodiscard]] bool same_but_for_placeholders(const CallStack& other) const noexcept {
    return trust_kept_ == other.trust_kept_ && manual_ == other.manual_;
  }
  [[nodiscard]] bool operator==(const CallStack& other) const noexcept {
    return same_but_for_placeholders(other) && kept_ == other.kept_;
  }
  // For files: a stack without placeholders.
  template <typename Fields>
  void describe(Fields& fields) {
    auto& [manual, kept, trust_kept, has_placeholders, used_placeholder] = *this;
    manual.describe(fields);
    kept.describe(fields);
    fields(trust_kept);
  }
  // Placeholders are not canonical addresses, so no call pushes one.
  [[nodiscard]] static bool is_placeholder(std::uint64_t ip) noexcept {
    return ip - kFirstPlaceholder < ReturnStack::kDepth;
  }
  // True if the code at `address` could return to a placeholder after all.
  [[nodiscard]] static bool may_hold_placeholder(std::uint64_t address, std::uint64_t size) noexcept {
    return kFirstPlaceholder - address <= size || address - kFirstPlaceholder < ReturnStack::kDepth;
  }

 private:
  static constexpr std::uint64_t kFirstPlaceholder = 0x8000707400000000;

  template <typename Plausible>
  [[nodiscard]] bool differs(const Plausible& plausible) const noexcept {
    return manual_.top() != kept_.top() && !plausible(manual_.top()) && plausible(kept_.top());
  }

  ReturnStack manual_;
  ReturnStack kept_;
  bool trust_kept_ = false;
  bool has_placeholders_ = false;
  bool used_placeholder_ = false;
};

}  // namespace ptkit::flow
