// The call stack of return compression: 64 entries, the oldest is lost when one more comes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ptkit::trace_unit::generator {

// Effect of a RET that comes as a TIP on the call stack. Decoders have to do the same, and do not agree.
enum class TipRet : std::uint8_t {
  POPS,   // the manual's rule, and perf's: every near RET pops
  KEEPS,  // libipt's: only compressed RETs pop
  CLEARS  // fits both: afterwards RETs are compressed only if their call came after that TIP
};

class ReturnStack {
 public:
  static constexpr std::size_t kEntries = 64;

  void push(std::uint64_t return_ip) noexcept {
    entries_[top_] = return_ip;
    top_ = (top_ + 1) % kEntries;
    if (count_ < kEntries) ++count_;
  }
  [[nodiscard]] std::optional<std::uint64_t> top() const noexcept {
    if (count_ == 0) return std::nullopt;
    return entries_[(top_ + kEntries - 1) % kEntries];
  }
  void pop() noexcept {
    if (count_ == 0) return;
    top_ = (top_ + kEntries - 1) % kEntries;
    --count_;
  }
  void clear() noexcept { count_ = 0; }
  // Whether the target is the one on top: then the RET may be compressed.
  bool ret(std::uint64_t target, TipRet rule) noexcept {
    const bool matches = top() == target;
    if (matches || rule == TipRet::POPS) {
      pop();
    } else if (rule == TipRet::CLEARS) {
      clear();
    }
    return matches;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  std::array<std::uint64_t, kEntries> entries_{};
  std::size_t top_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ptkit::trace_unit::generator
