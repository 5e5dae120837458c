// Rows of the ways of a DecisionGraph, laid out so that they are copied at once: of ways for which they were
// asked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "flow/branch_choice.h"
#include "flow/rows.h"

namespace ptkit::flow {

// Eight branches.
struct alignas(16) RowGroup {
  static constexpr std::size_t kRows = 8;
  std::array<std::uint64_t, kRows> from{};
  std::array<std::uint64_t, kRows> to{};
  std::array<std::uint8_t, kRows> kind{};
  std::array<std::uint8_t, kRows> flags{};
};

// Of each branch of a group: instructions of the way that come before it.
using GroupCounts = std::array<std::uint16_t, RowGroup::kRows>;

struct WayBranch {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  BranchKind kind = BranchKind::COND;
  std::uint8_t flags = 0;
  std::uint16_t before = 0;  // instructions of the way
};

struct WayBlock {
  std::uint64_t ip = 0;
  std::uint32_t bytes = 0;
  std::uint32_t insns = 0;
};

// Of one way.
struct WayPart {
  // Of chosen branches: the way's last one is among them.
  static constexpr std::uint16_t kLast = std::uint16_t{1} << 15U;

  std::uint32_t first = 0;  // group or block; 0: not there yet
  std::uint16_t rows = 0;   // of chosen branches with kLast
  std::uint16_t head =
      0;  // of them, those before the first branch that takes a bit; its block is one of them
};

class WayRows {
 public:
  explicit WayRows(base::Arena& arena)
      : branches_(arena), block_parts_(arena), groups_(2, arena), counts_(2, arena), blocks_(1, arena) {}

  // By way, as far as they were asked for.
  [[nodiscard]] std::span<const WayPart> branch_parts() const noexcept { return branches_; }
  [[nodiscard]] std::span<const WayPart> block_parts() const noexcept { return block_parts_; }
  [[nodiscard]] const RowGroup* groups() const noexcept { return groups_.data(); }
  [[nodiscard]] const GroupCounts* counts() const noexcept { return counts_.data(); }  // by group
  [[nodiscard]] const WayBlock* blocks() const noexcept { return blocks_.data(); }

  void add_branches(std::uint32_t way, std::span<const WayBranch> branches);
  // Those of a choice, which has to be the same for all ways.
  void add_branches(std::uint32_t way, std::span<const WayBranch> branches, const BranchChoice& choice);
  void add_blocks(std::uint32_t way, std::span<const WayBlock> blocks, std::size_t head);
  [[nodiscard]] std::size_t bytes() const noexcept {
    return (branches_.capacity() + block_parts_.capacity()) * sizeof(WayPart) +
           groups_.capacity() * sizeof(RowGroup) + counts_.capacity() * sizeof(GroupCounts) +
           blocks_.capacity() * sizeof(WayBlock);
  }

 private:
  void put_branches(std::uint32_t way, std::span<const WayBranch> branches, std::size_t head,
                    std::uint16_t last);

  base::ArenaVector<WayPart> branches_;
  base::ArenaVector<WayPart> block_parts_;
  base::ArenaVector<RowGroup> groups_;  // number 1 stands for no rows
  base::ArenaVector<GroupCounts> counts_;
  base::ArenaVector<WayBlock> blocks_;
};

}  // namespace ptkit::flow
