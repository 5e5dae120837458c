#include "tables/columns/schema.h"

#include <algorithm>
#include <array>

namespace ptkit::tables::columns {
namespace {

#define PT_TABLE(table)
#define PT_COLUMN(table, name, type, unit, doc)
#define PT_RUN(table, name, type, unit, doc)
#define PT_DERIVED(table, name, mask, doc)
#define PT_RUN_DERIVED(table, name, mask, doc)
#define PT_VALID(table, column, derived)
#define PT_ON_DEMAND(table, column)

#undef PT_TABLE
#define PT_TABLE(table) #table,
constexpr std::array<std::string_view, kTableCount> kTableNames{
#include "tables/columns/schema.def"
};
#undef PT_TABLE
#define PT_TABLE(table)

#undef PT_COLUMN
#define PT_COLUMN(table, name, type, unit, doc) \
  ColumnInfo{TableId::table, #name, cell_type<type>(), unit, doc},
constexpr ColumnInfo kColumns[] = {
#include "tables/columns/schema.def"
};
#undef PT_COLUMN
#define PT_COLUMN(table, name, type, unit, doc)

#undef PT_RUN
#define PT_RUN(table, name, type, unit, doc) ColumnInfo{TableId::table, #name, cell_type<type>(), unit, doc},
constexpr ColumnInfo kRuns[] = {
#include "tables/columns/schema.def"
};
#undef PT_RUN
#define PT_RUN(table, name, type, unit, doc)

#undef PT_DERIVED
#define PT_DERIVED(table, name, mask, doc) DerivedInfo{TableId::table, #name, mask, doc},
constexpr DerivedInfo kDerived[] = {
#include "tables/columns/schema.def"
};
#undef PT_DERIVED
#define PT_DERIVED(table, name, mask, doc)

#undef PT_RUN_DERIVED
#define PT_RUN_DERIVED(table, name, mask, doc) DerivedInfo{TableId::table, #name, mask, doc},
constexpr DerivedInfo kRunDerived[] = {
#include "tables/columns/schema.def"
};
#undef PT_RUN_DERIVED
#define PT_RUN_DERIVED(table, name, mask, doc)

#undef PT_VALID
#define PT_VALID(table, column, derived) ValidInfo{TableId::table, #column, #derived},
constexpr ValidInfo kValidity[] = {
#include "tables/columns/schema.def"
};
#undef PT_VALID
#define PT_VALID(table, column, derived)

#undef PT_ON_DEMAND
#define PT_ON_DEMAND(table, column) OnDemandInfo{TableId::table, #column},
constexpr OnDemandInfo kOnDemand[] = {
#include "tables/columns/schema.def"
};

// The rows of one table are contiguous in schema.def.
template <typename Info, std::size_t N>
constexpr std::span<const Info> part(const Info (&rows)[N], TableId table) noexcept {
  std::size_t first = 0;
  while (first < N && rows[first].table != table) ++first;
  std::size_t last = first;
  while (last < N && rows[last].table == table) ++last;
  return {rows + first, last - first};
}

// Batches ask for their columns often.
constexpr auto kColumnsOf = [] {
  std::array<std::span<const ColumnInfo>, kTableCount> parts;
  for (std::size_t table = 0; table < kTableCount; ++table)
    parts[table] = part(kColumns, static_cast<TableId>(table));
  return parts;
}();
static_assert(std::all_of(kColumnsOf.begin(), kColumnsOf.end(),
                          [](const auto& columns) { return columns.size() <= kMaxColumns; }),
              "raise kMaxColumns");

}  // namespace

std::string_view table_name(TableId table) noexcept { return kTableNames[static_cast<std::size_t>(table)]; }
std::span<const ColumnInfo> columns_of(TableId table) noexcept {
  return kColumnsOf[static_cast<std::size_t>(table)];
}
std::span<const ColumnInfo> runs_of(TableId table) noexcept { return part(kRuns, table); }
std::span<const DerivedInfo> derived_of(TableId table) noexcept { return part(kDerived, table); }
std::span<const DerivedInfo> run_derived_of(TableId table) noexcept { return part(kRunDerived, table); }
std::span<const ValidInfo> validity_of(TableId table) noexcept { return part(kValidity, table); }
std::span<const OnDemandInfo> on_demand_of(TableId table) noexcept { return part(kOnDemand, table); }

ColumnMask usual_columns(TableId table) noexcept {
  const auto columns = columns_of(table);
  ColumnMask mask = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    bool on_demand = false;
    for (const OnDemandInfo& one : on_demand_of(table)) on_demand |= one.column == columns[i].name;
    if (!on_demand) mask |= ColumnMask{1} << i;
  }
  return mask;
}

ColumnMask uniform_candidates(TableId table) noexcept {
  static constexpr std::array<std::string_view, 6> kNames{"tsc",          "tsc_error", "tsc_source",
                                                          "tsc_estimate", "mode",      "flags"};
  // Of calls: mostly, no thread is away.
  static constexpr std::array<std::string_view, 6> kAwayNames{
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
      if (std::find(kAwayNames.begin(), kAwayNames.end(), columns[i].name) != kAwayNames.end())
        masks[static_cast<std::size_t>(TableId::calls)] |= ColumnMask{1} << i;
    }
    return masks;
  }();
  return kMasks[static_cast<std::size_t>(table)];
}

}  // namespace ptkit::tables::columns
