// Rows of line tables by RVA. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/source/no_number.h"

namespace ptkit::code::pdb {

// Reaches to the next row.
struct Row {
  std::uint32_t address = 0;                 // RVA
  std::uint32_t file = code::source::kNone;  // number of its path; kNone: code without a line
  std::uint32_t line = 0;                    // 0: code that belongs to no line
};

// The row in sorted rows that has an address; without a file, if none has.
[[nodiscard]] Row row_at(std::span<const Row> rows, std::uint64_t address) noexcept;

// Adds a row after the others; of several rows at an address, the last one counts.
void add_row(std::vector<Row>& rows, const Row& row);
// Adds rows for addresses [begin, end), which are above those of the rows in `rows`.
void add_rows(std::vector<Row>& rows, std::span<const Row> from, std::uint32_t begin, std::uint32_t end);

}  // namespace ptkit::code::pdb
