// Rules by which calls that are short and next to each other become one slice.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tables/calls/timeline/slice_nodes.h"
#include "tables/calls/timeline/slowest_calls.h"

namespace ptkit::tables::calls {

// Slices that are merged are at most so long. A share of them may be longer, so that each number of slices
// can be had, even if all calls are of one length.
struct MergeLimits {
  static constexpr std::uint32_t kWhole = std::uint32_t{1} << 16U;
  static constexpr std::uint32_t kAnyDepth = UINT32_MAX;

  std::uint64_t length = 0;
  std::uint64_t length_of_share = 0;  // at least `length`
  std::uint32_t share = 0;            // of kWhole
  std::uint32_t depth = kAnyDepth;    // calls with more callers are left out, unless they are kept whole

  // Of slices that begin there. Parents and children that begin together have the same.
  [[nodiscard]] std::uint64_t of(std::uint64_t begin) const noexcept {
    constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
    return begin * kGoldenRatio >> 48U < share ? length_of_share : length;
  }
};

// A slice that the next one of its list may join.
struct OpenSlice {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t limit = 0;
  std::uint64_t calls = 0;
  bool may_grow = false;

  [[nodiscard]] bool takes(const SliceNode& next, bool is_kept) const noexcept {
    return may_grow && !is_kept && next.length() < limit && next.begin >= begin &&
           std::max(end, next.end) - begin <= limit && calls <= UINT32_MAX - std::uint64_t{next.calls};
  }
  void grow(const SliceNode& next) noexcept {
    end = std::max(end, next.end);
    calls += next.calls;
  }
};

class MergeRules {
 public:
  MergeRules(MergeLimits limits, const SlowestCalls& slowest) : limits_(limits), slowest_(slowest) {}

  [[nodiscard]] const MergeLimits& limits() const noexcept { return limits_; }
  void set(const MergeLimits& limits) noexcept { limits_ = limits; }
  // It stays whole, however short it is.
  [[nodiscard]] bool keeps(const SliceNode& node) const noexcept {
    return !node.is_merged() && slowest_.has(node.function, node.length(), node.id);
  }
  [[nodiscard]] OpenSlice open(const SliceNode& node, bool is_kept) const noexcept {
    const std::uint64_t limit = limits_.of(node.begin);
    const bool is_short = node.is_merged() ? node.length() <= limit : node.length() < limit;
    return {node.begin, node.end, limit, node.calls, !is_kept && is_short};
  }

 private:
  MergeLimits limits_;
  const SlowestCalls& slowest_;
};

// Adds a slice that follows within the same list. Its children are not moved.
void merge_into(SliceNode& slice, const SliceNode& next) noexcept;

// Adds a list behind another one of the same parent. Where they meet, and where the children of what meets
// do, slices merge.
void join_lists(SliceNodes& nodes, const MergeRules& rules, NodeNumber& list, NodeNumber more);

}  // namespace ptkit::tables::calls
