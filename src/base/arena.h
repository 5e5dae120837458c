// An arena with segregated free lists: memory for tables that grow together and are freed together. A table
// reuses memory that another table has outgrown. If the system has huge pages, all slabs but the first use
// them: a page fault costs a microsecond or two, for a page of any size.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <vector>

namespace ptkit::base {

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns memory that is aligned to a cache line. Throws std::bad_alloc.
  [[nodiscard]] void* allocate(std::size_t bytes);
  void deallocate(void* memory, std::size_t bytes) noexcept;
  // Frees all memory but the first slab.
  void clear() noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  // taken from the system

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kFirstSlab = std::size_t{1} << 18U;
  static constexpr std::size_t kSlab = std::size_t{1} << 21U;
  static constexpr std::size_t kLarge = kSlab / 2;  // larger blocks come from the system
  struct Free {
    Free* next = nullptr;
    std::size_t bytes = 0;
  };
  struct Slab {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept {
    return bytes == 0 ? kLine : (bytes + kLine - 1) & ~(kLine - 1);
  }
  void add_slab();
  void add_free(void* memory, std::size_t bytes) noexcept;

  std::vector<Slab> slabs_;
  std::array<Free*, std::bit_width(kSlab) + 1> free_{};  // lists by the binary logarithm of the size
  std::size_t bytes_ = 0;
};

// An allocator for containers with memory from an arena. The arena must outlive the containers.
template <typename T>
class InArena {
 public:
  using value_type = T;
  explicit(false) InArena(Arena& arena) noexcept : arena_(&arena) {}
  template <typename U>
  explicit(false) InArena(const InArena<U>& other) noexcept : arena_(other.arena()) {}

  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(arena_->allocate(count * kSize)); }
  void deallocate(T* memory, std::size_t count) noexcept { arena_->deallocate(memory, count * kSize); }
  [[nodiscard]] Arena* arena() const noexcept { return arena_; }
  [[nodiscard]] bool operator==(const InArena& other) const noexcept { return arena_ == other.arena_; }

 private:
  // T may be a pointer: sizeof(T) is meant.
  static constexpr std::size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression)

  Arena* arena_;
};

template <typename T>
using ArenaVector = std::vector<T, InArena<T>>;

}  // namespace ptkit::base
