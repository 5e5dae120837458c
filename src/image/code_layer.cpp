#include "image/code_layer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

namespace ptkit::image {
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

void sort_and_unite(std::vector<std::uint64_t>& some) {
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
}

}  // namespace

std::uint64_t size_of(const CodeRegion& region) noexcept {
  return region.size != 0 ? region.size : region.bytes.size();
}

CodeLayer::CodeLayer(const std::vector<CodeRegion>& code, const std::vector<std::int32_t>& regions)
    : code_(&code) {
  for (const std::int32_t number : regions) {
    const CodeRegion& region = code[static_cast<std::size_t>(number)];
    if (!is_usable(region)) continue;
    extents_.push_back({region.address, last_of(region), number});
    boundaries_.push_back(region.tsc_from);
    if (region.tsc_to != trace::kTscMax) boundaries_.push_back(region.tsc_to);
  }
  sort_and_unite(boundaries_);
  std::sort(extents_.begin(), extents_.end(),
            [](const Extent& a, const Extent& b) { return a.first < b.first; });
  make_cells();
  make_reach();
}

void CodeLayer::make_cells() {
  std::vector<std::uint64_t> edges;
  edges.reserve(extents_.size() * 2);
  for (const Extent& extent : extents_) {
    edges.push_back(extent.first);
    if (extent.last != kLastAddress) edges.push_back(extent.last + 1);
  }
  sort_and_unite(edges);
  cells_.reserve(edges.size());
  for (const std::uint64_t edge : edges) cells_.emplace_back(edge);
}

void CodeLayer::make_reach() {
  leaves_ = std::bit_ceil(extents_.size());
  reach_.assign(leaves_ * 2, 0);
  for (std::size_t i = 0; i < extents_.size(); ++i) reach_[leaves_ + i] = extents_[i].last;
  for (std::size_t node = leaves_ - 1; node > 0; --node)
    reach_[node] = std::max(reach_[node * 2], reach_[node * 2 + 1]);
}

// The regions of extents [begin, end), those below a node, that begin before number `before` and reach to the
// address.
void CodeLayer::find(std::size_t node, std::size_t begin, std::size_t end, std::size_t before,
                     std::uint64_t address, std::vector<std::int32_t>& out) const {
  if (begin >= before || reach_[node] < address) return;
  if (node >= leaves_) {
    out.push_back(extents_[begin].region);
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  find(node * 2, begin, middle, before, address, out);
  find(node * 2 + 1, middle, end, before, address, out);
}

// Sweeps over the times at which a region comes or goes. On top of the heap is the one that is seen.
std::unique_ptr<const CodeLayer::History> CodeLayer::history_of(std::uint64_t address) const {
  std::vector<std::int32_t> regions;
  const auto behind = std::upper_bound(extents_.begin(), extents_.end(), address,
                                       [](std::uint64_t at, const Extent& one) { return at < one.first; });
  find(1, 0, leaves_, static_cast<std::size_t>(behind - extents_.begin()), address, regions);
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
    const std::int32_t seen = open.empty() ? -1 : open.top();
    if (history->empty() || history->back().region != seen) history->push_back({at, seen});
    const std::uint64_t end = seen < 0 ? trace::kTscMax : region(seen).tsc_to;
    at = next < regions.size() ? std::min(end, region(regions[next]).tsc_from) : end;
    if (at == trace::kTscMax) return history;
  }
}

std::size_t CodeLayer::boundary_at(std::uint64_t tsc) const noexcept {
  const auto above = std::upper_bound(boundaries_.begin(), boundaries_.end(), tsc);
  return static_cast<std::size_t>(above - boundaries_.begin()) - 1;
}

std::int32_t CodeLayer::seen_in(const Cell& cell, std::uint64_t tsc) const {
  const History* history = cell.history.load(std::memory_order_acquire);
  if (history == nullptr) {
    std::unique_ptr<const History> made = history_of(cell.first);
    // Another thread may have been first.
    if (cell.history.compare_exchange_strong(history, made.get(), std::memory_order_acq_rel)) {
      history = made.release();
    }
  }
  const auto above = std::upper_bound(history->begin(), history->end(), tsc,
                                      [](std::uint64_t at, const Stay& stay) { return at < stay.from; });
  return std::prev(above)->region;
}

CodeSpot CodeLayer::at(std::uint64_t address, std::uint64_t tsc) const {
  auto next = std::upper_bound(cells_.begin(), cells_.end(), address,
                               [](std::uint64_t at, const Cell& cell) { return at < cell.first; });
  CodeSpot spot;
  if (next != cells_.begin()) spot.region = seen_in(*std::prev(next), tsc);
  for (int joined = 0; next != cells_.end() && joined < kMostJoined; ++next, ++joined) {
    if (next->first - address >= kFarEnough || seen_in(*next, tsc) != spot.region) break;
  }
  spot.last = next == cells_.end() ? kLastAddress : next->first - 1;
  return spot;
}

}  // namespace ptkit::image
