// Code as a graph of decisions, and what packets did from each place of it: the memory of the fast path. What
// is remembered was found by the rules of the Walker, and only what ended well and depends on the place and
// the packet alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "flow/block_cache.h"
#include "flow/edge_index.h"
#include "flow/way_insns.h"

namespace ptkit::flow {

class AddressFilter;

// Eight branches.
struct alignas(16) RowGroup {
  static constexpr std::size_t kRows = 8;
  std::array<std::uint64_t, kRows> from{};
  std::array<std::uint64_t, kRows> to{};
  std::array<std::uint8_t, kRows> kind{};
  std::array<std::uint8_t, kRows> flags{};
};

// Instructions of the cache's pool that are executed one after the other: a Block.
struct Step {
  std::uint32_t first = 0;
  std::uint16_t count = 0;
  std::uint16_t size = 0;  // bytes
};

using NodeId = std::uint32_t;
using WayId = std::uint32_t;

enum class WayEnd : std::uint8_t {
  USED,      // bits: all were used
  RETURN,    // bits: the next one stands for a return whose call lies before. Exits: a return
  STUCK,     // bits: the next one cannot be used
  INDIRECT,  // exits: another branch that takes a TIP
  LEFT,      // packets went off
};

// From a node to where a packet leads, or as far as can be told.
struct Way {
  std::uint64_t count = 0;  // how often it was gone, where edges are counted
  NodeId next = 0;
  std::uint32_t group = 0;  // its rows
  std::uint32_t step = 0;   // its blocks
  std::uint32_t push = 0;   // return addresses that calls left on the stack
  std::uint32_t edge = 0;   // its rows' numbers as edges; 0: not looked up yet
  std::uint16_t rows = 0;
  std::uint16_t steps = 0;
  std::uint16_t insns = 0;
  std::uint8_t pushes = 0;
  std::uint8_t depth = 0;  // of calls within, at most
  std::uint8_t bits = 0;   // that were used
  WayEnd end = WayEnd::USED;
};

class DecisionGraph {
 public:
  static constexpr std::size_t kRowCells = 128;  // a TNT-8 packet without its lowest bit
  static constexpr std::uint32_t kPartial = 1U << 31U;

  // What TNT bits do. `bits` has a leading 1, then the bits, oldest first: a TNT-8 packet's byte >> 1.
  struct Cell {
    std::uint32_t row = 0;  // of the next node
    std::uint32_t way = 0;  // 0: not known; with kPartial: not all bits are used
  };
  // A place of the Walker between two instructions, where no block was begun.
  struct Node {
    std::uint64_t ip = 0;
    std::uint32_t row = 0;  // of cells; 0: none yet
    WayId exit = 0;         // to the next branch that takes a TIP; 0: not known
  };
  // From a node's exit (node 0: from nowhere) to an address.
  struct Hop {
    std::uint64_t ip = 0;
    std::uint64_t count = 0;
    NodeId node = 0;
    NodeId next = 0;         // 0: a free slot
    std::uint32_t edge = 0;  // the last row's number as an edge; 0: not looked up yet
  };
  // Packets go off, with or without the IP at which they would go on.
  struct Leave {
    std::uint64_t ip = 0;
    std::uint64_t resume_ip = 0;  // Walker::resume_ip()
    std::uint64_t end_ip = 0;     // where the Walker stands afterwards
    NodeId node = 0;              // 0: a free slot
    WayId way = 0;
    bool ip_known = false;
  };

  DecisionGraph(BlockCache& cache, bool return_compression);
  DecisionGraph(const DecisionGraph&) = delete;
  DecisionGraph& operator=(const DecisionGraph&) = delete;
  ~DecisionGraph();

  [[nodiscard]] bool return_compression() const noexcept { return return_compression_; }

  // These build what is not there yet. References and pointers are valid until the next call.
  [[nodiscard]] NodeId node(std::uint64_t ip) { return hop(0, ip).next; }
  [[nodiscard]] Cell bits(NodeId from, std::uint32_t bits);  // way 0: the simple decoder has to do it
  [[nodiscard]] WayId exit(NodeId from);                     // 0: likewise, or no such branch
  [[nodiscard]] Hop& hop(NodeId from, std::uint64_t ip) {
    Hop& slot = hops_[place(from, ip, hops_.size())];
    return slot.next != 0 && slot.node == from && slot.ip == ip ? slot : find_hop(from, ip);
  }
  [[nodiscard]] const Leave* leave(NodeId from, const std::uint64_t* ip, const AddressFilter& filter);

  // The node of `cell` has got its row.
  void connect(std::size_t cell, NodeId next) noexcept { cells_[cell].row = nodes_[next].row; }

  [[nodiscard]] const Cell* cells() const noexcept { return cells_.data(); }
  [[nodiscard]] const Node* nodes() const noexcept { return nodes_.data(); }
  [[nodiscard]] Way* ways() noexcept { return ways_.data(); }
  [[nodiscard]] const RowGroup* groups() const noexcept { return groups_.data(); }
  [[nodiscard]] const Step* steps() const noexcept { return steps_.data(); }
  [[nodiscard]] const std::uint64_t* pushed() const noexcept { return pushed_.data(); }
  // By place in the cache's pool, for all instructions that are part of a way.
  [[nodiscard]] const std::uint64_t* insn_ips() const noexcept { return insn_ips_.data(); }
  [[nodiscard]] const WayInsns& way_insns() const noexcept { return way_insns_; }
  std::uint32_t add_way_insns(WayId id) {
    const Way& way = ways_[id];
    return way_insns_.add(id, std::span(steps_).subspan(way.step, way.steps), insn_ips_.data(),
                          insn_sizes_.data(), insn_classes_.data());
  }
  [[nodiscard]] std::size_t way_count() const noexcept { return ways_.size(); }
  [[nodiscard]] BlockCache& cache() noexcept { return cache_; }

  [[nodiscard]] std::size_t bytes() const noexcept;  // of memory

  // The edges that were counted; counts from 0 again. Valid until the next call.
  [[nodiscard]] const std::vector<EdgeCount>& take_counts(bool in_order);
  // Their counts leave 0. Whoever notes all of them may take counts without order, which looks at no others.
  void note_use(const Way& way);
  void note_use(const Hop& hop);

 private:
  class Builder;
  static constexpr std::uint32_t kHopUse = 1U << 31U;

  [[nodiscard]] static std::size_t place(NodeId from, std::uint64_t ip, std::size_t slots) noexcept {
    const std::uint64_t mixed = (ip + from * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;
    return static_cast<std::size_t>(mixed >> 32U) & (slots - 1);
  }
  Hop& find_hop(NodeId from, std::uint64_t ip);
  Hop& add_hop(NodeId from, std::uint64_t ip);
  [[nodiscard]] std::size_t leave_place(NodeId from, std::uint64_t ip, bool known) const noexcept;
  void add_leave(const Leave& leave);
  std::uint32_t row_of(NodeId id);
  Builder& begin_way();
  void note(const Run& run);
  WayId add_way(const Builder& builder, NodeId next, WayEnd end);
  void count_rows(Way& way, std::size_t rows, std::uint64_t times);
  void take_way(Way& way);
  void take_hop(Hop& hop);

  BlockCache& cache_;
  bool return_compression_;
  std::unique_ptr<Builder> builder_;
  std::vector<Cell> cells_;
  std::vector<Node> nodes_;
  std::vector<Way> ways_;
  std::vector<RowGroup> groups_;
  std::vector<Step> steps_;
  EdgeIndex edges_;
  std::vector<std::uint32_t> row_edges_;
  std::vector<std::uint32_t> used_;  // ways and, with kHopUse, slots of hops
  bool used_lost_ = false;           // slots have changed since
  std::vector<std::uint64_t> pushed_;
  std::vector<Hop> hops_;
  std::size_t hop_count_ = 0;
  std::vector<Leave> leaves_;
  std::size_t leave_count_ = 0;
  std::vector<std::uint64_t> insn_ips_;
  std::vector<std::uint8_t> insn_sizes_;
  std::vector<std::uint8_t> insn_classes_;
  WayInsns way_insns_;
};

}  // namespace ptkit::flow
