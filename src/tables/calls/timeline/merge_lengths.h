// Lengths of slices that would become one with the slice before them: a histogram with buckets of 3 %.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tables/calls/sums/log_buckets.h"
#include "tables/calls/timeline/slice_merge.h"

namespace ptkit::tables::calls {

class MergeLengths {
 public:
  void add(std::uint64_t length) noexcept {
    ++counts_[Buckets::bucket_of(length)];
    ++total_;
  }
  // How many slices may become a part of another one.
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  // Limits by which so many slices at most become a part of another one. Beyond total(): limits that rise to
  // twice the longest length in kSteps steps, and so on, as several slices become one.
  [[nodiscard]] MergeLimits limits_for(std::uint64_t slices) const noexcept {
    MergeLimits limits;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < Buckets::kCount; ++i) {
      if (counts_[i] == 0) continue;
      limits.length_of_share = Buckets::last_of(i);
      if (sum + counts_[i] > slices) {
        limits.share = static_cast<std::uint32_t>((slices - sum) * MergeLimits::kWhole / counts_[i]);
        return limits;
      }
      sum += counts_[i];
      limits.length = limits.length_of_share;
    }
    const std::uint64_t steps = std::min(slices - sum, most() - total_);
    limits.length = twice(limits.length, steps / kSteps);
    limits.length_of_share = twice(limits.length, 1);
    limits.share = static_cast<std::uint32_t>(steps % kSteps * (MergeLimits::kWhole / kSteps));
    return limits;
  }
  // Limits for more slices are no higher.
  [[nodiscard]] std::uint64_t most() const noexcept { return total_ + 64 * kSteps; }

 private:
  static constexpr std::uint64_t kSteps = 32;
  [[nodiscard]] static std::uint64_t twice(std::uint64_t length, std::uint64_t times) noexcept {
    for (; times > 0; --times)
      length = length > UINT64_MAX / 2 ? UINT64_MAX : std::max<std::uint64_t>(2 * length, 1);
    return length;
  }
  using Buckets = LogBuckets<6>;

  std::array<std::uint64_t, Buckets::kCount> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace ptkit::tables::calls
