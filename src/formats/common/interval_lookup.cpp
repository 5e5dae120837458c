#include "formats/common/interval_lookup.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace ptkit::formats {

namespace {

template <typename Key>
std::vector<std::size_t> order_of(std::size_t count, const Key& key) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, key);
  return order;
}

}  // namespace

std::vector<std::size_t> lookup_intervals(std::span<const Interval> intervals,
                                          std::span<const std::uint64_t> values) {
  std::vector<std::size_t> found(values.size(), kNoInterval);
  const auto begins = order_of(intervals.size(), [&](std::size_t i) { return intervals[i].begin; });
  auto next = begins.begin();
  // Heap of intervals that have begun, by index. Values grow, so that ended intervals can be dropped.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> open;
  for (const std::size_t place : order_of(values.size(), [&](std::size_t i) { return values[i]; })) {
    const std::uint64_t value = values[place];
    for (; next != begins.end() && intervals[*next].begin <= value; ++next) open.push(*next);
    while (!open.empty() && value - intervals[open.top()].begin >= intervals[open.top()].size) open.pop();
    if (!open.empty()) found[place] = open.top();
  }
  return found;
}

}  // namespace ptkit::formats
