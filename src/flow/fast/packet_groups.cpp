#include "flow/fast/packet_groups.h"

namespace ptkit::flow {

// One of the slots that lookup() reads.
PacketGroup* PacketGroups::free_slot(std::uint64_t ip, std::uint32_t tnt, std::uint32_t from) noexcept {
  const std::size_t slots = groups_.size() - 1;
  const std::size_t first = (first_slot(ip, tnt, from) & mask()) / sizeof(PacketGroup);
  for (const std::size_t at : {first, first ^ 1U, (first + 2) & slots, ((first + 2) & slots) ^ 1U}) {
    if (groups_[at].from == 0) return &groups_[at];
  }
  return nullptr;
}

// A group without a slot in the new table is dropped.
void PacketGroups::grow() {
  base::ArenaVector<PacketGroup> old(groups_.size() * 2, groups_.get_allocator());
  old.swap(groups_);
  count_ = 0;
  for (const PacketGroup& one : old) {
    if (one.from == 0) continue;
    PacketGroup* const slot = add(one.ip, one.tnt, one.from);
    if (slot != nullptr) *slot = one;
  }
}

PacketGroup* PacketGroups::add(std::uint64_t ip, std::uint32_t tnt, std::uint32_t from) noexcept {
  PacketGroup* const slot = free_slot(ip, tnt, from);
  if (slot == nullptr) return nullptr;
  ++count_;
  slot->ip = ip;
  slot->tnt = tnt;
  slot->from = from;
  return slot;
}

}  // namespace ptkit::flow
