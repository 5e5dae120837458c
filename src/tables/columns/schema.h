// The schema as tables: names, cell types, units and validity of every column. All rows come from schema.def.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "flow/rows/rows.h"
#include "packet/packet.h"

namespace ptkit::tables::columns {

// Bits that only columns have. Stored in `flags`.
enum ErrorFlag : std::uint8_t {
#define PT_ERROR_FLAG(name, value) ERROR_##name = value,
#include "tables/columns/kinds.def"
};
enum CallFlag : std::uint16_t {
#define PT_CALL_FLAG(name, value, frame) CALL_##name = value,
#include "tables/columns/kinds.def"
};
enum AnomalyFlag : std::uint8_t {
#define PT_ANOMALY_FLAG(name, value) ANOMALY_##name = value,
#include "tables/columns/kinds.def"
};
enum StackFlag : std::uint16_t {
#define PT_STACK_FLAG(name, value) STACK_##name = value,
#include "tables/columns/kinds.def"
};
enum FunctionFlag : std::uint16_t {
#define PT_FUNCTION_FLAG(name, value) FUNCTION_##name = value,
#include "tables/columns/kinds.def"
};
enum RunFlag : std::uint8_t { CPU_KNOWN = 1, TID_KNOWN = 2 };

enum class TableId : std::uint8_t {
#define PT_TABLE(table) table,
#include "tables/columns/schema.def"
};

// Every stored column of every table.
enum class Column : std::uint16_t {
#define PT_COLUMN(table, name, type, unit, doc) table##_##name,
#include "tables/columns/schema.def"
};

enum class CellType : std::uint8_t { U8, U16, U32, U64, I32, I64 };
using CellTypes =
    std::tuple<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int32_t, std::int64_t>;
template <typename T>
[[nodiscard]] constexpr CellType cell_type() noexcept {
  return []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    static_assert((std::is_same_v<T, std::tuple_element_t<kIndex, CellTypes>> || ...),
                  "a column has one of CellTypes");
    return static_cast<CellType>(
        ((std::is_same_v<T, std::tuple_element_t<kIndex, CellTypes>> ? kIndex : 0) + ...));
  }
  (std::make_index_sequence<std::tuple_size_v<CellTypes>>());
}
[[nodiscard]] constexpr std::size_t cell_size(CellType type) noexcept {
  constexpr std::array<std::uint8_t, 6> kSizes{1, 2, 4, 8, 4, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

enum class RowKind : std::uint8_t {
  TABLE,
  STORED,       // a column that the decoder fills
  RUN,          // a column that is stored as runs
  DERIVED,      // a bool column from bits of `flags`
  RUN_DERIVED,  // a bool column from bits of a run's flags
  VALID,        // the stored column `name` is valid where the column `derived` is true
  ON_DEMAND,    // the stored column `name` is only computed if it is selected by name
};

// A row of schema.def.
struct SchemaRow {
  RowKind kind;
  TableId table;
  std::string_view name;
  CellType type = CellType::U8;
  std::uint16_t mask = 0;
  std::string_view unit{};  // "address", "TSC ticks", "bytes", the name of an enumeration, or empty
  std::string_view doc{};
  std::string_view derived{};
};

inline constexpr auto kSchema = std::to_array<SchemaRow>({
#define PT_TABLE(table) {RowKind::TABLE, TableId::table, #table},
#define PT_COLUMN(table, name, type, unit, doc) \
  {RowKind::STORED, TableId::table, #name, cell_type<type>(), 0, unit, doc},
#define PT_RUN(table, name, type, unit, doc) \
  {RowKind::RUN, TableId::table, #name, cell_type<type>(), 0, unit, doc},
#define PT_DERIVED(table, name, mask, doc) \
  {RowKind::DERIVED, TableId::table, #name, CellType::U8, mask, "", doc},
#define PT_RUN_DERIVED(table, name, mask, doc) \
  {RowKind::RUN_DERIVED, TableId::table, #name, CellType::U8, mask, "", doc},
#define PT_VALID(table, column, derived) \
  {RowKind::VALID, TableId::table, #column, CellType::U8, 0, "", "", #derived},
#define PT_ON_DEMAND(table, column) {RowKind::ON_DEMAND, TableId::table, #column},
#include "tables/columns/schema.def"
});

namespace detail {
[[nodiscard]] constexpr std::size_t count_rows(RowKind kind) noexcept {
  std::size_t count = 0;
  for (const SchemaRow& row : kSchema) count += row.kind == kind ? 1 : 0;
  return count;
}
}  // namespace detail

// The rows of one kind, in the order of schema.def.
template <RowKind Kind>
inline constexpr auto kRowsOf = [] {
  std::array<SchemaRow, detail::count_rows(Kind)> rows{};
  std::size_t next = 0;
  for (const SchemaRow& row : kSchema) {
    if (row.kind == Kind) rows[next++] = row;
  }
  return rows;
}();

inline constexpr std::size_t kTableCount = kRowsOf<RowKind::TABLE>.size();

namespace detail {
// By table: the index of its first row of one kind; then the number of all.
template <RowKind Kind>
inline constexpr auto kFirstOf = [] {
  std::array<std::uint16_t, kTableCount + 1> first{};
  for (const SchemaRow& row : kRowsOf<Kind>) ++first[static_cast<std::size_t>(row.table) + 1];
  for (std::size_t table = 0; table < kTableCount; ++table) first[table + 1] += first[table];
  return first;
}();
}  // namespace detail

// The rows of one kind of a table.
template <RowKind Kind>
[[nodiscard]] constexpr std::span<const SchemaRow> rows_of(TableId table) noexcept {
  static_assert(std::ranges::is_sorted(kRowsOf<Kind>, {}, &SchemaRow::table),
                "rows of schema.def are in the order of their tables");
  const std::uint16_t* const first = &detail::kFirstOf<Kind>[static_cast<std::size_t>(table)];
  return {kRowsOf<Kind>.data() + first[0], kRowsOf<Kind>.data() + first[1]};
}
// Stored columns in order.
[[nodiscard]] constexpr std::span<const SchemaRow> columns_of(TableId table) noexcept {
  return rows_of<RowKind::STORED>(table);
}
[[nodiscard]] constexpr std::string_view table_name(TableId table) noexcept {
  return kRowsOf<RowKind::TABLE>[static_cast<std::size_t>(table)].name;
}

// The most stored columns of a table.
inline constexpr std::size_t kMaxColumns = [] {
  std::size_t most = 0;
  for (std::size_t table = 0; table < kTableCount; ++table)
    most = std::max(most, columns_of(static_cast<TableId>(table)).size());
  return most;
}();

[[nodiscard]] constexpr TableId table_of(Column column) noexcept {
  return kRowsOf<RowKind::STORED>[static_cast<std::size_t>(column)].table;
}
// Index of a column within its table: its bit in column masks.
[[nodiscard]] constexpr std::size_t index_of(Column column) noexcept {
  return static_cast<std::size_t>(column) -
         detail::kFirstOf<RowKind::STORED>[static_cast<std::size_t>(table_of(column))];
}

template <Column C>
using Cell =
    std::tuple_element_t<static_cast<std::size_t>(kRowsOf<RowKind::STORED>[static_cast<std::size_t>(C)].type),
                         CellTypes>;

// The core counts without a sign: what is put into a cell of a count has its unsigned type.
template <Column C>
using CellValue = std::conditional_t<std::is_same_v<Cell<C>, std::int64_t>, std::uint64_t, Cell<C>>;

using ColumnMask = std::uint64_t;
inline constexpr ColumnMask kAllColumns = ~ColumnMask{0};
[[nodiscard]] ColumnMask usual_columns(TableId table) noexcept;  // all columns but those on demand
// Columns that have the same value in all rows of many tables: times and flags of a stream without times, and
// the mode.
[[nodiscard]] ColumnMask uniform_candidates(TableId table) noexcept;

}  // namespace ptkit::tables::columns
