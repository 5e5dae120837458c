// The edges of a graph: each has a number, and counts are of numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/bulk.h"

namespace ptkit::flow {

// Number 0 is no edge: a branch of which one end is not known.
class EdgeIndex {
 public:
  EdgeIndex() : slots_(kFirstSlots), edges_(1) {}

  [[nodiscard]] std::uint32_t number(std::uint64_t from, std::uint64_t to, BranchKind kind,
                                     std::uint8_t flags);
  void count(std::uint32_t number, std::uint64_t times) {
    if (edges_[number].count == 0) used_.push_back(number);
    edges_[number].count += times;
  }
  // All edges that were counted, ordered by from, to and kind. Counts are 0 afterwards. Valid until the next
  // call.
  [[nodiscard]] const std::vector<EdgeCount>& take();
  // The same in the order in which they were first counted: looks at no others.
  [[nodiscard]] const std::vector<EdgeCount>& take_unordered();
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two

  [[nodiscard]] std::size_t place(const EdgeCount& edge) const noexcept;
  void grow();

  std::vector<std::uint32_t> slots_;  // numbers; 0: free
  std::vector<EdgeCount> edges_;
  std::vector<std::uint32_t> order_;  // numbers of the first edges, sorted
  std::vector<std::uint32_t> used_;   // numbers of edges whose count is not 0
  std::vector<EdgeCount> taken_;
};

}  // namespace ptkit::flow
