// Hash table with open addressing, from addresses to numbers of objects that have an address. A slot takes
// eight bytes. Nothing is removed.
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

  // The number of `ip`, or kNone. `has_ip(number)` compares the object's address with `ip`.
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
    insert({tag_of(ip), number});
    ++count_;
  }
  // Frees the memory of the table, which is not used afterwards.
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

  void insert(const Slot& slot) noexcept {
    std::size_t at = slot.tag & (slots_.size() - 1);
    while (slots_[at].number != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }

  // Growing rehashes the tags and does not touch the objects. Small tables grow fourfold: each outgrown table
  // remains in the arena.
  void grow() {
    constexpr std::size_t kSmall = 32768;
    base::ArenaVector<Slot> old(slots_.size() * (slots_.size() < kSmall ? 4 : 2), slots_.get_allocator());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) insert(slot);
    }
  }

  base::ArenaVector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace ptkit::flow
