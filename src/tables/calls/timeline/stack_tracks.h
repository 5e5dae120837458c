// Tracks for the root slices of a thread: those of stacks that take turns overlap. Interval partitioning by
// first fit: a root gets the first track on which nothing is open.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

namespace ptkit::tables::calls {

class StackTracks {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 10U;

  // Roots come by their begin, which may be `error` later. If there are too many tracks, a root gets the one
  // that is free first.
  [[nodiscard]] std::uint32_t track_of(std::uint64_t begin, std::uint64_t error, std::uint64_t end) {
    const std::uint64_t latest = begin + std::min(error, UINT64_MAX - begin);
    while (!open_.empty() && open_.top().first <= latest) {
      free_.insert(open_.top().second);
      open_.pop();
    }
    // The latest begin of a root before this one may have been later.
    auto found = free_.begin();
    while (found != free_.end() && ends_[*found] > latest) ++found;
    std::uint32_t track = 0;
    if (found != free_.end()) {
      track = *found;
      free_.erase(found);
    } else if (ends_.size() < kMost) {
      track = static_cast<std::uint32_t>(ends_.size());
      ends_.push_back(0);
    } else if (!open_.empty()) {
      track = open_.top().second;
      open_.pop();
    } else {
      track = *free_.begin();
      free_.erase(free_.begin());
    }
    ends_[track] = std::max(ends_[track], end);
    open_.emplace(ends_[track], track);
    return track;
  }

 private:
  using Open = std::pair<std::uint64_t, std::uint32_t>;  // end, track

  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  std::set<std::uint32_t> free_;
  std::vector<std::uint64_t> ends_;  // by track
};

}  // namespace ptkit::tables::calls
