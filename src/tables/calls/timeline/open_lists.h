// Lists of what open frames have called: a hash table with linear probing, by the number of the frame.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tables/calls/timeline/slice_reducer.h"

namespace ptkit::tables::calls {

class OpenLists {
 public:
  // The list of a frame; a new one is empty. Valid until the next change of the table.
  [[nodiscard]] SliceList& of(std::uint64_t frame) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    std::size_t at = slot_of(frame);
    while (slots_[at].is_used && slots_[at].frame != frame) at = (at + 1) & (slots_.size() - 1);
    Slot& slot = slots_[at];
    if (!slot.is_used) {
      slot = {frame, {}, true};
      ++size_;
    }
    return slot.list;
  }
  // Removes the list of a frame, which may have none.
  [[nodiscard]] SliceList take(std::uint64_t frame) {
    if (size_ == 0) return {};
    const std::size_t last = slots_.size() - 1;
    std::size_t at = slot_of(frame);
    while (slots_[at].is_used && slots_[at].frame != frame) at = (at + 1) & last;
    if (!slots_[at].is_used) return {};
    const SliceList list = slots_[at].list;
    // Slots behind it close up, as far as they belong there.
    for (std::size_t next = (at + 1) & last; slots_[next].is_used; next = (next + 1) & last) {
      const std::size_t wanted = slot_of(slots_[next].frame);
      if (((next - wanted) & last) < ((next - at) & last)) continue;
      slots_[at] = slots_[next];
      at = next;
    }
    slots_[at].is_used = false;
    --size_;
    return list;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }
  // Calls `visit` with each list.
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (Slot& slot : slots_) {
      if (slot.is_used) visit(slot.frame, slot.list);
    }
  }

 private:
  struct Slot {
    std::uint64_t frame = 0;
    SliceList list;
    bool is_used = false;
  };
  static constexpr std::size_t kLeast = 64;

  [[nodiscard]] std::size_t slot_of(std::uint64_t frame) const noexcept {
    constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>(frame * kGoldenRatio >> std::countl_zero(slots_.size() - 1));
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? kLeast : slots_.size() * 2);
    std::swap(old, slots_);
    size_ = 0;
    for (const Slot& slot : old) {
      if (slot.is_used) of(slot.frame) = slot.list;
    }
  }

  std::vector<Slot> slots_;  // as many as a power of two
  std::size_t size_ = 0;
};

}  // namespace ptkit::tables::calls
