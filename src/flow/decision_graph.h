// Code as a graph of decisions, and what packets did from each place of it: the memory of the fast path. What
// is remembered was found by the rules of the Walker, and only what ended well and depends on the place and
// the packet alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "flow/block_cache.h"
#include "flow/cells.h"
#include "flow/edge_index.h"
#include "flow/way_builder.h"
#include "flow/way_insns.h"
#include "flow/way_rows.h"

namespace ptkit::flow {

// What lies between a node and where a packet leads: what the Cell does not say of it.
struct Way {
  std::uint32_t step = 0;  // the first run that is gone through
  std::uint32_t push = 0;  // return addresses that calls left on the stack
  std::uint32_t tail = 0;
  std::uint32_t edge = 0;  // returns: its rows' numbers as edges; 0: not looked up yet
  std::uint16_t steps = 0;
  std::uint16_t part = 0;  // instructions of the last run, where not all
  std::uint8_t pushes = 0;
  std::uint8_t depth = 0;  // of calls within, at most
  bool returns = false;    // to calls within
};

class DecisionGraph {
 public:
  // A place of the Walker between two instructions, where no block was begun. Node 0: packets are off.
  struct Node {
    std::uint64_t ip = 0;
    std::uint32_t base = 0;  // of its cells
    WayId exit = 0;          // to the next branch that takes a TIP; 0: not known
    std::uint16_t exit_insns = 0;
    bool returns = false;  // that branch is a return
    bool near = false;     // that branch is an indirect jump or call
  };
  enum class Packet : std::uint8_t { TIP, PGE, PGD, PGD_NO_IP, PSB };  // Cell::from ends in this

  DecisionGraph(BlockCache& cache, bool return_compression);
  DecisionGraph(const DecisionGraph&) = delete;
  DecisionGraph& operator=(const DecisionGraph&) = delete;
  ~DecisionGraph();

  [[nodiscard]] bool return_compression() const noexcept { return return_compression_; }

  // These build what is not there yet. References and pointers are valid until the next call. Null: the
  // simple decoder has to do it.
  [[nodiscard]] NodeId node(std::uint64_t ip);
  [[nodiscard]] Cell* bits(NodeId from, std::uint32_t bits);  // Cell::bits
  [[nodiscard]] Cell* target(NodeId from, Packet packet, std::uint64_t ip, const AddressFilter& filter);

  [[nodiscard]] const Node& at(NodeId id) const noexcept { return nodes_[id]; }
  [[nodiscard]] NodeId node_of(std::uint32_t base) const noexcept { return bit_cells_.owner(base); }
  [[nodiscard]] Cells& bit_cells() noexcept { return bit_cells_.all(); }
  [[nodiscard]] Cells& target_cells() noexcept { return target_cells_.all(); }
  [[nodiscard]] std::uint64_t target_mask() const noexcept { return target_cells_.mask(); }
  [[nodiscard]] const Way* ways() const noexcept { return ways_.data(); }
  [[nodiscard]] std::size_t way_count() const noexcept { return ways_.size(); }
  // Packets went off through this way.
  [[nodiscard]] const WayTail& leave(const Way& way) const noexcept { return tails_[way.tail]; }
  [[nodiscard]] const std::uint64_t* pushed() const noexcept { return pushed_.data(); }
  // Rows of ways: those that were added.
  [[nodiscard]] const WayRows& way_rows() const noexcept { return way_rows_; }
  [[nodiscard]] const WayInsns& way_insns() const noexcept { return way_insns_; }
  // Rows of a choice of branches. Valid until another choice is asked for.
  [[nodiscard]] WayRows& chosen_rows(const BranchChoice& choice);
  void add_way_branches(WayId id);
  void add_way_branches(WayId id, const BranchChoice& choice);
  void add_way_blocks(WayId id);
  std::uint32_t add_way_insns(WayId id);
  [[nodiscard]] BlockCache& cache() noexcept { return cache_; }

  [[nodiscard]] std::size_t bytes() const noexcept;  // of memory

  // The edges that were counted; counts from 0 again. Valid until the next call.
  [[nodiscard]] std::span<const EdgeCount> take_counts(bool in_order);
  // The cell's count leaves 0. Whoever notes all of them may take counts without order, which looks at no
  // others.
  void note_bits(const Cell& cell);
  void note_target(const Cell& cell);
  // The cell's count has come to 2^32, which is 0.
  void carry_bits(Cell& cell) { take_bits(cell, kCarry); }
  void carry_target(const Cell& cell) {
    take_target(static_cast<std::size_t>(&cell - target_cells_.all().data()), kCarry);
  }

 private:
  static constexpr std::uint32_t kTargetUse = 1U << 31U;
  static constexpr std::uint32_t kOpenTail = 1;
  static constexpr std::uint64_t kCarry = std::uint64_t{1} << 32U;

  WayBuilder& begin_way();
  WayId add_way(const WayBuilder& builder);
  [[nodiscard]] std::uint32_t from(NodeId node, Packet packet) const noexcept {
    return nodes_[node].base | static_cast<std::uint32_t>(packet);
  }
  bool find_exit(Node& node);
  [[nodiscard]] Cell& add_target(NodeId from, Packet packet, std::uint64_t ip, NodeId to);
  [[nodiscard]] Cell* add_status(NodeId from, std::uint64_t ip);
  [[nodiscard]] Cell* add_leave(NodeId from, Packet packet, std::uint64_t ip, const AddressFilter& filter);
  [[nodiscard]] std::vector<WayBranch> branches_of(const Way& way) const;
  [[nodiscard]] const Run& last_run(const Way& way) const noexcept {
    return cache_.run(steps_[way.step + way.steps - 1U].run());
  }
  // What comes first in a way: the blocks up to the first branch that takes a packet.
  struct Head {
    std::uint32_t blocks = 0;
    std::uint32_t insns = 0;
  };
  [[nodiscard]] Head head_of(const Way& way) const;
  // Calls visit(run, instructions, their bytes) for each block of the way.
  template <typename Visit>
  void each_block(const Way& way, const Visit& visit) const;
  void count_steps();
  void count_returning(Way& way, std::uint64_t times);
  void count_way(Way& way, std::uint64_t times);
  void take_bits(Cell& cell, std::uint64_t times);
  void take_target(std::size_t index, std::uint64_t times);

  BlockCache& cache_;
  bool return_compression_;
  std::unique_ptr<WayBuilder> builder_;
  BitCells bit_cells_;
  TargetCells target_cells_;
  base::ArenaVector<Node> nodes_;
  IpIndex nodes_by_ip_;
  base::ArenaVector<Way> ways_;
  base::ArenaVector<WayTail> tails_;
  base::ArenaVector<PathStep> steps_;
  base::ArenaVector<std::uint64_t> pushed_;
  EdgeIndex edges_;
  base::ArenaVector<std::uint64_t> step_counts_;  // by PathStep
  base::ArenaVector<std::uint32_t> used_steps_;   // whose count is not 0
  // Numbers as edges plus 1; 0: not looked up yet.
  base::ArenaVector<std::uint32_t> step_edges_;    // by PathStep
  base::ArenaVector<std::uint32_t> target_edges_;  // of the last rows of target cells
  base::ArenaVector<std::uint32_t> row_edges_;     // of ways that return; without 1
  base::ArenaVector<std::uint32_t> used_;          // cells; of targets, with kTargetUse
  bool used_lost_ = false;                         // some have moved since
  WayRows way_rows_;
  std::vector<std::pair<BranchChoice, WayRows>> chosen_rows_;
  WayInsns way_insns_;
};

}  // namespace ptkit::flow
