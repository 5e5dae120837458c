#include "tables/text/text_cache.h"

#include <bit>

#include "tables/text/text_buffer.h"

namespace ptkit::tables::text {
namespace {

constexpr std::size_t kLeastSlots = std::size_t{1} << 10U;
constexpr std::size_t kMostBytes = std::size_t{1} << 28U;
constexpr std::size_t kAtOnce = 4;  // entries between two calls of reserve()

unsigned shift_for(std::size_t slots) noexcept {
  return 64U - static_cast<unsigned>(std::countr_zero(slots));
}

}  // namespace

TextCache::TextCache(std::size_t most_slots)
    : most_slots_(most_slots), entries_(kLeastSlots), shift_(shift_for(kLeastSlots)), texts_(kBlock, '\0') {}

bool TextCache::reserve() {
  if (2 * (used_ + kAtOnce) <= entries_.size() && texts_.size() <= kMostBytes) return true;
  if (2 * entries_.size() > most_slots_ || texts_.size() > kMostBytes) {
    *this = TextCache(most_slots_);
    return false;
  }
  std::vector<Entry> old(2 * entries_.size());
  old.swap(entries_);
  shift_ = shift_for(entries_.size());
  used_ = 0;
  for (const Entry& entry : old) {
    if (entry.used) insert(entry.key, entry.ref);
  }
  return true;
}

void TextCache::insert(const Key& key, Ref ref) noexcept {
  std::size_t slot = slot_of(key);
  while (entries_[slot].used) slot = (slot + 1) & mask();
  entries_[slot] = {key, ref, true};
  ++used_;
}

TextCache::Ref TextCache::store(std::string_view text) {
  // The last bytes are those that may be read behind the last text.
  const std::size_t offset = texts_.size() - kBlock;
  texts_.insert(offset, text);
  return {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(text.size())};
}

}  // namespace ptkit::tables::text
