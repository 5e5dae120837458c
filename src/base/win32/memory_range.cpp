#include "base/system/memory_range.h"

#include <windows.h>

namespace ptkit::base {
namespace {

// Windows frees an allocation as a whole, and callers unmap parts of ranges and join neighbours. So each unit
// of a range is an allocation of its own. A unit is a multiple of the allocation granularity, 64 KiB.
[[nodiscard]] constexpr std::size_t unit_of(std::size_t size) noexcept {
  return size < kLargeRange ? kSmallUnit : kHugePage;
}

// An address with `size` free bytes after it, aligned to `unit`. Null: there is none. Another thread may take
// it before it is used.
[[nodiscard]] std::uint8_t* find_free(std::size_t size, std::size_t unit) noexcept {
  auto* const found =
      static_cast<std::uint8_t*>(::VirtualAlloc(nullptr, size + unit, MEM_RESERVE, PAGE_NOACCESS));
  if (found == nullptr) return nullptr;
  ::VirtualFree(found, 0, MEM_RELEASE);
  return found + (unit - reinterpret_cast<std::uintptr_t>(found) % unit) % unit;
}

// False: out of memory, or the address is taken. Nothing is allocated then.
[[nodiscard]] bool allocate_at(std::uint8_t* memory, std::size_t size, std::size_t unit) noexcept {
  for (std::size_t done = 0; done < size; done += unit) {
    if (::VirtualAlloc(memory + done, unit, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) != nullptr) continue;
    unmap_range(memory, done);
    return false;
  }
  return true;
}

}  // namespace

std::uint8_t* map_range(std::size_t size) noexcept {
  constexpr int kTries = 8;  // other threads allocate, too
  const std::size_t unit = unit_of(size);
  for (int i = 0; i < kTries; ++i) {
    std::uint8_t* const memory = find_free(size, unit);
    if (memory == nullptr) return nullptr;
    if (allocate_at(memory, size, unit)) return memory;
  }
  return nullptr;
}

void unmap_range(std::uint8_t* range, std::size_t size) noexcept {
  for (std::size_t done = 0; done < size;) {
    MEMORY_BASIC_INFORMATION unit{};  // neighbours of two sizes may have become one range
    if (::VirtualQuery(range + done, &unit, sizeof unit) == 0) return;
    ::VirtualFree(range + done, 0, MEM_RELEASE);
    done += unit.RegionSize;
  }
}

bool can_move_pages() noexcept { return false; }

bool move_range(std::uint8_t* /*from*/, std::size_t /*size*/, std::uint8_t* /*to*/,
                std::size_t& /*moved*/) noexcept {
  return false;
}

}  // namespace ptkit::base
