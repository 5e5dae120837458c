#include "tables/columns/edge_tally.h"

#include <algorithm>

namespace ptkit::tables::columns {

void EdgeTally::clear() noexcept {
  edges_.clear();
  branches_ = 0;
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
  for (std::size_t at = first_index(edge.hash, edge.space);; ++at) {
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
    std::size_t slots = std::max(slots_.size(), kFirstSlots);
    while ((edges_.size() + 1) * 2 > slots) slots *= 2;
    slots_.assign(slots, Slot{});
    indexed_ = 0;
  }
  for (; indexed_ < edges_.size(); ++indexed_) {
    find(edges_[indexed_]) = {round_, static_cast<std::uint32_t>(indexed_)};
  }
}

// Adds the count to the equal edge that is indexed. False: there is none.
bool EdgeTally::merge(const Edge& edge) noexcept {
  const Slot& slot = find(edge);
  if (slot.round != round_) return false;
  edges_[slot.number].count += edge.count;
  return true;
}

void EdgeTally::add(const Edge& edge) {
  index_all();
  branches_ += edge.count;
  if (!merge(edge)) edges_.push_back(edge);
}

void EdgeTally::add_each(const flow::EdgeCounts& edges, std::uint32_t space) {
  if (edges.size() == 0) return;
  const bool look = !edges_.empty();
  if (look) index_all();
  edges_.reserve(edges_.size() + edges.size());
  edges.take_each([this, look, space](const flow::EdgeCount& one, std::uint64_t count) {
    if (flow::is_half_edge(one.kind)) return;
    branches_ += count;
    // Few edges are indexed as a rule, so that the first slot is free.
    if (look && slots_[first_index(one.hash, space) & (slots_.size() - 1)].round == round_ &&
        merge({one.from_ip, one.to_ip, count, space, one.kind, one.hash}))
      return;
    // Not a copy: reading what was just written in other sizes waits for memory.
    Edge& edge = edges_.emplace_back();
    edge.from_ip = one.from_ip;
    edge.to_ip = one.to_ip;
    edge.count = count;
    edge.space = space;
    edge.kind = one.kind;
    edge.hash = one.hash;
  });
}

void EdgeTally::sort() {
  std::sort(edges_.begin(), edges_.end(), is_before);
  free_slots();  // the slots have the numbers from before sorting
}

}  // namespace ptkit::tables::columns
