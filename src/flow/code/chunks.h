// Unrolled list: a list in chunks. Elements never move, and unused chunks take no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/arena.h"

namespace ptkit::flow {

// T is trivially copyable. kChunk is a power of two.
template <typename T, std::size_t kChunk>
class Chunks {
  static_assert((kChunk & (kChunk - 1)) == 0);

 public:
  explicit Chunks(base::Arena& arena) : chunks_(arena) {}
  ~Chunks() { clear(); }
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  [[nodiscard]] T& operator[](std::size_t index) const noexcept {
    return chunks_[index / kChunk][index % kChunk];
  }
  // Elements [index, index + size), all in one chunk.
  [[nodiscard]] std::span<const T> part(std::size_t index, std::size_t size) const noexcept {
    if (size == 0) return {};
    return {&(*this)[index], size};
  }
  // Contiguous room for `size` elements (at most kChunk) from index end() on. The call may move end().
  // Elements are part of the list only after keep().
  [[nodiscard]] std::span<T> room(std::size_t size) {
    if (end_ % kChunk + size > kChunk) end_ = chunks_.size() * kChunk;
    if (end_ == chunks_.size() * kChunk) {
      T* const chunk = static_cast<T*>(arena().allocate(sizeof(T) * kChunk));
      chunks_.push_back(chunk);
      std::uninitialized_value_construct_n(chunks_.back(), kChunk);
    }
    return {&(*this)[end_], size};
  }
  void keep(std::size_t size) noexcept {
    end_ += size;
    size_ += size;
  }
  T& add() {
    T& added = room(1).front();
    keep(1);
    return added;
  }

  // Visits every element that was added one by one: size() elements without gaps.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (std::size_t i = 0; i < size_; ++i) visit((*this)[i]);
  }

  [[nodiscard]] std::size_t end() const noexcept { return end_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // number of kept elements
  [[nodiscard]] std::size_t bytes() const noexcept {
    return chunks_.size() * sizeof(T) * kChunk + chunks_.capacity() * sizeof(chunks_[0]);
  }
  void clear() noexcept {
    for (T* chunk : chunks_) arena().deallocate(chunk, sizeof(T) * kChunk);
    base::ArenaVector<T*>(chunks_.get_allocator()).swap(chunks_);
    end_ = size_ = 0;
  }

 private:
  [[nodiscard]] base::Arena& arena() const noexcept { return *chunks_.get_allocator().arena(); }

  base::ArenaVector<T*> chunks_;
  std::size_t end_ = 0;
  std::size_t size_ = 0;
};

}  // namespace ptkit::flow
