// The columns of a number of rows in one block of a pool, one after the other.
#pragma once

#include <array>
#include <memory>

#include "tables/columns/memory/memory_pool.h"
#include "tables/columns/schema.h"

namespace ptkit::tables::columns {

struct PartMemory {
  std::shared_ptr<void> memory;  // null: out of memory
  std::array<void*, kMaxColumns> columns{};
  std::size_t rows = 0;
  // Columns that have one value in all rows, which is not in `columns`.
  ColumnMask uniform = 0;
  std::array<std::uint64_t, kMaxColumns> values{};
};

// Takes room for `rows` rows in every column of `mask`. `memory` is null if the pool has none.
[[nodiscard]] PartMemory take_part(MemoryPool& pool, TableId table, ColumnMask mask, std::size_t rows);

// Bytes of a row in these columns.
[[nodiscard]] std::size_t row_bytes(TableId table, ColumnMask mask) noexcept;

}  // namespace ptkit::tables::columns
