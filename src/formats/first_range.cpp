#include "formats/first_range.h"

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

std::vector<std::size_t> first_ranges(std::span<const Range> ranges, std::span<const std::uint64_t> values) {
  std::vector<std::size_t> found(values.size(), kNoRange);
  const auto begins = order_of(ranges.size(), [&](std::size_t i) { return ranges[i].begin; });
  auto next = begins.begin();
  // Ranges that have begun, the first one on top. Those that have ended are no longer needed: values grow.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> open;
  for (const std::size_t place : order_of(values.size(), [&](std::size_t i) { return values[i]; })) {
    const std::uint64_t value = values[place];
    for (; next != begins.end() && ranges[*next].begin <= value; ++next) open.push(*next);
    while (!open.empty() && value - ranges[open.top()].begin >= ranges[open.top()].size) open.pop();
    if (!open.empty()) found[place] = open.top();
  }
  return found;
}

}  // namespace ptkit::formats
