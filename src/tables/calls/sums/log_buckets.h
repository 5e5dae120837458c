// Buckets of a histogram of lengths: values below 2^bits have one each, and each power of two above has
// 2^(bits - 1).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ptkit::tables::calls {

template <unsigned bits>
struct LogBuckets {
  static constexpr std::size_t kHalf = std::size_t{1} << (bits - 1);
  static constexpr std::size_t kCount = (64 - bits + 2) * kHalf;

  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    if (width <= bits) return static_cast<std::size_t>(value);
    const unsigned shift = width - bits;
    return shift * kHalf + static_cast<std::size_t>(value >> shift);
  }
  [[nodiscard]] static constexpr std::uint64_t first_of(std::size_t bucket) noexcept {
    return bucket < kHalf * 2 ? bucket : std::uint64_t{bucket - shift_of(bucket) * kHalf} << shift_of(bucket);
  }
  [[nodiscard]] static constexpr std::uint64_t last_of(std::size_t bucket) noexcept {
    return bucket < kHalf * 2 ? bucket : first_of(bucket) + ((std::uint64_t{1} << shift_of(bucket)) - 1);
  }

 private:
  [[nodiscard]] static constexpr std::size_t shift_of(std::size_t bucket) noexcept {
    return bucket / kHalf - 1;
  }
};

}  // namespace ptkit::tables::calls
