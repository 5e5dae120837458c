// A hash table from addresses to numbers of things that know their address: eight bytes a slot, open
// addressing, no removal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/arena.h"

namespace ptkit::flow {

class IpIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  explicit IpIndex(base::Arena& arena) : slots_(kFirstSize, arena) {}

  // The number that was put for `ip`, or kNone. `has_ip(number)` says whether that thing is at `ip`.
  template <typename HasIp>
  [[nodiscard]] std::uint32_t find(std::uint64_t ip, const HasIp& has_ip) const noexcept {
    const std::uint32_t tag = tag_of(ip);
    for (std::size_t at = tag & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.number == kNone) return kNone;
      if (slot.tag == tag && has_ip(slot.number)) return slot.number;
    }
  }

  // `ip` must not be in the table yet.
  void put(std::uint64_t ip, std::uint32_t number) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    place({tag_of(ip), number});
    ++count_;
  }
  // Gives its memory back: it is not used any more.
  void release() noexcept { base::ArenaVector<Slot>(slots_.get_allocator()).swap(slots_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.size() * sizeof(Slot); }

 private:
  static constexpr std::size_t kFirstSize = 512;  // a power of two
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t number = kNone;
  };

  [[nodiscard]] static std::uint32_t tag_of(std::uint64_t ip) noexcept {
    return static_cast<std::uint32_t>((ip * 0x9e3779b97f4a7c15ULL) >> 32);
  }

  void place(const Slot& slot) noexcept {
    std::size_t at = slot.tag & (slots_.size() - 1);
    while (slots_[at].number != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }

  // Tags alone say where things go, so that growing does not look at the things. At first in larger steps:
  // every table that was outgrown has cost its memory once.
  void grow() {
    constexpr std::size_t kSmall = 32768;
    base::ArenaVector<Slot> old(slots_.size() * (slots_.size() < kSmall ? 4 : 2), slots_.get_allocator());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) place(slot);
    }
  }

  base::ArenaVector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace ptkit::flow
