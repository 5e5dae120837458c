// The schema as tables: names, cell types, units and validity of every column. All rows come from schema.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "flow/rows/rows.h"
#include "packet/packet.h"

namespace ptkit::tables::columns {

// Bits that only columns have. Stored in `flags`: append only.
enum PacketColumnFlag : std::uint8_t { PACKET_TIME_KNOWN = 128 };
enum ErrorFlag : std::uint8_t { ERROR_IP_KNOWN = 1, ERROR_FILE_KNOWN = 2, ERROR_TIME_KNOWN = 64 };
enum CallFlag : std::uint16_t {
  CALL_EXACT = 1,
  CALL_PARENT = 2,
  CALL_ENTRY = 4,
  CALL_CALL = 8,
  CALL_RETURN = 16,
  CALL_CONTINUES = 32,
  CALL_RECURSIVE = 64,
  CALL_IN_TX = 128,
  CALL_BEGIN_SEEN = 256,
  CALL_TIME_KNOWN = 512,
  CALL_END_TIME_KNOWN = 1024,
  CALL_UNDECIDED = 2048,
  CALL_IMPORT = 4096,
  CALL_BEGINS_BEFORE = 8192,
  CALL_ENDS_AFTER = 16384,
};
enum AnomalyFlag : std::uint8_t {
  ANOMALY_FROM_KNOWN = 1,
  ANOMALY_FRAME_KNOWN = 2,
  ANOMALY_EXPECTED_KNOWN = 4,
  ANOMALY_NO_CALL_BEFORE = 8,
  ANOMALY_TIME_KNOWN = 64,
};
enum MomentFlag : std::uint16_t {
  MOMENT_IP_KNOWN = 1,
  MOMENT_FRAME_KNOWN = 2,
  MOMENT_ENTRY_KNOWN = 4,
  MOMENT_INNERMOST = 8,
  MOMENT_SYSCALL = 16,
  MOMENT_INTERRUPT = 32,
  MOMENT_TIME_KNOWN = 64,
  MOMENT_COVERED = 128,
  MOMENT_IMPORT = 256,
};
enum FunctionFlag : std::uint16_t {
  FUNCTION_ENTRY_KNOWN = 1,
  FUNCTION_FILE_KNOWN = 2,
  FUNCTION_EXACT = 4,
  FUNCTION_PARENT_KNOWN = 8,
  FUNCTION_SYSCALL = 16,
  FUNCTION_INTERRUPT = 32,
  FUNCTION_TIME_KNOWN = 64,
  FUNCTION_INLINED = 128,
  FUNCTION_COUNT_EXACT = 256,
  FUNCTION_IMPORT = 512,
};
enum RunFlag : std::uint8_t { CPU_KNOWN = 1, TID_KNOWN = 2 };

enum class TableId : std::uint8_t {
#define PT_TABLE(table) table,
#define PT_COLUMN(table, name, type, unit, doc)
#define PT_RUN(table, name, type, unit, doc)
#define PT_DERIVED(table, name, mask, doc)
#define PT_RUN_DERIVED(table, name, mask, doc)
#define PT_VALID(table, column, derived)
#define PT_ON_DEMAND(table, column)
#include "tables/columns/schema.def"
#undef PT_TABLE
#undef PT_COLUMN
};

// Every stored column of every table.
enum class Column : std::uint16_t {
#define PT_TABLE(table)
#define PT_COLUMN(table, name, type, unit, doc) table##_##name,
#include "tables/columns/schema.def"
#undef PT_COLUMN
  COUNT_,
};

// The cell type of a stored column.
template <Column C>
struct CellOf;
#define PT_COLUMN(table, name, type_, unit, doc) \
  template <>                                    \
  struct CellOf<Column::table##_##name> {        \
    using type = type_;                          \
  };
#include "tables/columns/schema.def"
#undef PT_TABLE
#undef PT_COLUMN
#undef PT_RUN
#undef PT_DERIVED
#undef PT_RUN_DERIVED
#undef PT_VALID
#undef PT_ON_DEMAND
template <Column C>
using Cell = typename CellOf<C>::type;

// The core counts without a sign: what is put into a cell of a count has its unsigned type.
template <Column C>
using CellValue = std::conditional_t<std::is_same_v<Cell<C>, std::int64_t>, std::uint64_t, Cell<C>>;

enum class CellType : std::uint8_t { U8, U16, U32, U64, I32, I64 };
template <typename T>
[[nodiscard]] constexpr CellType cell_type() noexcept {
  if constexpr (std::is_same_v<T, std::uint8_t>) return CellType::U8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return CellType::U16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return CellType::U32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return CellType::U64;
  if constexpr (std::is_same_v<T, std::int32_t>) return CellType::I32;
  if constexpr (std::is_same_v<T, std::int64_t>) return CellType::I64;
}
[[nodiscard]] constexpr std::size_t cell_size(CellType type) noexcept {
  constexpr std::array<std::uint8_t, 6> kSizes{1, 2, 4, 8, 4, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

struct ColumnInfo {
  TableId table;
  std::string_view name;
  CellType type;
  std::string_view unit;  // "address", "TSC ticks", "bytes", the name of an enumeration, or empty
  std::string_view doc;
};

// A bool column from bits of `flags` (or of a run's flags).
struct DerivedInfo {
  TableId table;
  std::string_view name;
  std::uint16_t mask;
  std::string_view doc;
};

struct ValidInfo {
  TableId table;
  std::string_view column;
  std::string_view derived;
};

// A stored column that is only computed if it is selected by name.
struct OnDemandInfo {
  TableId table;
  std::string_view column;
};

inline constexpr std::size_t kTableCount = 14;
inline constexpr std::size_t kMaxColumns = 30;  // limit for the stored columns of a table

[[nodiscard]] std::string_view table_name(TableId table) noexcept;
[[nodiscard]] std::span<const ColumnInfo> columns_of(TableId table) noexcept;  // stored columns in order
[[nodiscard]] std::span<const ColumnInfo> runs_of(TableId table) noexcept;  // columns that are stored as runs
[[nodiscard]] std::span<const DerivedInfo> derived_of(TableId table) noexcept;
[[nodiscard]] std::span<const DerivedInfo> run_derived_of(TableId table) noexcept;
[[nodiscard]] std::span<const ValidInfo> validity_of(TableId table) noexcept;
[[nodiscard]] std::span<const OnDemandInfo> on_demand_of(TableId table) noexcept;

namespace detail {
// The global index of a table's first stored column.
constexpr std::array<std::uint16_t, kTableCount> first_columns() {
  std::array<std::uint16_t, kTableCount> first{};
  std::uint16_t next = 0;
#define PT_TABLE(table) first[static_cast<std::size_t>(TableId::table)] = next;
#define PT_COLUMN(table, name, type, unit, doc) ++next;
#define PT_RUN(table, name, type, unit, doc)
#define PT_DERIVED(table, name, mask, doc)
#define PT_RUN_DERIVED(table, name, mask, doc)
#define PT_VALID(table, column, derived)
#define PT_ON_DEMAND(table, column)
#include "tables/columns/schema.def"
#undef PT_TABLE
#undef PT_COLUMN
#undef PT_RUN
#undef PT_DERIVED
#undef PT_RUN_DERIVED
#undef PT_VALID
#undef PT_ON_DEMAND
  return first;
}
inline constexpr std::array<std::uint16_t, kTableCount> kFirstColumns = first_columns();
}  // namespace detail

[[nodiscard]] constexpr TableId table_of(Column column) noexcept {
  std::size_t table = 0;
  while (table + 1 < kTableCount && detail::kFirstColumns[table + 1] <= static_cast<std::uint16_t>(column)) {
    ++table;
  }
  return static_cast<TableId>(table);
}

// Index of a column within its table: its bit in column masks.
[[nodiscard]] constexpr std::size_t index_of(Column column) noexcept {
  return static_cast<std::size_t>(column) - detail::kFirstColumns[static_cast<std::size_t>(table_of(column))];
}

using ColumnMask = std::uint64_t;
inline constexpr ColumnMask kAllColumns = ~ColumnMask{0};
[[nodiscard]] ColumnMask usual_columns(TableId table) noexcept;  // all columns but those on demand
// Columns that have the same value in all rows of many tables: times and flags of a stream without times, and
// the mode.
[[nodiscard]] ColumnMask uniform_candidates(TableId table) noexcept;

}  // namespace ptkit::tables::columns
