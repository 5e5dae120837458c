// What a user asks of a table: columns and rows.
#pragma once

#include <cstdint>
#include <vector>

#include "columns/schema.h"
#include "flow/branch_choice.h"
#include "trace/bundle.h"

namespace ptkit::columns {

constexpr trace::SpaceId kEverySpace = UINT32_MAX;

struct IpRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;              // inclusive: the last page of the address space has no end
  trace::SpaceId space = kEverySpace;  // only rows of this space
};

// Rows that match every part. An empty list selects everything.
struct Selection {
  std::vector<IpRange>
      ips;  // branches, gaps: either end lies inside; blocks: they overlap; others: `ip` lies inside
  std::vector<std::int64_t> pids;
  std::vector<std::int64_t> tids;
  bool by_time = false;  // rows with a known time in [tsc_begin, tsc_end)
  std::uint64_t tsc_begin = 0;
  std::uint64_t tsc_end = 0;
  flow::BranchChoice branches;  // branches and edges

  [[nodiscard]] bool by_context() const noexcept { return !pids.empty() || !tids.empty(); }
};

struct Request {
  TableId table = TableId::branches;
  ColumnMask mask = kAllColumns;
  bool time = true;           // compute times (and the flags that say that they are known)
  bool estimate = false;      // compute estimates of times; needs `time`
  bool context = true;        // packets: follow context switches (needs time)
  bool side_tables = true;    // also keep the errors and gaps that were met, all of them
  bool select_sides = false;  // ... only those that are selected
  bool sync = true;           // packets: begin at the first PSB
  Selection selection;
};

}  // namespace ptkit::columns
