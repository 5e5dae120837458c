// Rules by which calls that are short and next to each other become one slice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "tables/calls/timeline/slice_nodes.h"
#include "tables/calls/timeline/slowest_calls.h"

namespace ptkit::tables::calls {

// No limit is above it.
inline constexpr std::uint64_t kNever = UINT64_MAX;

// Spreads shares of slices evenly over positions, or over numbers of calls.
[[nodiscard]] constexpr std::uint32_t hash_of(std::uint64_t number) noexcept {
  constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  return static_cast<std::uint32_t>(number * kGoldenRatio >> 32U);
}

// Slices that merge are shorter together than a limit. A share of them may be longer, so that each number of
// slices can be had, even if all calls are of one length. Higher limits are greater.
struct MergeLimits {
  std::uint64_t length_of_share = 0;  // at least `length`
  std::uint64_t length = 0;
  std::uint64_t share = 0;  // of all values of hash_of(): those below

  // Of slices that begin there. Parents and children that begin together have the same.
  [[nodiscard]] std::uint64_t of(std::uint64_t begin) const noexcept {
    return hash_of(begin) < share ? length_of_share : length;
  }
  bool operator==(const MergeLimits&) const = default;
  [[nodiscard]] bool operator<(const MergeLimits& other) const noexcept {
    return std::tie(length_of_share, length, share) <
           std::tie(other.length_of_share, other.length, other.share);
  }
};

class MergeRules {
 public:
  explicit MergeRules(const SlowestCalls& slowest) : slowest_(slowest) {}

  [[nodiscard]] const MergeLimits& limits() const noexcept { return limits_; }
  // Limits never fall: slices would be merged that later ones beside them are not.
  void raise(const MergeLimits& limits) noexcept { limits_ = std::max(limits_, limits); }
  // It stays whole, however short it is.
  [[nodiscard]] bool keeps(const SliceNode& node) const noexcept {
    return !node.is_merged() && slowest_.has(node.function, node.length(), node.id);
  }
  // How long a slice would be together with the next one of its list; kNever if they must not merge.
  [[nodiscard]] std::uint64_t length_with(const SliceNode& slice, const SliceNode& next) const noexcept {
    const bool fits = next.begin >= slice.begin && slice.calls <= UINT32_MAX - next.calls;
    return !fits || keeps(slice) || keeps(next) ? kNever : span(slice, next);
  }
  [[nodiscard]] bool join(const SliceNode& slice, const SliceNode& next) const noexcept {
    const std::uint64_t limit = limits_.of(slice.begin);
    return limit != 0 && span(slice, next) < limit && length_with(slice, next) < limit;
  }

 private:
  [[nodiscard]] static std::uint64_t span(const SliceNode& slice, const SliceNode& next) noexcept {
    return std::max(slice.end, next.end) - slice.begin;
  }

  MergeLimits limits_;
  const SlowestCalls& slowest_;
};

// Adds a slice that follows within the same list. Its children are not moved.
void merge_into(SliceNode& slice, const SliceNode& next) noexcept;

// Adds a list behind another one of the same parent. Where they meet, and where the children of what meets
// do, slices merge.
void join_lists(SliceNodes& nodes, const MergeRules& rules, NodeNumber& list, NodeNumber more);

}  // namespace ptkit::tables::calls
