// Quantiles of the lengths of one function's frames, in TSC ticks or instructions: exact for few frames and
// for few different lengths, else within 1 %.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tables/calls/sums/log_buckets.h"

namespace ptkit::tables::calls {

class Quantiles {
 public:
  // Exact up to so many values, and beyond that while no more of them differ.
  static constexpr std::size_t kMostExact = std::size_t{1} << 16U;
  static constexpr std::size_t kMostDifferent = std::size_t{1} << 14U;

  void add(std::uint64_t length) {
    max_ = std::max(max_, length);
    ++count_;
    put({length, 1});
  }
  void add_all(const Quantiles& others) {
    if (count_ == 0) {
      *this = others;
      return;
    }
    max_ = std::max(max_, others.max_);
    count_ += others.count_;
    if (!others.buckets_.empty() && buckets_.empty()) use_buckets();
    for (std::size_t i = 0; i < others.buckets_.size(); ++i) buckets_[i] += others.buckets_[i];
    // They come in the order of their slots, which all are at the begin of a table with fewer slots.
    if (buckets_.empty()) make_slots(std::max(slots_of(different_), slots_of(others.different_)));
    for (std::size_t i = 0; i < others.small_.size(); ++i) {
      if (others.small_[i] != 0) put({i, others.small_[i]});
    }
    for (const Counted& one : others.counted_) {
      if (one.times != 0) put(one);
    }
  }
  [[nodiscard]] bool exact() const noexcept { return buckets_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return counted_.capacity() * sizeof(Counted) +
           (small_.capacity() + buckets_.capacity()) * sizeof(std::uint64_t);
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  // Calls `visit` with how often each value came; values that share a bucket count as one.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const std::uint64_t times : small_) {
      if (times != 0) visit(times);
    }
    for (const Counted& one : counted_) {
      if (one.times != 0) visit(one.times);
    }
    for (const std::uint64_t times : buckets_) {
      if (times != 0) visit(times);
    }
  }
  // The least value that `percent` percent of all values do not exceed. 0: there are no values.
  [[nodiscard]] std::uint64_t quantile(unsigned percent) {
    if (count_ == 0) return 0;
    constexpr std::uint64_t kWhole = 100;
    // In parts, so that nothing overflows.
    const std::uint64_t rank =
        (count_ / kWhole * percent + (count_ % kWhole * percent + kWhole - 1) / kWhole);
    std::uint64_t left = std::max<std::uint64_t>(rank, 1) - 1;
    for (std::size_t i = 0; i < small_.size(); ++i) {
      if (left < small_[i]) return i;
      left -= small_[i];
    }
    sort();
    for (const Counted& one : counted_) {
      if (left < one.times) return one.value;
      left -= one.times;
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (left < buckets_[i]) return std::min(middle_of(i), max_);
      left -= buckets_[i];
    }
    return max_;
  }

 private:
  using Buckets = LogBuckets<7>;

  [[nodiscard]] static std::uint64_t middle_of(std::size_t bucket) noexcept {
    const std::uint64_t first = Buckets::first_of(bucket);
    return first + (Buckets::last_of(bucket) - first) / 2;
  }
  struct Counted {
    std::uint64_t value = 0;
    std::uint64_t times = 0;  // 0: the slot is free
  };
  static constexpr std::size_t kLeastSlots = 4;
  // Values below have counts of their own once half as many values differ.
  static constexpr std::size_t kSmall = 64;

  // Of which about a third is free.
  [[nodiscard]] static std::size_t least_slots(std::size_t different) noexcept {
    return different + different / 2;
  }
  [[nodiscard]] static std::size_t slots_of(std::size_t different) noexcept {
    return std::max(kLeastSlots, std::bit_ceil(least_slots(different)));
  }
  // The slot of a value, or the free one where it belongs.
  [[nodiscard]] Counted& slot_of(std::uint64_t value) noexcept {
    constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
    const std::size_t last = counted_.size() - 1;
    std::size_t at = static_cast<std::size_t>(value * kGoldenRatio >> std::countl_zero(last)) & last;
    while (counted_[at].times != 0 && counted_[at].value != value) at = (at + 1) & last;
    return counted_[at];
  }
  void make_slots(std::size_t slots) {
    if (!is_sorted_ && slots <= counted_.size()) return;
    std::vector<Counted> old(slots);
    std::swap(old, counted_);
    is_sorted_ = false;
    for (const Counted& one : old) {
      if (one.times != 0) slot_of(one.value) = one;
    }
  }
  // `count_` has it already.
  void put(const Counted& one) {
    if (!buckets_.empty()) {
      buckets_[Buckets::bucket_of(one.value)] += one.times;
      return;
    }
    if (one.value < small_.size()) {
      if (small_[one.value] == 0) ++different_;
      small_[one.value] += one.times;
    } else {
      put_slot(one);
    }
    if (different_ > kMostDifferent && count_ > kMostExact) [[unlikely]]
      use_buckets();
  }
  void put_slot(const Counted& one) {
    if (is_sorted_ || counted_.size() < least_slots(different_ + 1)) make_slots(slots_of(different_ + 1));
    Counted& slot = slot_of(one.value);
    if (slot.times == 0) {
      slot.value = one.value;
      ++different_;
    }
    slot.times += one.times;
    if (different_ == kSmall / 2 && small_.empty()) use_small();
  }
  void sort() {
    if (is_sorted_) return;
    std::erase_if(counted_, [](const Counted& one) { return one.times == 0; });
    std::ranges::sort(counted_, {}, &Counted::value);
    is_sorted_ = true;
  }
  void use_small() {
    small_.resize(kSmall);
    std::vector<Counted> old(counted_.size());
    std::swap(old, counted_);
    for (const Counted& one : old) {
      if (one.times == 0) continue;
      if (one.value < kSmall) {
        small_[one.value] = one.times;
      } else {
        slot_of(one.value) = one;
      }
    }
  }
  void use_buckets() {
    buckets_.resize(Buckets::kCount);
    for (std::size_t i = 0; i < small_.size(); ++i) buckets_[Buckets::bucket_of(i)] += small_[i];
    small_ = {};
    for (const Counted& one : counted_) buckets_[Buckets::bucket_of(one.value)] += one.times;
    counted_ = {};
  }

  std::vector<Counted> counted_;        // by hash of the value, or ascending without free slots
  std::vector<std::uint64_t> small_;    // counts by value; empty: such values are in `counted_`
  std::vector<std::uint64_t> buckets_;  // empty: the values are counted
  std::size_t different_ = 0;           // values in `counted_`
  bool is_sorted_ = false;              // `counted_`
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace ptkit::tables::calls
