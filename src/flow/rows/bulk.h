// Rows in bulk: a sink provides memory for many rows at once, and the fast path writes the rows there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "flow/rows/branch_choice.h"
#include "flow/rows/rows.h"
#include "time/track.h"

namespace ptkit::flow {

enum class BulkRows : std::uint8_t { NONE, EDGES, BRANCHES, BLOCKS, INSTRUCTIONS, EVENTS };

// A run of rows with one StreamSpan: the rows from the previous run's `row_end` up to this `row_end`.
struct SpanRun {
  std::uint64_t since = 0;
  std::uint64_t offset = 0;  // with time::TimeQuery::kBeforeFirstBit for StreamSpan::before_first_bit
  std::uint64_t row_end = 0;
};

// Hash of an edge. Its lowest bits are the index in a coverage map of 2^n bytes. Never changes. Does not
// depend on kind and address space.
[[nodiscard]] constexpr std::uint32_t edge_hash(std::uint64_t from, std::uint64_t to) noexcept {
  std::uint64_t mixed = from * 0x9e3779b97f4a7c15ULL + to;
  mixed ^= mixed >> 32U;
  mixed *= 0xd6e8feb86659fd93ULL;
  return static_cast<std::uint32_t>(mixed >> 32U);
}

// The kind of an indirect call or jump of which the target is not known, as EdgeCount has it: with this bit.
// The target is 0 then.
inline constexpr std::uint8_t kHalfEdge = 0x80;

[[nodiscard]] constexpr bool is_half_edge(BranchKind kind) noexcept {
  return (static_cast<std::uint8_t>(kind) & kHalfEdge) != 0;
}
[[nodiscard]] constexpr BranchKind half_edge(BranchKind kind) noexcept {
  return static_cast<BranchKind>(static_cast<std::uint8_t>(kind) | kHalfEdge);
}
// The kind without the bit.
[[nodiscard]] constexpr BranchKind kind_of(BranchKind kind) noexcept {
  return static_cast<BranchKind>(static_cast<std::uint8_t>(kind) & (kHalfEdge - 1U));
}

// A counted basic block, as EdgeCount has it: `from_ip` is its address, `to_ip` its size, and the kind has
// its mode. No BranchKind has these bits, with kHalfEdge or without.
inline constexpr std::uint8_t kCountedBlock = 0x60;

[[nodiscard]] constexpr bool is_counted_block(BranchKind kind) noexcept {
  return (static_cast<std::uint8_t>(kind) & (kHalfEdge | kCountedBlock)) == kCountedBlock;
}
[[nodiscard]] constexpr BranchKind counted_block(code::insn::ExecMode mode) noexcept {
  return static_cast<BranchKind>(kCountedBlock | static_cast<std::uint8_t>(mode) >> 4U);
}
[[nodiscard]] constexpr code::insn::ExecMode mode_of(BranchKind kind) noexcept {
  return static_cast<code::insn::ExecMode>((static_cast<std::uint8_t>(kind) & ~kCountedBlock) << 4U);
}

// Size of a counted block.
struct BlockSize {
  std::uint32_t bytes = 0;
  std::uint32_t instructions = 0;

  [[nodiscard]] static constexpr BlockSize of(std::uint64_t to_ip) noexcept {
    return {static_cast<std::uint32_t>(to_ip >> 32U), static_cast<std::uint32_t>(to_ip)};
  }
  [[nodiscard]] constexpr std::uint64_t to_ip() const noexcept {
    return std::uint64_t{bytes} << 32U | instructions;
  }
};

// A branch with known source and target, and its count. A conditional branch has one count for each
// direction.
struct EdgeCount {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  std::uint64_t count = 0;
  BranchKind kind = BranchKind::COND;
  std::uint32_t hash = edge_hash(from_ip, to_ip);  // kept, because coverage needs it at each decode
};

// Counted edges of a table, in the order of their first counts.
class EdgeCounts {
 public:
  // `numbers`: of the counted edges in the tables `edges` and `counts`.
  EdgeCounts(std::span<const std::uint32_t> numbers, const EdgeCount* edges, std::uint64_t* counts) noexcept
      : numbers_(numbers), edges_(edges), counts_(counts) {}

  [[nodiscard]] std::size_t size() const noexcept { return numbers_.size(); }
  // Calls visit(edge, count) for each edge, and resets the count. The edge itself has none.
  template <typename Visit>
  void take_each(const Visit& visit) const {
    for (const std::uint32_t number : numbers_) visit(edges_[number], std::exchange(counts_[number], 0));
  }

 private:
  std::span<const std::uint32_t> numbers_;
  const EdgeCount* edges_;
  std::uint64_t* counts_;
};

// An ENABLED or DISABLED event. Its StreamSpan is the packet at `offset` alone.
struct BulkEvent {
  std::uint64_t ip = 0;
  std::uint64_t offset = 0;
  std::uint64_t instructions = 0;  // of the pass, before the event
  EventKind kind = EventKind::ENABLED;
  std::uint16_t flags = 0;
};

// Memory that a sink provides for one pass of the fast path. The pass may write up to kSlack rows after
// `limit`.
struct BulkRoom {
  static constexpr std::size_t kSlack = std::size_t{1} << 14U;

  BulkRows kind = BulkRows::NONE;
  std::uint32_t space = 0;  // address space of the counted edges
  std::uint32_t phase = 0;  // EDGES: phase of the counted edges
  // EDGES: instructions of the pass. It may have up to kSlack more.
  std::uint64_t most_instructions = UINT64_MAX;
  std::uint64_t position = 0;  // stream offset where the pass begins
  // EDGES: add_edges() gets the counts, otherwise add_counts(). All rooms of a decode have the same value.
  bool in_order = true;
  bool count_blocks = false;  // EDGES: the counts have those of blocks, too. As `in_order`.
  BranchChoice choice;        // BRANCHES: the selected ones
  // Columns; null if a column is not selected. `row` is the first free row.
  std::uint64_t* from_ip = nullptr;  // BRANCHES
  std::uint64_t* to_ip = nullptr;
  std::uint8_t* branch = nullptr;  // BranchKind
  std::uint8_t* flags = nullptr;   // BRANCHES: without TIME_KNOWN
  std::uint64_t* ip = nullptr;     // INSTRUCTIONS, BLOCKS
  std::uint8_t* size = nullptr;    // INSTRUCTIONS
  std::uint8_t* cls = nullptr;
  std::uint32_t* bytes = nullptr;  // BLOCKS
  std::uint32_t* insns = nullptr;
  bool count_branches = false;           // BLOCKS: counts `branches`
  std::uint64_t* instruction = nullptr;  // BRANCHES, BLOCKS: number of instructions before the row
  std::uint64_t* number = nullptr;       // BRANCHES: number of branches before the row
  std::uint64_t first_branch = 0;        // number of branches before the first row
  // BRANCHES: the kinds of rows for ENABLED and DISABLED events; 0: they have no rows
  std::uint8_t enabled = 0;
  std::uint8_t disabled = 0;
  BulkEvent* event = nullptr;           // EVENTS: for the rows from `row` to `limit`
  std::uint64_t first_instruction = 0;  // number of instructions before the first row
  std::size_t row = 0;
  std::size_t limit = 0;
  // Spans of the rows: one or two runs for each packet. Null: no column needs spans.
  SpanRun* spans = nullptr;
  // True: rows before the first bit of a TNT packet always get their own run. False: they get one only after
  // a TNT packet that was not full.
  bool first_bits = false;
  std::size_t span_count = 0;
  std::size_t span_limit = 0;
  // Results of the pass.
  std::uint64_t instructions = 0;
  // number of ENABLED and DISABLED events, which are not emitted one by one; with those of PSB+
  std::uint64_t events = 0;
  // if count_branches or `number`: rows that BRANCHES without a choice would have
  std::uint64_t branches = 0;
  std::uint64_t used_bytes = 0;                              // bytes of the stream
  code::insn::ExecMode mode = code::insn::ExecMode::BITS64;  // of all rows
};

class BulkSink {
 public:
  virtual ~BulkSink() = default;
  // False: for now, rows are only emitted one by one.
  [[nodiscard]] virtual bool open(BulkRoom& room) = 0;
  virtual void close(const BulkRoom& room) = 0;
  // EDGES: the counts of one address space and phase, before those of the next one, and at the end of the
  // decode at the latest. They are sorted by from, to and kind, and each edge occurs once.
  virtual void add_edges(std::span<const EdgeCount> edges, std::uint32_t space, std::uint32_t phase) = 0;
  // As add_edges(), of rooms without `in_order`. The cost depends on the number of used edges, not on the
  // number of known edges.
  virtual void add_counts(const EdgeCounts& counts, std::uint32_t space, std::uint32_t phase) {
    std::vector<EdgeCount> edges;
    counts.take_each([&edges](const EdgeCount& edge, std::uint64_t count) {
      edges.push_back(edge);
      edges.back().count = count;
    });
    add_edges(edges, space, phase);
  }
};

}  // namespace ptkit::flow
