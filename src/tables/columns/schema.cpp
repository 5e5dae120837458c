#include "tables/columns/schema.h"

#include <algorithm>
#include <array>

namespace ptkit::tables::columns {
ColumnMask usual_columns(TableId table) noexcept {
  const auto columns = columns_of(table);
  ColumnMask mask = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    bool on_demand = false;
    for (const SchemaRow& one : rows_of<RowKind::ON_DEMAND>(table)) on_demand |= one.name == columns[i].name;
    if (!on_demand) mask |= ColumnMask{1} << i;
  }
  return mask;
}

ColumnMask uniform_candidates(TableId table) noexcept {
  static constexpr std::array<std::string_view, 6> kNames{"tsc",          "tsc_error", "tsc_source",
                                                          "tsc_estimate", "mode",      "flags"};
  // Of calls: mostly, threads are on a CPU for all of a frame.
  static constexpr std::array<std::string_view, 6> kOffCpuNames{
      "untraced", "untraced_error", "switched", "switched_error", "lost", "lost_error"};
  static const auto kMasks = [] {
    std::array<ColumnMask, kTableCount> masks{};
    for (const TableId one :
         {TableId::packets, TableId::branches, TableId::blocks, TableId::instructions, TableId::events}) {
      // Rows in bulk have flags of their own only if they are packets or branches.
      const bool flags = one == TableId::blocks || one == TableId::instructions;
      const auto columns = columns_of(one);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const bool candidate = std::find(kNames.begin(), kNames.end(), columns[i].name) != kNames.end();
        if (candidate && (flags || columns[i].name != "flags"))
          masks[static_cast<std::size_t>(one)] |= ColumnMask{1} << i;
      }
    }
    const auto columns = columns_of(TableId::calls);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (std::find(kOffCpuNames.begin(), kOffCpuNames.end(), columns[i].name) != kOffCpuNames.end())
        masks[static_cast<std::size_t>(TableId::calls)] |= ColumnMask{1} << i;
    }
    return masks;
  }();
  return kMasks[static_cast<std::size_t>(table)];
}

}  // namespace ptkit::tables::columns
