#include "allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace ptkit::api::c {
namespace {

std::atomic<std::int64_t> live{0};

struct Plan {
  std::int64_t left = -1;  // -1: none fails
  Failing failing = Failing::ONE;
  bool failed = false;
};
thread_local Plan plan;

[[nodiscard]] bool must_fail() noexcept {
  if (plan.left < 0) return false;
  if (plan.left > 0) {
    --plan.left;
    return false;
  }
  if (plan.failing == Failing::ONE) plan.left = -1;
  plan.failed = true;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (must_fail()) return nullptr;
  if (size == 0) size = 1;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(size)
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* const memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

std::int64_t live_allocations() noexcept { return live.load(); }

void fail_after(std::int64_t allocations, Failing failing) noexcept { plan = {allocations, failing, false}; }

bool stop_failing() noexcept {
  plan.left = -1;
  return plan.failed;
}

}  // namespace ptkit::api::c

using ptkit::api::c::allocate;
using ptkit::api::c::allocate_or_throw;
using ptkit::api::c::release;

constexpr std::size_t kPlain = 1;

void* operator new(std::size_t size) { return allocate_or_throw(size, kPlain); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, kPlain); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, kPlain); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, kPlain); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
