// Many rows at once: what the fast path is told of a sink, and where it puts rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "flow/branch_choice.h"
#include "flow/rows.h"
#include "time/track.h"

namespace ptkit::flow {

enum class BulkRows : std::uint8_t { NONE, EDGES, BRANCHES, BLOCKS, INSTRUCTIONS };

// Rows from the end of the run before up to `row_end` stand at this place.
struct PlaceRun {
  std::uint64_t since = 0;
  std::uint64_t offset = 0;  // with time::Question::kBeforeFirstBit for Place::before_first_bit
  std::uint64_t row_end = 0;
};

// A branch both of whose ends are known, and how often it was taken (a conditional: this way).
struct EdgeCount {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  std::uint64_t count = 0;
  BranchKind kind = BranchKind::COND;
};

// Room that a sink gives for one pass of the fast path. Cells may be written up to kSlack rows behind
// `limit`.
struct BulkRoom {
  static constexpr std::size_t kSlack = std::size_t{1} << 14U;

  BulkRows kind = BulkRows::NONE;
  std::uint32_t space = 0;  // address space that edges are counted for
  bool in_order = true;     // EDGES: see add_edges(). The same in all rooms of a decode
  BranchChoice choice;      // BRANCHES: these only
  // Columns, null where they are not wanted. Row `row` is the first free one.
  std::uint64_t* from_ip = nullptr;  // BRANCHES
  std::uint64_t* to_ip = nullptr;
  std::uint8_t* branch = nullptr;  // BranchKind
  std::uint8_t* flags = nullptr;   // BRANCHES: without TIME_KNOWN
  std::uint64_t* ip = nullptr;     // INSTRUCTIONS, BLOCKS
  std::uint8_t* size = nullptr;    // INSTRUCTIONS
  std::uint8_t* cls = nullptr;
  std::uint32_t* bytes = nullptr;  // BLOCKS
  std::uint32_t* insns = nullptr;
  std::uint64_t* instruction = nullptr;  // BRANCHES, BLOCKS: instructions that came before
  std::uint64_t first_instruction = 0;   // those that came before the first row
  std::size_t row = 0;
  std::size_t limit = 0;
  // Where rows stand: one or two runs for each packet. Null: places are not asked for.
  PlaceRun* places = nullptr;
  // Rows before a TNT packet's first bit have a run of their own always, not only after a TNT packet that was
  // not full.
  bool first_bits = false;
  std::size_t place_count = 0;
  std::size_t place_limit = 0;
  // What came of it.
  std::uint64_t instructions = 0;
  std::uint64_t events = 0;                      // ENABLED and DISABLED events, not given one by one
  std::uint64_t used_bytes = 0;                  // of the stream
  insn::ExecMode mode = insn::ExecMode::BITS64;  // of all rows
};

class BulkSink {
 public:
  virtual ~BulkSink() = default;
  // False: rows are taken one by one only, for now.
  [[nodiscard]] virtual bool open(BulkRoom& room) = 0;
  virtual void close(const BulkRoom& room) = 0;
  // EDGES: what was counted in this address space, at the latest when the decode ends. Ordered by from, to
  // and kind, each edge once. Without `in_order`: in any order, at a cost that depends on what was used, not
  // on what is known.
  virtual void add_edges(std::span<const EdgeCount> edges, std::uint32_t space) = 0;
};

}  // namespace ptkit::flow
