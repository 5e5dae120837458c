#include "base/arena.h"

#include <new>

#include "base/huge_pages.h"

namespace ptkit::base {

Arena::~Arena() {
  for (const Slab& slab : slabs_) free_pages(slab.memory, slab.bytes);
}

void Arena::clear() noexcept {
  free_ = {};
  while (slabs_.size() > 1) {
    bytes_ -= slabs_.back().bytes;
    free_pages(slabs_.back().memory, slabs_.back().bytes);
    slabs_.pop_back();
  }
  if (!slabs_.empty()) add_free(slabs_.front().memory, slabs_.front().bytes);
}

void Arena::add_free(void* memory, std::size_t bytes) noexcept {
  Free*& list = free_[std::bit_width(bytes) - 1U];
  list = new (memory) Free{list, bytes};
}

void Arena::add_slab() {
  const std::size_t bytes = slabs_.empty() ? kFirstSlab : kSlab;
  slabs_.reserve(slabs_.size() + 1);  // before the slab: reserve() may throw
  void* const memory = allocate_pages(bytes);
  slabs_.push_back({memory, bytes});
  bytes_ += bytes;
  add_free(memory, bytes);
}

void* Arena::allocate(std::size_t bytes) {
  bytes = rounded(bytes);
  if (bytes > kLarge) {
    void* const memory = allocate_pages(bytes);
    bytes_ += bytes;
    return memory;
  }
  // All blocks of this list and of the later lists are large enough. Of the list before, only the first block
  // is checked.
  std::size_t list = std::bit_width(bytes - 1U);
  if (Free* const near = free_[list - 1]; near != nullptr && near->bytes >= bytes) --list;
  while (list < free_.size() && free_[list] == nullptr) ++list;
  if (list == free_.size()) {
    add_slab();
    return allocate(bytes);
  }
  Free* const block = free_[list];
  free_[list] = block->next;
  const std::size_t rest = block->bytes - bytes;
  if (rest != 0) add_free(reinterpret_cast<std::byte*>(block) + bytes, rest);
  return block;
}

void Arena::deallocate(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  bytes = rounded(bytes);
  if (bytes <= kLarge) return add_free(memory, bytes);
  bytes_ -= bytes;
  free_pages(memory, bytes);
}

}  // namespace ptkit::base
