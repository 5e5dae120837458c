// Reduces trees of slices to a number of slices.
//
// Each slice and the next one of its list are a pair that has a length. The shortest pairs become one slice
// each, and their children one list, until there are few enough. If all are merged before, those with most
// callers are left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tables/calls/timeline/slice_merge.h"

namespace ptkit::tables::calls {

// Roots of a thread, or what an open frame has called.
struct SliceList {
  NodeNumber nodes = kNoNode;
  std::uint32_t thread = 0;
  std::uint32_t depth = 0;  // callers of its nodes
  bool has_tails = false;   // CallKind::TAIL is among its nodes
};

// Calls with too many callers are left out, unless they are kept whole.
struct DepthLimit {
  static constexpr std::uint32_t kAny = UINT32_MAX;

  std::uint32_t depth = kAny;
  std::uint64_t share = 0;  // of those of this depth: these are left out, too; of all values of hash_of()

  [[nodiscard]] bool leaves_out(std::size_t of, std::uint64_t id) const noexcept {
    return of > depth || (of == depth && hash_of(id) < share);
  }
  // No call with so many callers, or fewer, is left out.
  [[nodiscard]] std::uint32_t whole() const noexcept { return share == 0 ? depth : depth - 1; }
  // The lower one leaves out more.
  [[nodiscard]] bool operator<(const DepthLimit& other) const noexcept {
    return depth != other.depth ? depth < other.depth : share > other.share;
  }
};

class SliceReducer {
 public:
  using Lists = std::span<SliceList* const>;
  using GoOn = std::function<bool()>;  // called repeatedly; false: stop
  // Both must outlive this.
  SliceReducer(SliceNodes& nodes, SlowestCalls& slowest)
      : nodes_(nodes), slowest_(slowest), rules_(slowest) {}

  [[nodiscard]] const MergeRules& rules() const noexcept { return rules_; }
  [[nodiscard]] const DepthLimit& deepest() const noexcept { return deepest_; }
  // Calls that were left out, because they are too deep.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
  void leave_out(std::uint64_t calls, const DepthLimit& limit) noexcept {
    left_out_ += calls;
    deepest_ = std::min(deepest_, limit);
  }

  // Reduces to `most` slices, or to one for each list that has no caller. If that takes it, fewer of the
  // slowest calls stay whole. False: it was stopped before; slices are fewer, and nest as before.
  [[nodiscard]] bool reduce(Lists lists, std::size_t most, const GoOn& go_on = {});

 private:
  class Merge;
  struct Cursor {
    NodeNumber next = kNoNode;
    NodeNumber last = kNoNode;
    NodeNumber* to = nullptr;  // the list that its nodes become a part of
  };
  template <typename Visit>
  void walk(Lists lists, const Visit& visit);
  [[nodiscard]] bool goes_on();
  [[nodiscard]] std::size_t count(Lists lists, const SlowestCalls& slowest, std::uint32_t deepest);
  void keep_fewer(Lists lists, std::size_t most);
  [[nodiscard]] DepthLimit depth_for(Lists lists, std::size_t most);
  void cut(SliceList& list, const DepthLimit& limit);

  SliceNodes& nodes_;
  SlowestCalls& slowest_;
  MergeRules rules_;
  DepthLimit deepest_;
  std::uint64_t left_out_ = 0;
  std::vector<Cursor> path_;
  const GoOn* go_on_ = nullptr;
  std::size_t steps_ = 0;
  bool is_stopped_ = false;
};

}  // namespace ptkit::tables::calls
