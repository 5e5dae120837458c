// Request for a table: selection of columns and rows.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/rows/branch_choice.h"
#include "tables/columns/schema.h"
#include "trace/bundle.h"

namespace ptkit::tables::columns {

constexpr trace::SpaceId kEverySpace = UINT32_MAX;
constexpr std::uint64_t kEveryEvent = UINT64_MAX;

struct IpRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;              // inclusive, because the last page of the address space has no end
  trace::SpaceId space = kEverySpace;  // only rows of this space
};

// Rows that match all criteria. An empty list selects everything.
struct Selection {
  // Branches, gaps: either end is inside; blocks: they overlap; others: `ip` is inside.
  std::vector<IpRange> ips;
  std::vector<std::int64_t> pids;
  std::vector<std::int64_t> tids;
  std::vector<trace::SpaceId> spaces;
  bool by_time = false;  // rows with a known time in [tsc_begin, tsc_end)
  std::uint64_t tsc_begin = 0;
  std::uint64_t tsc_end = 0;
  flow::BranchChoice branches;              // branches and edges
  std::uint64_t event_kinds = kEveryEvent;  // bits by flow::EventKind

  [[nodiscard]] bool by_context() const noexcept { return !pids.empty() || !tids.empty() || !spaces.empty(); }
};

// Unit of the phases of edges, and of limits among marks: the earliest time of a branch (TSC ticks), or the
// instructions of its stream before it, as in the column `instruction`.
enum class PhasesBy : std::uint8_t { TIME, INSTRUCTIONS };

// Kinds of rows between branches, for Request::marks. They have no branch instruction.
enum MarkKind : std::uint8_t {
  MARK_ENABLED = 128,   // packets are enabled at `to_ip`
  MARK_GAP = 129,       // control flow is not known; with TO_KNOWN, it is again from `to_ip` on
  MARK_CONTEXT = 130,   // the following rows may be of another thread or space
  MARK_STATUS = 131,    // packets are enabled, and control flow is at `to_ip`
  MARK_LEAVE = 132,     // the following rows, if any, are of another thread or space
  MARK_DISABLED = 133,  // packets are disabled
  MARK_LIMIT = 134,     // the following rows are behind the limit of bins with the number `to_ip`
};

struct Request {
  TableId table = TableId::branches;
  ColumnMask mask = kAllColumns;
  bool time = true;            // compute times, and the flags for known times
  bool estimate = false;       // compute estimates of times; needs `time`
  bool context = true;         // packets: follow context switches (needs `time`)
  bool side_tables = true;     // also keep all errors and gaps
  bool select_sides = false;   // keep only the selected errors and gaps
  bool sync = true;            // packets: start at the first PSB
  bool marks = false;          // branches: also rows of a MarkKind
  bool half_edges = false;     // edges: also indirect calls and jumps of which the target is not known
  bool counts_blocks = false;  // edges: also blocks, as flow::kCountedBlock has them
  bool offset_runs = false;    // branches, blocks, instructions: keep `offset` as runs, where possible
  Selection selection;
  // Edges: ascending limits of phases, for the column `bin`; then other rows are not selected. Empty: one
  // phase, that of the selection. With marks: limits that have a mark of their own.
  std::vector<std::uint64_t> bins;
  PhasesBy phases_by = PhasesBy::TIME;

  [[nodiscard]] bool by_instructions() const noexcept {
    return !bins.empty() && phases_by == PhasesBy::INSTRUCTIONS;
  }
  [[nodiscard]] bool marks_limits() const noexcept { return marks && !bins.empty(); }
};

// The columns of its table. Only rows with marks have numbers of branches: an index does not know them.
[[nodiscard]] inline ColumnMask stored_columns(const Request& request) noexcept {
  const bool is_numbered = request.table != TableId::branches || request.marks;
  return is_numbered ? request.mask : request.mask & ~(ColumnMask{1} << index_of(Column::branches_number));
}

}  // namespace ptkit::tables::columns
