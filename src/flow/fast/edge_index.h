// Hash table from edges to numbers. Counts are kept by number.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "flow/rows/bulk.h"

namespace ptkit::flow {

// Number 0 means no edge: a branch with an unknown source or target.
class EdgeIndex {
 public:
  explicit EdgeIndex(base::Arena& arena)
      : slots_(kFirstSlots, arena), edges_(1, arena), order_(arena), used_(arena), taken_(arena) {}

  [[nodiscard]] std::uint32_t number(std::uint64_t from, std::uint64_t to, BranchKind kind,
                                     std::uint8_t flags);
  void count(std::uint32_t number, std::uint64_t times) {
    if (edges_[number].count == 0) used_.push_back(number);
    edges_[number].count += times;
  }
  // Returns all counted edges, sorted by from, to and kind, and resets their counts. Valid until the next
  // call.
  [[nodiscard]] std::span<const EdgeCount> take();
  // As take(), in the order of the first counts. Visits counted edges only.
  [[nodiscard]] std::span<const EdgeCount> take_unordered();
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two

  [[nodiscard]] std::size_t find_slot(const EdgeCount& edge) const noexcept;
  void grow();
  void order_by_from(std::span<std::uint32_t> out, std::uint32_t first) const;

  base::ArenaVector<std::uint32_t> slots_;  // numbers; 0: free
  base::ArenaVector<EdgeCount> edges_;
  base::ArenaVector<std::uint32_t> order_;  // numbers of the first edges, sorted
  base::ArenaVector<std::uint32_t> used_;   // numbers of edges with a count
  base::ArenaVector<EdgeCount> taken_;
};

}  // namespace ptkit::flow
