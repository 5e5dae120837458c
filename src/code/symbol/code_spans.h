// Finds the code regions that have bytes of a range of their file. Internal to src/code/symbol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace ptkit::code::symbol {

// An interval tree for each file: a sorted array, in which the middle of each part is the root of its
// subtree.
class CodeSpans {
 public:
  // The part of a file that a region has.
  struct Span {
    std::int32_t file = -1;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint32_t region = 0;
  };
  explicit CodeSpans(std::vector<Span> spans);

  // Calls `visit` with the number of each region that has a byte of the range, in the order of numbers. Of an
  // empty range or region, its first byte counts.
  template <typename Visit>
  void overlapping(std::int32_t file, std::uint64_t offset, std::uint64_t size, Visit&& visit) const {
    const auto begin = std::ranges::lower_bound(spans_, file, {}, &Span::file);
    const auto end = std::ranges::upper_bound(spans_, file, {}, &Span::file);
    std::vector<std::uint32_t> found;
    find(static_cast<std::size_t>(begin - spans_.begin()), static_cast<std::size_t>(end - spans_.begin()),
         offset, last_of(offset, size), found);
    std::ranges::sort(found);
    for (const std::uint32_t region : found) visit(region);
  }

 private:
  static std::uint64_t last_of(std::uint64_t offset, std::uint64_t size) noexcept {
    const std::uint64_t more = size == 0 ? 0 : size - 1;
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    return more > kMax - offset ? kMax : offset + more;
  }
  static std::size_t root_of(std::size_t begin, std::size_t end) noexcept {
    return begin + (end - begin) / 2;
  }
  std::uint64_t set_farthest(std::size_t begin, std::size_t end);
  void find(std::size_t begin, std::size_t end, std::uint64_t first, std::uint64_t last,
            std::vector<std::uint32_t>& found) const;

  std::vector<Span> spans_;              // sorted by file and offset
  std::vector<std::uint64_t> farthest_;  // the last offset of all spans in the subtree of this one
};

}  // namespace ptkit::code::symbol
