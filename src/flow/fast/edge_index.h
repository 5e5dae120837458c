// Hash table from edges to numbers. Counts are kept by number.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/arena.h"
#include "flow/rows/bulk.h"

namespace ptkit::flow {

// Numbers below kSpare mean no edge: a branch with an unknown source has number 0, and so has one with an
// unknown target, but for indirect calls and jumps (kHalfEdge).
class EdgeIndex {
 public:
  static constexpr std::uint32_t kSpare = 4;

  explicit EdgeIndex(base::Arena& arena)
      : slots_(kFirstSlots, arena),
        edges_(kSpare, arena),
        counts_(kSpare, 1, arena),  // spare numbers are never counted for the first time
        order_(arena),
        used_(kSpare + 1, arena),
        taken_(arena) {}

  [[nodiscard]] std::uint32_t number(std::uint64_t from, std::uint64_t to, BranchKind kind,
                                     std::uint8_t flags);
  void count(std::uint32_t number, std::uint64_t times) noexcept {
    used_count_ += count_at(counts_.data(), used_.data() + used_count_, number, times);
  }
  // Adds `times` to the counts of a list that fill_up() has filled. Branches on first counts and on the
  // length of the list would be mispredicted.
  void count_each(std::span<const std::uint32_t> list, std::uint64_t times) noexcept {
    std::uint64_t* const counts = counts_.data();
    std::uint32_t* used = used_.data() + used_count_;
    for (std::size_t i = 0; i < list.size(); i += kSpare) {
      for (std::size_t j = 0; j < kSpare; ++j) used += count_at(counts, used, list[i + j], times);
    }
    used_count_ = static_cast<std::size_t>(used - used_.data());
  }
  // Fills the last group of four of a list with spare numbers. They differ, because counts of one number wait
  // for each other.
  static void fill_up(base::ArenaVector<std::uint32_t>& list, std::size_t begin) {
    while ((list.size() - begin) % kSpare != 0)
      list.push_back(static_cast<std::uint32_t>((list.size() - begin) % kSpare));
  }
  // Returns all counted edges, sorted by from, to and kind, and resets their counts. Valid until the next
  // call.
  [[nodiscard]] std::span<const EdgeCount> take_in_order();
  // Returns the counted edges. Valid until the next count; each edge has to be taken.
  [[nodiscard]] EdgeCounts take() noexcept {
    return {std::span(used_).first(std::exchange(used_count_, 0)), edges_.data(), counts_.data()};
  }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  // Returns 1 for a first count: its number is then at `used`.
  static std::size_t count_at(std::uint64_t* counts, std::uint32_t* used, std::uint32_t number,
                              std::uint64_t times) noexcept {
    const std::uint64_t before = counts[number];
    *used = number;
    counts[number] = before + times;
    return before == 0 ? 1 : 0;
  }
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two

  [[nodiscard]] std::size_t find_slot(const EdgeCount& edge) const noexcept;
  void grow();
  void order_by_from(std::span<std::uint32_t> out, std::uint32_t first) const;

  base::ArenaVector<std::uint32_t> slots_;  // numbers; 0: free
  base::ArenaVector<EdgeCount> edges_;      // without counts
  base::ArenaVector<std::uint64_t> counts_;
  base::ArenaVector<std::uint32_t> order_;  // numbers of the first edges, sorted
  base::ArenaVector<std::uint32_t> used_;   // numbers with a count, and one more element
  std::size_t used_count_ = 0;
  base::ArenaVector<EdgeCount> taken_;
};

}  // namespace ptkit::flow
