// Anonymous memory of the system: address ranges that are mapped, moved and unmapped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/huge_pages.h"

namespace ptkit::base {

// Ranges below this size have small pages, and sizes that are multiples of kSmallUnit. Larger ones are whole
// huge pages, so that a small table does not take one for each column.
inline constexpr std::size_t kLargeRange = kHugePage / 2;
inline constexpr std::size_t kSmallUnit = std::size_t{64} << 10U;

// `bytes` rounded up to the size of a range. 0: no range is so large.
[[nodiscard]] constexpr std::size_t range_size(std::size_t bytes) noexcept {
  if (bytes > SIZE_MAX / 2) return 0;
  const std::size_t unit = bytes <= kLargeRange - kSmallUnit ? kSmallUnit : kHugePage;
  return bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
}
static_assert(range_size(kLargeRange - kSmallUnit) < kLargeRange);
static_assert(range_size(kLargeRange - kSmallUnit + 1) == kHugePage);

// Maps a range of range_size() bytes. Large ranges are aligned to huge pages, and request them if the system
// gives them by madvise(). Null: out of memory or of address space.
[[nodiscard]] std::uint8_t* map_range(std::size_t size) noexcept;
void unmap_range(std::uint8_t* range, std::size_t size) noexcept;

// Whether the system can move pages: if not, move_range() always fails.
[[nodiscard]] bool can_move_pages() noexcept;
// Moves the huge pages of a large range to another large range, which loses its own, by page tables: no byte
// is copied. The old addresses are unmapped. False: the system refused to move more than the first `moved`
// bytes.
[[nodiscard]] bool move_range(std::uint8_t* from, std::size_t size, std::uint8_t* to,
                              std::size_t& moved) noexcept;

}  // namespace ptkit::base
