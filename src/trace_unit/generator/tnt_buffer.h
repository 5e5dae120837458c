// Taken / not-taken bits that wait for their packet (manual: TNT packets).
#pragma once

#include <cstdint>

namespace ptkit::trace_unit::generator {

class TntBuffer {
 public:
  static constexpr unsigned kShortBits = 6;  // of a TNT-8
  static constexpr unsigned kLongBits = 47;  // of a TNT-64

  explicit TntBuffer(unsigned capacity) noexcept : capacity_(capacity) {}

  void push(bool taken) noexcept {
    bits_ |= static_cast<std::uint64_t>(taken) << count_;
    ++count_;
  }
  // Removes the oldest `count` bits; the oldest is bit 0.
  [[nodiscard]] std::uint64_t take(unsigned count) noexcept {
    const std::uint64_t taken = bits_ & ((std::uint64_t{1} << count) - 1);
    bits_ >>= count;
    count_ -= count;
    return taken;
  }
  [[nodiscard]] unsigned count() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool full() const noexcept { return count_ >= capacity_; }

 private:
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;
  unsigned capacity_;
};

}  // namespace ptkit::trace_unit::generator
