// Quantiles of the lengths of one function's frames, in TSC ticks or instructions: exact for few, within 1 %
// for many.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptkit::calls {

class Quantiles {
 public:
  static constexpr std::size_t kMostExact = std::size_t{1} << 16U;

  void add(std::uint64_t length) {
    max_ = std::max(max_, length);
    ++count_;
    if (buckets_.empty() && values_.size() < kMostExact) return values_.push_back(length);
    if (buckets_.empty()) use_buckets();
    ++buckets_[bucket_of(length)];
  }
  void add_all(const Quantiles& others) {
    if (others.buckets_.empty()) {
      for (const std::uint64_t one : others.values_) add(one);
      return;
    }
    if (buckets_.empty()) use_buckets();
    for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += others.buckets_[i];
    max_ = std::max(max_, others.max_);
    count_ += others.count_;
  }
  [[nodiscard]] bool exact() const noexcept { return buckets_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return (values_.capacity() + buckets_.capacity()) * sizeof(std::uint64_t);
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  // The least value that `percent` percent of all values do not exceed. 0: there are no values.
  [[nodiscard]] std::uint64_t quantile(unsigned percent) {
    if (count_ == 0) return 0;
    constexpr std::uint64_t kWhole = 100;
    // In parts, so that nothing overflows.
    const std::uint64_t rank =
        (count_ / kWhole * percent + (count_ % kWhole * percent + kWhole - 1) / kWhole);
    std::uint64_t left = std::max<std::uint64_t>(rank, 1) - 1;
    if (exact()) {
      const auto at = values_.begin() + static_cast<std::ptrdiff_t>(left);
      std::nth_element(values_.begin(), at, values_.end());
      return *at;
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (left < buckets_[i]) return std::min(middle_of(i), max_);
      left -= buckets_[i];
    }
    return max_;
  }

 private:
  // Values below 2^kBits have buckets of their own; above, each power of two has 2^(kBits - 1).
  static constexpr unsigned kBits = 7;
  static constexpr std::size_t kHalf = std::size_t{1} << (kBits - 1);
  static constexpr std::size_t kBuckets = (64 - kBits + 2) * kHalf;

  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) noexcept {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    if (width <= kBits) return static_cast<std::size_t>(value);
    const unsigned shift = width - kBits;
    return shift * kHalf + static_cast<std::size_t>(value >> shift);
  }
  [[nodiscard]] static std::uint64_t middle_of(std::size_t bucket) noexcept {
    if (bucket < kHalf * 2) return bucket;
    const std::size_t shift = bucket / kHalf - 1;
    const std::uint64_t first = std::uint64_t{bucket - shift * kHalf} << shift;
    return first + ((std::uint64_t{1} << shift) - 1) / 2;
  }
  void use_buckets() {
    buckets_.resize(kBuckets);
    for (const std::uint64_t one : values_) ++buckets_[bucket_of(one)];
    values_.clear();
    values_.shrink_to_fit();
  }

  std::vector<std::uint64_t> values_;   // in any order
  std::vector<std::uint64_t> buckets_;  // empty: the values are kept
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace ptkit::calls
