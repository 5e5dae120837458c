// The edges of a graph: each has a number, and counts are of numbers.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "flow/bulk.h"

namespace ptkit::flow {

// Number 0 is no edge: a branch of which one end is not known.
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
  // All edges that were counted, ordered by from, to and kind. Counts are 0 afterwards. Valid until the next
  // call.
  [[nodiscard]] std::span<const EdgeCount> take();
  // The same in the order in which they were first counted: looks at no others.
  [[nodiscard]] std::span<const EdgeCount> take_unordered();
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two

  [[nodiscard]] std::size_t place(const EdgeCount& edge) const noexcept;
  void grow();
  void order_by_from(std::span<std::uint32_t> out, std::uint32_t first) const;

  base::ArenaVector<std::uint32_t> slots_;  // numbers; 0: free
  base::ArenaVector<EdgeCount> edges_;
  base::ArenaVector<std::uint32_t> order_;  // numbers of the first edges, sorted
  base::ArenaVector<std::uint32_t> used_;   // numbers of edges whose count is not 0
  base::ArenaVector<EdgeCount> taken_;
};

}  // namespace ptkit::flow
