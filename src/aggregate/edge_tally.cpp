#include "aggregate/edge_tally.h"

#include <algorithm>
#include <tuple>

namespace ptkit::aggregate {

void EdgeTally::clear() noexcept {
  edges_.clear();
  free_slots();
}

void EdgeTally::free_slots() noexcept {
  indexed_ = 0;
  if (++round_ != 0) return;
  std::fill(slots_.begin(), slots_.end(), Slot{});
  round_ = 1;
}

// The slot of the edge, or the free slot for it.
EdgeTally::Slot& EdgeTally::find(const Edge& edge) noexcept {
  std::uint64_t mixed = edge.from_ip * 0x9e3779b97f4a7c15ULL;
  mixed ^= (edge.to_ip + static_cast<std::uint64_t>(edge.kind) + edge.space) * 0xc2b2ae3d27d4eb4fULL;
  mixed ^= mixed >> 29U;
  for (std::size_t at = static_cast<std::size_t>(mixed);; ++at) {
    Slot& slot = slots_[at & (slots_.size() - 1)];
    if (slot.round != round_) return slot;
    const Edge& there = edges_[slot.number];
    if (there.from_ip == edge.from_ip && there.to_ip == edge.to_ip && there.kind == edge.kind &&
        there.space == edge.space) {
      return slot;
    }
  }
}

// Indexes all edges. Afterwards there is a free slot.
void EdgeTally::index_all() {
  if ((edges_.size() + 1) * 2 > slots_.size()) {
    std::size_t slots = slots_.size();
    while ((edges_.size() + 1) * 2 > slots) slots *= 2;
    slots_.assign(slots, Slot{});
    indexed_ = 0;
  }
  for (; indexed_ < edges_.size(); ++indexed_) {
    find(edges_[indexed_]) = {round_, static_cast<std::uint32_t>(indexed_)};
  }
}

void EdgeTally::add(const Edge& edge) {
  index_all();
  if (const Slot& slot = find(edge); slot.round == round_) {
    edges_[slot.number].count += edge.count;
  } else {
    edges_.push_back(edge);
  }
}

void EdgeTally::add_each(std::span<const flow::EdgeCount> edges, std::uint32_t space) {
  if (!edges_.empty()) index_all();
  const bool look = !edges_.empty();
  edges_.reserve(edges_.size() + edges.size());
  for (const flow::EdgeCount& one : edges) {
    const Edge edge{one.from_ip, one.to_ip, one.count, space, one.kind};
    if (look) {
      if (const Slot& slot = find(edge); slot.round == round_) {
        edges_[slot.number].count += edge.count;
        continue;
      }
    }
    edges_.push_back(edge);
  }
}

void EdgeTally::sort() {
  std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.space, a.from_ip, a.to_ip, a.kind) < std::tie(b.space, b.from_ip, b.to_ip, b.kind);
  });
  free_slots();  // the slots have the numbers from before sorting
}

}  // namespace ptkit::aggregate
