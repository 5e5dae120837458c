// Columns of so many rows in one block of a pool's memory, one behind the other.
#pragma once

#include <array>
#include <memory>

#include "columns/memory_pool.h"
#include "columns/schema.h"

namespace ptkit::columns {

struct PartMemory {
  std::shared_ptr<void> memory;  // null: there is none
  std::array<void*, kMaxColumns> columns{};
  std::size_t rows = 0;
};

// Room for so many rows in every column of `mask`. Without memory: none.
[[nodiscard]] PartMemory take_part(MemoryPool& pool, TableId table, ColumnMask mask, std::size_t rows);

// Bytes that a row takes in these columns.
[[nodiscard]] std::size_t row_bytes(TableId table, ColumnMask mask) noexcept;

}  // namespace ptkit::columns
