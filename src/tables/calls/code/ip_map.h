// A hash table by address: facts of code that are looked up for each branch, and never removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ptkit::tables::calls {

// Open addressing with linear probing.
template <typename T>
class IpMap {
 public:
  // The value of an address, and whether it is new. Valid until the next call.
  [[nodiscard]] std::pair<T*, bool> find_or_add(std::uint64_t ip) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slot_of(ip);
    if (slot.is_used) return {&slot.value, false};
    ++size_;
    slot.ip = ip;
    slot.is_used = true;
    return {&slot.value, true};
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint64_t ip = 0;
    T value{};
    bool is_used = false;
  };
  static constexpr std::size_t kLeastSlots = 64;

  [[nodiscard]] Slot& slot_of(std::uint64_t ip) noexcept {
    constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
    constexpr unsigned kHighBits = 32;
    const std::size_t last = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(ip * kGoldenRatio >> kHighBits) & last;
    while (slots_[at].is_used && slots_[at].ip != ip) at = (at + 1) & last;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? kLeastSlots : slots_.size() * 2);
    std::swap(old, slots_);
    for (Slot& one : old) {
      if (one.is_used) slot_of(one.ip) = std::move(one);
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace ptkit::tables::calls
