// The call stack of return compression: 64 entries, the oldest is lost when one more comes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ptkit::softpt {

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
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  std::array<std::uint64_t, kEntries> entries_{};
  std::size_t top_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ptkit::softpt
