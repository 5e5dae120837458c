// Quantiles of the lengths of one function's frames, in TSC ticks or instructions: exact for few frames and
// for few different lengths, else within 1 %.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ptkit::calls {

class Quantiles {
 public:
  // Exact up to so many values, and beyond that while no more of them differ.
  static constexpr std::size_t kMostExact = std::size_t{1} << 16U;
  static constexpr std::size_t kMostDifferent = std::size_t{1} << 14U;

  void add(std::uint64_t length) {
    max_ = std::max(max_, length);
    ++count_;
    if (!buckets_.empty()) {
      ++buckets_[bucket_of(length)];
      return;
    }
    recent_.push_back(length);
    if (recent_.size() >= std::max(kLeastRecent, counted_.size())) count_recent();
  }
  void add_all(const Quantiles& others) {
    if (count_ == 0) {
      *this = others;
      return;
    }
    if (others.buckets_.empty()) {
      for (const std::uint64_t one : others.recent_) add(one);
      add_counted(others.counted_);
      return;
    }
    if (buckets_.empty()) use_buckets();
    for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += others.buckets_[i];
    max_ = std::max(max_, others.max_);
    count_ += others.count_;
  }
  [[nodiscard]] bool exact() {
    count_recent();
    return buckets_.empty();
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return counted_.capacity() * sizeof(Counted) +
           (recent_.capacity() + buckets_.capacity()) * sizeof(std::uint64_t);
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
      for (const Counted& one : counted_) {
        if (left < one.times) return one.value;
        left -= one.times;
      }
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
  struct Counted {
    std::uint64_t value = 0;
    std::uint64_t times = 0;
  };
  static constexpr std::size_t kLeastRecent = 64;

  void count_recent() {
    if (recent_.empty()) return;
    std::ranges::sort(recent_);
    std::vector<Counted> counted;
    counted.reserve(recent_.size());
    for (const std::uint64_t value : recent_) {
      if (counted.empty() || counted.back().value != value) counted.push_back({value, 0});
      ++counted.back().times;
    }
    recent_.clear();
    merge(std::move(counted));
  }
  void add_counted(const std::vector<Counted>& others) {
    if (others.empty()) return;
    max_ = std::max(max_, others.back().value);
    for (const Counted& one : others) count_ += one.times;
    if (buckets_.empty()) {
      merge(others);
    } else {
      add_to_buckets(others);
    }
  }
  void merge(std::vector<Counted> others) {
    // Most are there already.
    auto at = counted_.begin();
    std::erase_if(others, [&](const Counted& one) {
      while (at != counted_.end() && at->value < one.value) ++at;
      if (at == counted_.end() || at->value != one.value) return false;
      at->times += one.times;
      return true;
    });
    // The others come to their places from the last one on.
    auto from = static_cast<std::ptrdiff_t>(counted_.size());
    counted_.resize(counted_.size() + others.size());
    auto to = counted_.end();
    while (!others.empty()) {
      while (from != 0 && counted_.begin()[from - 1].value > others.back().value)
        *--to = counted_.begin()[--from];
      *--to = others.back();
      others.pop_back();
    }
    if (counted_.size() > kMostDifferent && count_ > kMostExact) use_buckets();
  }
  void use_buckets() {
    buckets_.resize(kBuckets);
    add_to_buckets(counted_);
    for (const std::uint64_t value : recent_) ++buckets_[bucket_of(value)];
    counted_ = {};
    recent_ = {};
  }
  void add_to_buckets(const std::vector<Counted>& others) {
    for (const Counted& one : others) buckets_[bucket_of(one.value)] += one.times;
  }

  std::vector<Counted> counted_;        // ascending, without what is in `recent_`
  std::vector<std::uint64_t> recent_;   // in any order
  std::vector<std::uint64_t> buckets_;  // empty: the values are kept
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace ptkit::calls
