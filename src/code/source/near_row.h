// Rows of tables by address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace ptkit::code::source {

// The number of the last row at or before an address; the number of rows: there is none. Rows are sorted by
// their `address`. Sought from row `near` on, which is faster for a near address.
template <typename Row>
[[nodiscard]] std::size_t near_row(std::span<const Row> rows, std::uint64_t address,
                                   std::size_t near) noexcept {
  constexpr int kMostSteps = 8;  // then a search is faster
  const auto reaches = [&](std::size_t row) {
    return row + 1 == rows.size() || rows[row + 1].address > address;
  };
  if (near < rows.size() && rows[near].address <= address) {
    for (int step = 0; step < kMostSteps; ++step, ++near) {
      if (reaches(near)) return near;
    }
  }
  const auto above = std::ranges::upper_bound(rows, address, {}, &Row::address);
  if (above == rows.begin()) return rows.size();
  return static_cast<std::size_t>(std::prev(above) - rows.begin());
}

}  // namespace ptkit::code::source
