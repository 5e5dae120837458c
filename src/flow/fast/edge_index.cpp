#include "flow/fast/edge_index.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

namespace ptkit::flow {

// Slot of the edge, or the free slot for it.
std::size_t EdgeIndex::find_slot(const EdgeCount& edge) const noexcept {
  std::size_t at = edge.hash & (slots_.size() - 1);
  for (;; at = (at + 1) & (slots_.size() - 1)) {
    const EdgeCount& there = edges_[slots_[at]];
    if (slots_[at] == 0 ||
        (there.from_ip == edge.from_ip && there.to_ip == edge.to_ip && there.kind == edge.kind)) {
      return at;
    }
  }
}

void EdgeIndex::grow() {
  base::ArenaVector<std::uint32_t> old(slots_.size() * 2, slots_.get_allocator());
  old.swap(slots_);
  for (const std::uint32_t number : old) {
    if (number != 0) slots_[find_slot(edges_[number])] = number;
  }
}

std::uint32_t EdgeIndex::number(std::uint64_t from, std::uint64_t to, BranchKind kind, std::uint8_t flags) {
  const bool to_known = (flags & TO_KNOWN) != 0;
  const bool is_indirect = kind == BranchKind::CALL_INDIRECT || kind == BranchKind::JUMP_INDIRECT;
  if ((flags & FROM_KNOWN) == 0 || (!to_known && !is_indirect)) return 0;
  const EdgeCount edge{from, to_known ? to : 0, 0, to_known ? kind : half_edge(kind)};
  const std::size_t at = find_slot(edge);
  if (slots_[at] != 0) return slots_[at];
  const auto number = static_cast<std::uint32_t>(edges_.size());
  edges_.push_back(edge);
  counts_.push_back(0);
  used_.push_back(0);
  slots_[at] = number;
  if (edges_.size() * 2 > slots_.size()) grow();
  return number;
}

// Radix sort of the numbers from `first` on by source address, least significant digit first.
void EdgeIndex::order_by_from(std::span<std::uint32_t> out, std::uint32_t first) const {
  constexpr unsigned kDigit = 11;
  struct Item {
    std::uint64_t from;
    std::uint32_t number;
  };
  base::ArenaVector<Item> items(out.size(), order_.get_allocator());
  base::ArenaVector<Item> others(out.size(), order_.get_allocator());
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i] = {edges_[first + i].from_ip, first + static_cast<std::uint32_t>(i)};
    least = std::min(least, items[i].from);
    most = std::max(most, items[i].from);
  }
  for (unsigned shift = 0; shift < 64 && (most - least) >> shift != 0; shift += kDigit) {
    const auto digit = [&](const Item& item) {
      return static_cast<std::size_t>((item.from - least) >> shift) & ((std::size_t{1} << kDigit) - 1);
    };
    std::array<std::uint32_t, std::size_t{1} << kDigit> offsets{};
    for (const Item& item : items) ++offsets[digit(item)];
    std::exclusive_scan(offsets.begin(), offsets.end(), offsets.begin(), 0U);
    for (const Item& item : items) others[offsets[digit(item)]++] = item;
    items.swap(others);
  }
  std::transform(items.begin(), items.end(), out.begin(), [](const Item& item) { return item.number; });
}

std::span<const EdgeCount> EdgeIndex::take_in_order() {
  const std::size_t known = order_.size();
  if (known + kSpare < edges_.size()) {
    const auto before = [this](std::uint32_t a, std::uint32_t b) {
      const EdgeCount& x = edges_[a];
      const EdgeCount& y = edges_[b];
      return std::tie(x.from_ip, x.to_ip, x.kind) < std::tie(y.from_ip, y.to_ip, y.kind);
    };
    order_.resize(edges_.size() - kSpare);
    const auto middle = order_.begin() + static_cast<std::ptrdiff_t>(known);
    order_by_from(std::span(order_).subspan(known), static_cast<std::uint32_t>(known) + kSpare);
    for (auto first = middle; first != order_.end();) {
      const std::uint64_t from = edges_[*first].from_ip;
      auto end = first + 1;
      while (end != order_.end() && edges_[*end].from_ip == from) ++end;
      if (end - first > 1) std::sort(first, end, before);
      first = end;
    }
    std::inplace_merge(order_.begin(), middle, order_.end(), before);
  }
  taken_.clear();
  for (const std::uint32_t number : order_) {
    if (counts_[number] == 0) continue;
    taken_.push_back(edges_[number]);
    taken_.back().count = std::exchange(counts_[number], 0);
  }
  used_count_ = 0;
  return taken_;
}

std::size_t EdgeIndex::bytes() const noexcept {
  return (slots_.capacity() + order_.capacity() + used_.capacity()) * sizeof(std::uint32_t) +
         counts_.capacity() * sizeof(std::uint64_t) +
         (edges_.capacity() + taken_.capacity()) * sizeof(EdgeCount);
}

}  // namespace ptkit::flow
