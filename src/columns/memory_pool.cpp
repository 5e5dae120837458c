#include "columns/memory_pool.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "base/map_memory.h"

namespace ptkit::columns {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20U;
constexpr std::size_t kSmallUnit = std::size_t{64} << 10U;
constexpr std::size_t kLarge = kHuge / 2;  // from this size on, blocks are whole huge pages

[[nodiscard]] std::size_t rounded(std::size_t bytes) noexcept {
  const std::size_t unit = bytes < kLarge ? kSmallUnit : kHuge;
  return bytes > SIZE_MAX - unit ? 0 : (bytes + unit - 1) / unit * unit;
}

[[nodiscard]] void* map(std::size_t size) noexcept {
  void* const memory = base::map_memory(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Aligned to huge pages: maps more, and unmaps the excess on both sides.
[[nodiscard]] void* map_huge(std::size_t size) noexcept {
  if (size > SIZE_MAX - kHuge) return nullptr;
  auto* const memory = static_cast<std::uint8_t*>(map(size + kHuge));
  if (memory == nullptr) return nullptr;
  const std::size_t before = (kHuge - reinterpret_cast<std::uintptr_t>(memory) % kHuge) % kHuge;
  if (before != 0) static_cast<void>(::munmap(memory, before));
  if (before != kHuge) static_cast<void>(::munmap(memory + before + size, kHuge - before));
  // small pages are good enough if this fails
  static_cast<void>(::madvise(memory + before, size, MADV_HUGEPAGE));
  return memory + before;
}

}  // namespace

MemoryPool::~MemoryPool() {
  for (const Block& block : idle_) static_cast<void>(::munmap(block.memory, block.size));
}

// Takes a released block that is large enough, and not much larger.
MemoryPool::Block MemoryPool::find(std::size_t size) {
  const std::scoped_lock lock(mutex_);
  std::size_t best = idle_.size();
  for (std::size_t i = 0; i < idle_.size(); ++i) {
    if (idle_[i].size < size || idle_[i].size / 2 > size) continue;
    if (best == idle_.size() || idle_[i].size <= idle_[best].size) best = i;
  }
  if (best == idle_.size()) return {};
  const Block block = idle_[best];
  idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(best));
  idle_bytes_ -= block.size;
  return block;
}

std::shared_ptr<void> MemoryPool::take(std::size_t bytes) {
  const std::size_t size = rounded(bytes == 0 ? 1 : bytes);
  if (size == 0) return nullptr;
  Block block = find(size);
  if (block.memory == nullptr) block = {size < kHuge ? map(size) : map_huge(size), size};
  if (block.memory == nullptr) return nullptr;
  try {
    return {block.memory, [pool = shared_from_this(), block](void*) { pool->release(block); }};
  } catch (const std::bad_alloc&) {  // the deleter has been called
    return nullptr;
  }
}

void MemoryPool::release(Block block) noexcept {
  const std::scoped_lock lock(mutex_);
  try {
    idle_.push_back(block);
    idle_bytes_ += block.size;
  } catch (const std::bad_alloc&) {
    static_cast<void>(::munmap(block.memory, block.size));
  }
  while (idle_bytes_ > kMostIdle) {
    static_cast<void>(::munmap(idle_.front().memory, idle_.front().size));
    idle_bytes_ -= idle_.front().size;
    idle_.erase(idle_.begin());
  }
}

std::size_t MemoryPool::idle_bytes() const {
  const std::scoped_lock lock(mutex_);
  return idle_bytes_;
}

}  // namespace ptkit::columns
