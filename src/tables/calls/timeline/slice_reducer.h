// Reduces trees of slices to a number of slices. Each pass goes through the nodes once, from callers to what
// they call, without recursion.
//
// A pass keeps one open slice for each depth. The next node of this depth joins it, unless it is under
// another slice, too long together with it, or among the slowest calls of its function. So lists merge first,
// and then the lists of children of what has merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tables/calls/timeline/merge_lengths.h"
#include "tables/calls/timeline/slice_merge.h"

namespace ptkit::tables::calls {

// Roots of a thread, or what an open frame has called.
struct SliceList {
  NodeNumber nodes = kNoNode;
  std::uint32_t thread = 0;
  std::uint32_t depth = 0;  // callers of its nodes
  bool has_tails = false;   // CallKind::TAIL is among its nodes
};

class SliceReducer {
 public:
  using Lists = std::span<SliceList* const>;
  // Both must outlive this.
  SliceReducer(SliceNodes& nodes, SlowestCalls& slowest)
      : nodes_(nodes), slowest_(slowest), rules_({}, slowest) {}

  [[nodiscard]] const MergeRules& rules() const noexcept { return rules_; }
  [[nodiscard]] const MergeLimits& limits() const noexcept { return rules_.limits(); }
  void set(const MergeLimits& limits) noexcept { rules_.set(limits); }
  // Calls that were left out, because they are too deep.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
  void leave_out(std::uint64_t calls) noexcept { left_out_ += calls; }

  // Raises the limits until there are at most `most` slices, but no fewer than about `least`.
  void shrink(Lists lists, std::size_t least, std::size_t most);
  // Reduces to `most` slices, or a few percent less. If that takes it, fewer of the slowest calls stay whole.
  void reduce(Lists lists, std::size_t most);

 private:
  struct Cursor {
    NodeNumber next = kNoNode;
    NodeNumber last = kNoNode;
    NodeNumber* to = nullptr;  // the list that its nodes become a part of
  };
  template <typename Visit>
  void walk(const SliceList& list, const Visit& visit);
  [[nodiscard]] MergeLengths lengths(Lists lists);
  [[nodiscard]] std::size_t count(Lists lists, const MergeRules& rules,
                                  std::vector<std::size_t>* by_depth = nullptr);
  void merge(Lists lists);
  void merge(SliceList& list);
  void raise(const MergeLimits& limits) noexcept;
  [[nodiscard]] bool cut(Lists lists, std::size_t most);

  SliceNodes& nodes_;
  SlowestCalls& slowest_;
  MergeRules rules_;
  std::uint64_t left_out_ = 0;
  std::size_t least_ = 0;  // slices: merging stops there, wherever it is
  std::vector<Cursor> path_;
};

}  // namespace ptkit::tables::calls
