#include "code/source/pdb/rows.h"

#include <algorithm>
#include <iterator>

#include "code/source/near_row.h"

namespace ptkit::code::pdb {

Row row_at(std::span<const Row> rows, std::uint64_t address) noexcept {
  const std::size_t found = code::source::near_row(rows, address, rows.size());
  return found == rows.size() ? Row{} : rows[found];
}

void add_row(std::vector<Row>& rows, const Row& row) {
  if (!rows.empty() && rows.back().address == row.address) rows.pop_back();
  if (rows.empty() || rows.back().file != row.file || rows.back().line != row.line) rows.push_back(row);
}

void add_rows(std::vector<Row>& rows, std::span<const Row> from, std::uint32_t begin, std::uint32_t end) {
  if (begin >= end) return;
  const Row first = row_at(from, begin);
  add_row(rows, {begin, first.file, first.line});
  auto next = std::ranges::upper_bound(from, begin, {}, &Row::address);
  for (; next != from.end() && next->address < end; ++next) add_row(rows, *next);
  add_row(rows, {end, code::source::kNone, 0});
}

}  // namespace ptkit::code::pdb
