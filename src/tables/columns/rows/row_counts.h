// Positions in a stream and in a slice of work, which a sink counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ptkit::tables::columns {

// Counts of a stream before the next row.
struct RowCounts {
  std::uint64_t instructions = 0;
  std::uint64_t order = 0;  // events, errors and gaps
  std::uint64_t branches = 0;
  std::size_t limits = 0;  // that have a mark
};

// A slice of work: some milliseconds of decoding, after which a waiting thread can act.
inline constexpr std::size_t kSlicePackets = 8192;
inline constexpr std::size_t kSliceRows = std::size_t{1} << 18U;

struct Slice {
  std::size_t row_limit = 0;
  std::size_t packet_limit = 0;
  std::size_t packets = 0;

  // Room beside the rows that there are.
  [[nodiscard]] std::size_t room(std::size_t rows) const noexcept {
    return row_limit - std::min(row_limit, rows);
  }
};

}  // namespace ptkit::tables::columns
