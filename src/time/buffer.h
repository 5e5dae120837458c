// Growing array of trivially copyable elements. New memory is not cleared.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

namespace ptkit::time {

template <typename T>
class Buffer {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;

  // Makes room for `size` elements and keeps the first `used` ones.
  void grow(std::size_t size, std::size_t used) {
    if (size <= capacity_) return;
    const std::size_t capacity = std::max(size, capacity_ + capacity_ / 2);
    auto more = std::make_unique_for_overwrite<T[]>(capacity);
    if (used > 0) std::memcpy(more.get(), cells_.get(), used * sizeof(T));
    cells_ = std::move(more);
    capacity_ = capacity;
  }

  [[nodiscard]] T* data() noexcept { return cells_.get(); }
  [[nodiscard]] const T* data() const noexcept { return cells_.get(); }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return cells_[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return cells_[index]; }

 private:
  std::unique_ptr<T[]> cells_;
  std::size_t capacity_ = 0;
};

}  // namespace ptkit::time
