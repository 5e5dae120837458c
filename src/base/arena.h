// Memory for tables that grow side by side and die together. What one of them has outgrown is used by the
// next; where the system has huge pages to give, all but the first of it lies on them: a fresh page costs a
// microsecond or two, whatever its size is.
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

  // Aligned to a cache line. Throws std::bad_alloc.
  [[nodiscard]] void* take(std::size_t bytes);
  void give_back(void* memory, std::size_t bytes) noexcept;
  // Forgets all that was taken; keeps a little, so that what is taken next is there.
  void clear() noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  // taken from the system

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kFirstSlab = std::size_t{1} << 18U;
  static constexpr std::size_t kSlab = std::size_t{1} << 21U;
  static constexpr std::size_t kLarge = kSlab / 2;  // more than this goes to the system, one by one
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
  void put(void* memory, std::size_t bytes) noexcept;

  std::vector<Slab> slabs_;
  std::array<Free*, std::bit_width(kSlab) + 1> free_{};  // by the binary logarithm of their bytes
  std::size_t bytes_ = 0;
};

// An allocator for containers whose memory is an arena's, which must outlive them.
template <typename T>
class InArena {
 public:
  using value_type = T;
  explicit(false) InArena(Arena& arena) noexcept : arena_(&arena) {}
  template <typename U>
  explicit(false) InArena(const InArena<U>& other) noexcept : arena_(other.arena()) {}

  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(arena_->take(count * kSize)); }
  void deallocate(T* memory, std::size_t count) noexcept { arena_->give_back(memory, count * kSize); }
  [[nodiscard]] Arena* arena() const noexcept { return arena_; }
  [[nodiscard]] bool operator==(const InArena& other) const noexcept { return arena_ == other.arena_; }

 private:
  // Containers of pointers are meant: their elements are as long as a pointer.
  static constexpr std::size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression)

  Arena* arena_;
};

template <typename T>
using ArenaVector = std::vector<T, InArena<T>>;

}  // namespace ptkit::base
