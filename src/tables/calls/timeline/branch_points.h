// Branches of a thread by position: a point in each bin. Where there are too many, bins become twice as wide.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "tables/calls/timeline/call_timeline.h"

namespace ptkit::tables::calls {

class BranchPoints {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 11U;

  // Positions come in any order. `branches`: of the thread before it.
  void add(std::uint64_t position, std::uint64_t branches, std::size_t most = kMost) {
    const std::uint64_t bin = position >> shift_;
    auto at = points_.end();
    if (!points_.empty() && bin <= bin_of(points_.back())) {
      at = std::ranges::lower_bound(points_, bin, {},
                                    [this](const BranchCount& point) { return bin_of(point); });
      if (at != points_.end() && bin_of(*at) == bin) {
        // The last position of the bin counts.
        if (position >= at->position) *at = {position, std::max(branches, at->branches)};
        return;
      }
    }
    points_.insert(at, {position, branches});
    while (points_.size() > most) widen();
  }
  void clear() noexcept { points_.clear(); }
  [[nodiscard]] const std::vector<BranchCount>& points() const noexcept { return points_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return points_.capacity() * sizeof(BranchCount); }

  // Points of one thread, of which each part has counts of its own.
  [[nodiscard]] static BranchPoints joined(std::span<const BranchPoints* const> parts) {
    struct Step {
      std::uint64_t position = 0;
      std::uint64_t branches = 0;  // since the point before it
    };
    std::vector<Step> steps;
    for (const BranchPoints* const part : parts) {
      std::uint64_t before = 0;
      for (const BranchCount& point : part->points_) {
        steps.push_back({point.position, point.branches - std::min(before, point.branches)});
        before = std::max(before, point.branches);
      }
    }
    std::ranges::stable_sort(steps, {}, &Step::position);
    BranchPoints all;
    std::uint64_t sum = 0;
    for (const Step& step : steps) all.add(step.position, sum += step.branches);
    return all;
  }

 private:
  [[nodiscard]] std::uint64_t bin_of(const BranchCount& point) const noexcept {
    return point.position >> shift_;
  }
  void widen() {
    ++shift_;
    std::size_t last = 0;
    for (std::size_t i = 1; i < points_.size(); ++i) {
      if (bin_of(points_[i]) != bin_of(points_[last])) ++last;
      points_[last] = points_[i];
    }
    points_.resize(last + 1);
  }

  std::vector<BranchCount> points_;  // ascending
  unsigned shift_ = 0;               // bins have 2^shift_ positions
};

}  // namespace ptkit::tables::calls
