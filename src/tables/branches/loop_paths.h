// Paths through loops: a trie of branch outcomes for each loop, from its head to its head, or out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tables/branches/loop_walk.h"

namespace ptkit::tables::branches {

// What a path has. Values are those of a column: append only.
enum class StepKind : std::uint8_t {
  NONE,       // the path begins
  NOT_TAKEN,  // a conditional branch
  TAKEN,
  INDIRECT,  // a jump or call; its target, 0 if that is not known
  LOOP,      // a visit of a loop within this one, however that went: its head is the target
};

struct PathStep {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  StepKind kind = StepKind::NONE;

  bool operator==(const PathStep&) const = default;
};

// A path is that of its parent, then a step.
struct PathNode {
  PathStep step{};
  std::uint64_t rounds = 0;  // how often it led to the head
  std::uint64_t exits = 0;   // how often it led out of the loop
  std::uint32_t parent = 0;  // 0: the path begins
  std::int32_t loop = kNoLoop;
};

class LoopPaths final : public LoopWatcher {
 public:
  // Of each loop. Further paths are counted together.
  static constexpr std::size_t kMostNodes = std::size_t{1} << 15U;

  // `wanted`: of which loops. Both must outlive this.
  LoopPaths(const LoopMap& map, const std::vector<std::uint8_t>& wanted);

  void on_enter(Visit& visit, Visit* outer) override;
  void on_round(Visit& visit) override;
  void on_leave(Visit& visit) override;
  void on_row(const calls::BranchStep& row, std::uint8_t kind, Visit* innermost,
              const calls::Owner& owner) override;
  // Parents come before. Of each loop, the first node is the root, and the second one has all paths that have
  // no node. The node 0 is none.
  [[nodiscard]] const std::vector<PathNode>& nodes() const noexcept { return nodes_; }

 private:
  void go(Visit& visit, const PathStep& step);
  void grow();
  [[nodiscard]] std::uint32_t& slot_of(std::uint32_t parent, const PathStep& step) noexcept;

  const LoopMap& map_;
  std::vector<std::uint32_t> roots_;  // of each loop; 0: it is not wanted
  std::vector<std::size_t> sizes_;    // of each loop's trie
  std::vector<PathNode> nodes_;
  std::vector<std::uint32_t> slots_;  // numbers of nodes by open addressing; 0: free
};

}  // namespace ptkit::tables::branches
