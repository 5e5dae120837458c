// Hash table of packet groups: up to four TNT-8 packets and the TIP behind them, used as one packet. An
// automaton over packets spends most of its time in mispredicted branches on the number and size of packets
// between two targets, which a group has in its key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"

namespace ptkit::flow {

// The effect of a group's packets at a node: a memo of several Transitions one after the other.
struct alignas(32) PacketGroup {
  std::uint64_t ip = 0;     // target of the TIP
  std::uint32_t from = 0;   // base of the node. 0: free
  std::uint32_t tnt = 0;    // bytes of the TNT packets, the first one lowest
  std::uint32_t next = 0;   // base of the next node
  std::uint32_t count = 0;  // number of uses
  std::uint32_t list = 0;   // index of its edge numbers
  std::uint32_t insns = 0;
};
static_assert(sizeof(PacketGroup) == 32);

class PacketGroups {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 16U;  // groups
  static constexpr unsigned kMostTnt = 4;                      // TNT packets of a group

  explicit PacketGroups(base::Arena& arena) : groups_(kFirstSlots, arena), used_(arena) {}

  // The group, if it is in one of its first four slots (two cache lines).
  [[nodiscard]] static PacketGroup* lookup(PacketGroup* groups, std::uint64_t mask, std::uint64_t ip,
                                           std::uint32_t tnt, std::uint32_t from) noexcept {
    const std::uint64_t at = first_slot(ip, tnt, from) & mask;
    auto* const bytes = reinterpret_cast<std::byte*>(groups);
    auto* group = reinterpret_cast<PacketGroup*>(bytes + at);
    if (is(*group, ip, tnt, from)) [[likely]]
      return group;
    group = reinterpret_cast<PacketGroup*>(bytes + (at ^ sizeof(PacketGroup)));
    if (is(*group, ip, tnt, from)) [[likely]]
      return group;
    return lookup_next_line(bytes, (at + 2 * sizeof(PacketGroup)) & mask, ip, tnt, from);
  }
  [[nodiscard]] bool full() const noexcept { return count_ >= kMost; }
  // The next add() has to grow(), which needs all counts to be taken before.
  [[nodiscard]] bool must_grow() const noexcept { return (count_ + 1) * kSpareSlots > groups_.size(); }
  void grow();
  // Adds a group that is not there. Null: none of its slots is free.
  [[nodiscard]] PacketGroup* add(std::uint64_t ip, std::uint32_t tnt, std::uint32_t from) noexcept;

  // Notes a group that is counted for the first time.
  void note(const PacketGroup& group) {
    used_.push_back(static_cast<std::uint32_t>(&group - groups_.data()));
  }
  // Calls visit(group) for each noted group, and forgets the notes. `visit` resets the count.
  template <typename Visit>
  void take_noted(const Visit& visit) {
    for (const std::uint32_t index : used_) visit(groups_[index]);
    used_.clear();
  }

  [[nodiscard]] PacketGroup* data() noexcept { return groups_.data(); }
  [[nodiscard]] std::uint64_t mask() const noexcept { return (groups_.size() - 1) * sizeof(PacketGroup); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return groups_.capacity() * sizeof(PacketGroup) + used_.capacity() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two
  static constexpr unsigned kSpareSlots = 4;        // slots for each group

  [[nodiscard]] static bool is(const PacketGroup& group, std::uint64_t ip, std::uint32_t tnt,
                               std::uint32_t from) noexcept {
    return ((group.ip ^ ip) |
            ((std::uint64_t{group.tnt} << 32U | group.from) ^ (std::uint64_t{tnt} << 32U | from))) == 0;
  }
  // The next lookup waits for `from`, so that it comes last.
  [[nodiscard]] static std::uint64_t first_slot(std::uint64_t ip, std::uint32_t tnt,
                                                std::uint32_t from) noexcept {
    constexpr unsigned kUpper = 29;
    return ((ip * 0xd6e8feb86659fd93ULL + tnt * 0x9e3779b97f4a7c15ULL) >> kUpper) + from;
  }
  [[nodiscard]] static PacketGroup* lookup_next_line(std::byte* bytes, std::uint64_t at, std::uint64_t ip,
                                                     std::uint32_t tnt, std::uint32_t from) noexcept {
    auto* group = reinterpret_cast<PacketGroup*>(bytes + at);
    if (is(*group, ip, tnt, from)) return group;
    group = reinterpret_cast<PacketGroup*>(bytes + (at ^ sizeof(PacketGroup)));
    return is(*group, ip, tnt, from) ? group : nullptr;
  }
  [[nodiscard]] PacketGroup* free_slot(std::uint64_t ip, std::uint32_t tnt, std::uint32_t from) noexcept;

  base::ArenaVector<PacketGroup> groups_;
  base::ArenaVector<std::uint32_t> used_;  // indices of noted groups
  std::size_t count_ = 0;
};

}  // namespace ptkit::flow
