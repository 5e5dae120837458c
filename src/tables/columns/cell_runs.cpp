#include "tables/columns/cell_runs.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ptkit::tables::columns {

bool CellRuns::reserve(std::size_t extra) noexcept {
  return memory_.reserve((end_ + extra) * sizeof(CellRun), end_ * sizeof(CellRun));
}

std::size_t CellRuns::rows() const noexcept {
  return end_ == first_ ? 0 : static_cast<std::size_t>(cells()[end_ - 1].row_end - dropped_);
}

bool CellRuns::add(std::uint64_t value, std::size_t row_end) noexcept {
  CellRun* const last = end_ == first_ ? nullptr : cells() + end_ - 1;
  if (last != nullptr && last->value == value) {
    last->row_end = dropped_ + row_end;
    return true;
  }
  if (!reserve(1)) return false;
  cells()[end_++] = {value, dropped_ + row_end};
  return true;
}

bool CellRuns::add(std::span<const flow::SpanRun> spans) noexcept {
  if (!reserve(spans.size())) return false;
  std::uint64_t row = dropped_ + rows();
  CellRun* next = cells() + end_;
  for (const flow::SpanRun& span : spans) {
    const std::uint64_t end = dropped_ + span.row_end;
    *next = {time::TimeQuery{span.since, span.offset}.packet(), end};
    next += end != row ? 1 : 0;  // many spans have no rows
    row = end;
  }
  end_ = static_cast<std::size_t>(next - cells());
  return true;
}

// The runs of the rows from `row` on; the first may begin before it.
std::span<const CellRun> CellRuns::from(std::uint64_t row) const noexcept {
  const auto all = runs();
  const auto found =
      std::partition_point(all.begin(), all.end(), [row](const CellRun& run) { return run.row_end <= row; });
  return all.subspan(static_cast<std::size_t>(found - all.begin()));
}

bool CellRuns::append(const CellRuns& other, std::size_t first, std::size_t count) noexcept {
  if (count == 0) return true;
  const std::uint64_t begin = other.dropped_ + first;
  const std::uint64_t end = begin + count;
  const auto added = other.from(begin);
  if (!reserve(added.size())) return false;
  const std::uint64_t base = dropped_ + rows();
  for (const CellRun& run : added) {
    const std::uint64_t until = std::min(run.row_end, end);
    cells()[end_++] = {run.value, base + (until - begin)};
    if (until == end) break;
  }
  return true;
}

void CellRuns::drop_front(std::size_t rows) noexcept {
  dropped_ += rows;
  first_ = end_ - from(dropped_).size();
  if (first_ == end_) clear();
}

void CellRuns::clear() noexcept {
  first_ = end_ = 0;
  dropped_ = 0;
}

void CellRuns::shrink() noexcept {
  if (first_ != 0) std::memmove(cells(), cells() + first_, bytes());
  end_ -= first_;
  first_ = 0;
  memory_.shrink_to(bytes());
}

void CellRuns::write_wide(std::size_t first, std::size_t count, std::uint64_t* cells) const noexcept {
  if (count == 0) return;
  std::uint64_t row = dropped_ + first;
  const std::uint64_t end = row + count;
  for (const CellRun& run : from(row)) {
    const std::uint64_t until = std::min(run.row_end, end);
    std::array<std::uint64_t, kSlack> wide;
    wide.fill(run.value);
    std::uint64_t* next = cells;
    cells += until - row;
    // Most runs are short: the next run overwrites the excess.
    do {
      std::memcpy(next, wide.data(), sizeof wide);
      next += kSlack;
    } while (next < cells);
    row = until;
    if (row == end) return;
  }
}

void CellRuns::write(std::size_t first, std::size_t count, std::uint64_t* cells) const noexcept {
  const std::size_t wide = count - std::min(count, kSlack);
  write_wide(first, wide, cells);
  std::array<std::uint64_t, kSlack * 2> rest;
  write_wide(first + wide, count - wide, rest.data());
  std::copy_n(rest.data(), count - wide, cells + wide);
}

}  // namespace ptkit::tables::columns
