#include "time/point_estimate.h"

#include <algorithm>
#include <optional>

namespace ptkit::time {
namespace {

[[nodiscard]] bool is_cycles(const History& points, std::size_t index) noexcept {
  return (points.info(index).flags & History::CYCLES) != 0;
}

[[nodiscard]] std::uint64_t middle(const History& points, std::size_t index) noexcept {
  const std::uint64_t low = points.low(index);
  const std::uint64_t high = points.high(index);
  return high == kUnknown || high < low ? low : low + (high - low) / 2;
}

[[nodiscard]] double ticks(std::uint64_t from, std::uint64_t to) noexcept {
  return to < from ? 0 : static_cast<double>(to - from);
}

// The nearest TSC or MTC packet on either side.
[[nodiscard]] std::optional<std::size_t> tsc_mtc_before(const History& points, std::size_t index) noexcept {
  while (index-- > 0) {
    if (!is_cycles(points, index)) return index;
  }
  return std::nullopt;
}
[[nodiscard]] std::optional<std::size_t> tsc_mtc_after(const History& points, std::size_t index) noexcept {
  while (++index < points.size()) {
    if (!is_cycles(points, index)) return index;
  }
  return std::nullopt;
}

// Ticks for which the clock stopped between two successive TSC or MTC packets.
[[nodiscard]] double stopped(const History& points, std::size_t begin, std::size_t end) noexcept {
  if (end == begin + 1) return ticks(middle(points, begin), middle(points, end));  // no cycles in between
  const std::uint64_t high = points.high(begin + 1);
  return high == kUnknown ? 0 : ticks(points.low(begin + 1), high);
}

}  // namespace

std::uint64_t estimate_time(const History& points, std::size_t index, double mtc_ticks) noexcept {
  constexpr std::uint64_t kLittle = 8;  // ticks
  const std::uint64_t high = points.high(index);
  const std::uint64_t low = points.low(index);
  if (high == kUnknown || high <= low + kLittle || !is_cycles(points, index)) return middle(points, index);
  const auto begin = tsc_mtc_before(points, index);
  const auto end = tsc_mtc_after(points, index);
  if (!begin || !end) return middle(points, index);
  const bool until_tsc = points.info(*end).rank == Rank::TSC;
  if (until_tsc && mtc_ticks > 0 && ticks(low, high) > mtc_ticks) return low;
  const auto before = tsc_mtc_before(points, *begin);
  const auto after = tsc_mtc_after(points, *end);
  const double earlier = before ? stopped(points, *before, *begin) : 0;
  const double later = after ? stopped(points, *end, *after) : 0;
  const double much = ticks(middle(points, *begin), middle(points, *end)) / 16;
  if (later > much && later > earlier) return low;
  if (earlier > much && earlier > later) return high;
  return middle(points, index);
}

}  // namespace ptkit::time
