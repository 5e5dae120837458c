// Ranges of memory that nothing uses, by address, by size and by age.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ptkit::tables::columns {

// Neighbours become one range. Every operation takes logarithmic time: long programs leave tens of thousands
// of ranges that have no neighbour.
class IdleRanges {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Range {
    std::uint8_t* memory = nullptr;
    std::size_t size = 0;
    Time since;  // when the last part of it became idle
  };

  // False: no memory to note it. Nothing is changed.
  [[nodiscard]] bool add(std::uint8_t* memory, std::size_t size, Time now) noexcept;
  // Removes `size` bytes from the smallest range that has them. Null: there is none.
  [[nodiscard]] std::uint8_t* take(std::size_t size) noexcept;
  // Removes the last bytes of the largest range: `size`, or all of a smaller one. Not if empty().
  [[nodiscard]] Range take_from_largest(std::size_t size) noexcept {
    return cut(by_size_.rbegin()->second, size);
  }
  // From the range that has been idle longest.
  [[nodiscard]] Range take_from_oldest(std::size_t size) noexcept {
    return cut(by_age_.begin()->second, size);
  }
  [[nodiscard]] std::optional<Range> oldest() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return by_address_.empty(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct Extent {
    std::size_t size = 0;
    Time since;
  };
  using Ranges = std::map<std::uint8_t*, Extent>;

  [[nodiscard]] Range cut(std::uint8_t* memory, std::size_t size) noexcept;
  void change(Ranges::iterator range, std::uint8_t* memory, Extent extent) noexcept;
  void erase(Ranges::iterator range) noexcept;

  Ranges by_address_;
  std::set<std::pair<std::size_t, std::uint8_t*>> by_size_;
  std::set<std::pair<Time, std::uint8_t*>> by_age_;
  std::uint64_t bytes_ = 0;
};

}  // namespace ptkit::tables::columns
