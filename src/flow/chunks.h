// A list that grows without moving what it has: in chunks, so that no memory is touched that is not used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/arena.h"

namespace ptkit::flow {

// T is trivially copied. kChunk is a power of two.
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
  // Elements [index, index + size): of one chunk.
  [[nodiscard]] std::span<const T> part(std::size_t index, std::size_t size) const noexcept {
    if (size == 0) return {};
    return {&(*this)[index], size};
  }
  // Room for `size` elements in one piece (at most kChunk) from index end() on, which this may change. What
  // is to be kept of it is told by keep().
  [[nodiscard]] std::span<T> room(std::size_t size) {
    if (end_ % kChunk + size > kChunk) end_ = chunks_.size() * kChunk;
    if (end_ == chunks_.size() * kChunk) {
      T* const chunk = static_cast<T*>(arena().take(sizeof(T) * kChunk));
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

  // Every element that was added one by one: as many as size(), without gaps.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (std::size_t i = 0; i < size_; ++i) visit((*this)[i]);
  }

  [[nodiscard]] std::size_t end() const noexcept { return end_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // kept
  [[nodiscard]] std::size_t bytes() const noexcept {
    return chunks_.size() * sizeof(T) * kChunk + chunks_.capacity() * sizeof(chunks_[0]);
  }
  void clear() noexcept {
    for (T* chunk : chunks_) arena().give_back(chunk, sizeof(T) * kChunk);
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
