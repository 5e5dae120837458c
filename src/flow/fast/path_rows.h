// Rows of the paths of a PathCache, in column order so that one copy emits them. Paths are added on first
// use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "flow/rows/branch_choice.h"
#include "flow/rows/rows.h"

namespace ptkit::flow {

// Eight branches, column by column.
struct alignas(16) RowGroup {
  static constexpr std::size_t kRows = 8;
  std::array<std::uint64_t, kRows> from{};
  std::array<std::uint64_t, kRows> to{};
  std::array<std::uint8_t, kRows> kind{};
  std::array<std::uint8_t, kRows> flags{};
};

// For each branch of a group: number of the path's instructions before it.
using GroupCounts = std::array<std::uint16_t, RowGroup::kRows>;

struct PathBranch {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  BranchKind kind = BranchKind::COND;
  std::uint8_t flags = 0;
  std::uint16_t before = 0;  // instructions of the path before the branch
};

struct PathBlock {
  std::uint64_t ip = 0;
  std::uint32_t bytes = 0;
  std::uint32_t insns = 0;
};

// The rows of one path.
struct PathPart {
  // The choice has the path's last branch.
  static constexpr std::uint16_t kLast = std::uint16_t{1} << 15U;

  std::uint32_t first = 0;  // index of the group or block; 0: not added yet
  std::uint16_t rows = 0;   // for a choice of branches: with kLast
  // rows before the first branch that needs a bit; its block is one of them
  std::uint16_t head = 0;
};

class PathRows {
 public:
  explicit PathRows(base::Arena& arena)
      : branches_(arena),
        block_parts_(arena),
        block_branches_(arena),
        groups_(2, arena),
        counts_(2, arena),
        numbers_(2, arena),
        path_branches_(arena),
        blocks_(1, arena) {}

  // By path; paths may be missing at the end.
  [[nodiscard]] std::span<const PathPart> branch_parts() const noexcept { return branches_; }
  [[nodiscard]] std::span<const PathPart> block_parts() const noexcept { return block_parts_; }
  [[nodiscard]] const RowGroup* groups() const noexcept { return groups_.data(); }
  [[nodiscard]] const GroupCounts* counts() const noexcept { return counts_.data(); }  // by group
  // By group: for each branch, the number of the path's branches before it. By path: its branches.
  [[nodiscard]] const GroupCounts* numbers() const noexcept { return numbers_.data(); }
  [[nodiscard]] std::span<const std::uint16_t> branches() const noexcept { return path_branches_; }
  [[nodiscard]] const PathBlock* blocks() const noexcept { return blocks_.data(); }

  void add_branches(std::uint32_t path, std::span<const PathBranch> branches);
  // As above, for a choice of branches, which has to be the same for all paths.
  void add_branches(std::uint32_t path, std::span<const PathBranch> branches, const BranchChoice& choice,
                    const code::image::CodeView& view);
  void add_blocks(std::uint32_t path, std::span<const PathBlock> blocks, std::size_t head,
                  std::size_t branches);
  // The number of branches of a path of which the blocks were added.
  [[nodiscard]] std::size_t branches_of(std::uint32_t path) const noexcept { return block_branches_[path]; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return (branches_.capacity() + block_parts_.capacity()) * sizeof(PathPart) +
           groups_.capacity() * sizeof(RowGroup) + counts_.capacity() * sizeof(GroupCounts) +
           numbers_.capacity() * sizeof(GroupCounts) + path_branches_.capacity() * sizeof(std::uint16_t) +
           blocks_.capacity() * sizeof(PathBlock) + block_branches_.capacity() * sizeof(std::uint16_t);
  }

 private:
  // `numbers`: of the branches on the path.
  void put_branches(std::uint32_t path, std::span<const PathBranch> branches,
                    std::span<const std::uint16_t> numbers, std::size_t head, std::uint16_t last);

  base::ArenaVector<PathPart> branches_;
  base::ArenaVector<PathPart> block_parts_;
  base::ArenaVector<std::uint16_t> block_branches_;  // as block_parts_
  base::ArenaVector<RowGroup> groups_;               // number 1 is a group without rows
  base::ArenaVector<GroupCounts> counts_;
  base::ArenaVector<GroupCounts> numbers_;          // of chosen branches
  base::ArenaVector<std::uint16_t> path_branches_;  // of paths of which branches were chosen
  base::ArenaVector<PathBlock> blocks_;
};

}  // namespace ptkit::flow
