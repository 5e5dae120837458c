// Rows in bulk: a sink provides memory for many rows at once, and the fast path writes the rows there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "flow/rows/branch_choice.h"
#include "flow/rows/rows.h"
#include "time/track.h"

namespace ptkit::flow {

enum class BulkRows : std::uint8_t { NONE, EDGES, BRANCHES, BLOCKS, INSTRUCTIONS, EVENTS };

// A run of rows with one StreamSpan: the rows from the previous run's `row_end` up to this `row_end`.
struct PlaceRun {
  std::uint64_t since = 0;
  std::uint64_t offset = 0;  // with time::TimeQuery::kBeforeFirstBit for StreamSpan::before_first_bit
  std::uint64_t row_end = 0;
};

// A branch with known source and target, and its count. A conditional branch has one count for each
// direction.
struct EdgeCount {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  std::uint64_t count = 0;
  BranchKind kind = BranchKind::COND;
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
  bool in_order = true;        // EDGES: see add_edges(). All rooms of a decode have the same value.
  BranchChoice choice;         // BRANCHES: the selected ones
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
  BulkEvent* event = nullptr;            // EVENTS: for the rows from `row` to `limit`
  std::uint64_t first_instruction = 0;   // number of instructions before the first row
  std::size_t row = 0;
  std::size_t limit = 0;
  // Places of the rows: one or two runs for each packet. Null: no column needs places.
  PlaceRun* places = nullptr;
  // True: rows before the first bit of a TNT packet always get their own run. False: they get one only after
  // a TNT packet that was not full.
  bool first_bits = false;
  std::size_t place_count = 0;
  std::size_t place_limit = 0;
  // Results of the pass.
  std::uint64_t instructions = 0;
  // number of ENABLED and DISABLED events, which are not emitted one by one; with those of PSB+
  std::uint64_t events = 0;
  std::uint64_t branches = 0;                    // if count_branches: rows that BRANCHES would have
  std::uint64_t used_bytes = 0;                  // bytes of the stream
  insn::ExecMode mode = insn::ExecMode::BITS64;  // of all rows
};

class BulkSink {
 public:
  virtual ~BulkSink() = default;
  // False: for now, rows are only emitted one by one.
  [[nodiscard]] virtual bool open(BulkRoom& room) = 0;
  virtual void close(const BulkRoom& room) = 0;
  // EDGES: the counts of one address space and phase, before those of the next one, and at the end of the
  // decode at the latest. They are sorted by from, to and kind, and each edge occurs once. Without `in_order`
  // the order is arbitrary, and the cost depends on the number of used edges, not on the number of known
  // edges.
  virtual void add_edges(std::span<const EdgeCount> edges, std::uint32_t space, std::uint32_t phase) = 0;
};

}  // namespace ptkit::flow
