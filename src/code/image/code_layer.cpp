#include "code/image/code_layer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

namespace ptkit::code::image {
namespace {

using trace::CodeRegion;

constexpr std::uint64_t kLastAddress = std::numeric_limits<std::uint64_t>::max();

std::uint64_t last_of(const CodeRegion& region) noexcept {
  const std::uint64_t length = size_of(region) - 1;
  return length > kLastAddress - region.address ? kLastAddress : region.address + length;
}

bool is_usable(const CodeRegion& region) noexcept {
  return size_of(region) != 0 && region.tsc_from < region.tsc_to;
}

void sort_and_deduplicate(std::vector<std::uint64_t>& some) {
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
}

}  // namespace

std::uint64_t size_of(const CodeRegion& region) noexcept {
  return region.size != 0 ? region.size : region.bytes.size();
}

CodeLayer::CodeLayer(const std::vector<CodeRegion>& code, const std::vector<std::int32_t>& regions,
                     const std::vector<std::uint64_t>& times)
    : code_(&code) {
  boundaries_.insert(boundaries_.end(), times.begin(), times.end());
  for (const std::int32_t number : regions) {
    const CodeRegion& region = code[static_cast<std::size_t>(number)];
    if (!is_usable(region)) continue;
    extents_.push_back({region.address, last_of(region), number});
    boundaries_.push_back(region.tsc_from);
    if (region.tsc_to != trace::kTscMax) boundaries_.push_back(region.tsc_to);
  }
  sort_and_deduplicate(boundaries_);
  std::sort(extents_.begin(), extents_.end(),
            [](const Extent& a, const Extent& b) { return a.first < b.first; });
  make_intervals();
  make_max_tree();
}

void CodeLayer::make_intervals() {
  std::vector<std::uint64_t> edges;
  edges.reserve(extents_.size() * 2);
  for (const Extent& extent : extents_) {
    edges.push_back(extent.first);
    if (extent.last != kLastAddress) edges.push_back(extent.last + 1);
  }
  sort_and_deduplicate(edges);
  intervals_.reserve(edges.size());
  for (const std::uint64_t edge : edges) intervals_.emplace_back(edge);
}

void CodeLayer::make_max_tree() {
  leaves_ = std::bit_ceil(extents_.size());
  max_last_.assign(leaves_ * 2, 0);
  for (std::size_t i = 0; i < extents_.size(); ++i) max_last_[leaves_ + i] = extents_[i].last;
  for (std::size_t node = leaves_ - 1; node > 0; --node)
    max_last_[node] = std::max(max_last_[node * 2], max_last_[node * 2 + 1]);
}

// Finds the regions that contain `address` among the extents [begin, end) below a tree node. Only extents
// with a number below `before` begin at or before the address.
void CodeLayer::find(std::size_t node, std::size_t begin, std::size_t end, std::size_t before,
                     std::uint64_t address, std::vector<std::int32_t>& out) const {
  if (begin >= before || max_last_[node] < address) return;
  if (node >= leaves_) {
    out.push_back(extents_[begin].region);
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  find(node * 2, begin, middle, before, address, out);
  find(node * 2 + 1, middle, end, before, address, out);
}

// Sweeps over the times at which a region begins or ends. The top of the heap is the visible region.
std::unique_ptr<const CodeLayer::History> CodeLayer::history_of(std::uint64_t address) const {
  std::vector<std::int32_t> regions;
  const auto after = std::upper_bound(extents_.begin(), extents_.end(), address,
                                      [](std::uint64_t at, const Extent& one) { return at < one.first; });
  find(1, 0, leaves_, static_cast<std::size_t>(after - extents_.begin()), address, regions);
  const auto region = [this](std::int32_t number) -> const CodeRegion& {
    return (*code_)[static_cast<std::size_t>(number)];
  };
  std::sort(regions.begin(), regions.end(),
            [&](std::int32_t a, std::int32_t b) { return region(a).tsc_from < region(b).tsc_from; });
  auto history = std::make_unique<History>();
  std::priority_queue<std::int32_t> open;
  std::uint64_t at = trace::kTscMin;
  for (std::size_t next = 0;;) {
    while (next < regions.size() && region(regions[next]).tsc_from <= at) open.push(regions[next++]);
    const auto is_over = [&](std::int32_t one) {
      return region(one).tsc_to <= at && region(one).tsc_to != trace::kTscMax;
    };
    while (!open.empty() && is_over(open.top())) open.pop();
    const std::int32_t visible = open.empty() ? -1 : open.top();
    if (history->empty() || history->back().region != visible) history->push_back({at, visible});
    const std::uint64_t end = visible < 0 ? trace::kTscMax : region(visible).tsc_to;
    at = next < regions.size() ? std::min(end, region(regions[next]).tsc_from) : end;
    if (at == trace::kTscMax) return history;
  }
}

std::size_t CodeLayer::boundary_at(std::uint64_t tsc) const noexcept {
  const auto above = std::upper_bound(boundaries_.begin(), boundaries_.end(), tsc);
  return static_cast<std::size_t>(above - boundaries_.begin()) - 1;
}

std::int32_t CodeLayer::visible_in(const Interval& interval, std::uint64_t tsc) const {
  const History* history = interval.history.load(std::memory_order_acquire);
  if (history == nullptr) {
    std::unique_ptr<const History> computed = history_of(interval.first);
    // Another thread may have stored its result first.
    if (interval.history.compare_exchange_strong(history, computed.get(), std::memory_order_acq_rel)) {
      history = computed.release();
    }
  }
  const auto above =
      std::upper_bound(history->begin(), history->end(), tsc,
                       [](std::uint64_t at, const Visibility& visibility) { return at < visibility.from; });
  return std::prev(above)->region;
}

VisibleRegion CodeLayer::at(std::uint64_t address, std::uint64_t tsc) const {
  auto next =
      std::upper_bound(intervals_.begin(), intervals_.end(), address,
                       [](std::uint64_t at, const Interval& interval) { return at < interval.first; });
  VisibleRegion visible;
  if (next != intervals_.begin()) visible.region = visible_in(*std::prev(next), tsc);
  for (int joined = 0; next != intervals_.end() && joined < kMaxJoined; ++next, ++joined) {
    if (next->first - address >= kMaxJoinedBytes || visible_in(*next, tsc) != visible.region) break;
  }
  visible.last = next == intervals_.end() ? kLastAddress : next->first - 1;
  return visible;
}

}  // namespace ptkit::code::image
