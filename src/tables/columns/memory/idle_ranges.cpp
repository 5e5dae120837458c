#include "tables/columns/memory/idle_ranges.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace ptkit::tables::columns {

// Moves the entries of a range in all three orders, without new memory.
void IdleRanges::change(Ranges::iterator range, std::uint8_t* memory, Extent extent) noexcept {
  auto size = by_size_.extract({range->second.size, range->first});
  auto age = by_age_.extract({range->second.since, range->first});
  auto address = by_address_.extract(range);
  bytes_ += extent.size;
  bytes_ -= address.mapped().size;
  address.key() = memory;
  address.mapped() = extent;
  size.value() = {extent.size, memory};
  age.value() = {extent.since, memory};
  by_address_.insert(std::move(address));
  by_size_.insert(std::move(size));
  by_age_.insert(std::move(age));
}

void IdleRanges::erase(Ranges::iterator range) noexcept {
  bytes_ -= range->second.size;
  by_size_.erase({range->second.size, range->first});
  by_age_.erase({range->second.since, range->first});
  by_address_.erase(range);
}

bool IdleRanges::add(std::uint8_t* memory, std::size_t size, Time now) noexcept {
  const auto after = by_address_.lower_bound(memory);
  const auto before = after == by_address_.begin() ? by_address_.end() : std::prev(after);
  const bool joins_after = after != by_address_.end() && memory + size == after->first;
  if (before != by_address_.end() && before->first + before->second.size == memory) {
    std::size_t whole = before->second.size + size;
    if (joins_after) {
      whole += after->second.size;
      erase(after);
    }
    change(before, before->first, {whole, now});
    return true;
  }
  if (joins_after) {
    change(after, memory, {size + after->second.size, now});
    return true;
  }
  try {
    const auto address = by_address_.emplace_hint(after, memory, Extent{size, now});
    bytes_ += size;
    try {
      by_size_.emplace(size, memory);
      by_age_.emplace(now, memory);
    } catch (const std::bad_alloc&) {
      erase(address);
      return false;
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

std::uint8_t* IdleRanges::take(std::size_t size) noexcept {
  const auto found = by_size_.lower_bound({size, nullptr});
  if (found == by_size_.end()) return nullptr;
  std::uint8_t* const memory = found->second;
  const auto range = by_address_.find(memory);
  if (range->second.size == size) {
    erase(range);
  } else {
    change(range, memory + size, {range->second.size - size, range->second.since});
  }
  return memory;
}

// Removes the end, so that the rest keeps its address.
IdleRanges::Range IdleRanges::cut(std::uint8_t* memory, std::size_t size) noexcept {
  const auto range = by_address_.find(memory);
  const Extent whole = range->second;
  size = std::min(size, whole.size);
  if (size == whole.size) {
    erase(range);
  } else {
    change(range, memory, {whole.size - size, whole.since});
  }
  return {memory + whole.size - size, size, whole.since};
}

std::optional<IdleRanges::Range> IdleRanges::oldest() const noexcept {
  if (empty()) return std::nullopt;
  const auto& [since, memory] = *by_age_.begin();
  return Range{memory, by_address_.find(memory)->second.size, since};
}

}  // namespace ptkit::tables::columns
