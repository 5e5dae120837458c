// A buffer that lines are written into.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "base/digits.h"

namespace ptkit::tables::text {

inline constexpr std::size_t kBlock = 32;  // bytes that are copied at once

// Text with readable bytes after its end, so that it can be copied in blocks.
class PaddedText {
 public:
  PaddedText() : PaddedText(std::string_view()) {}
  explicit PaddedText(std::string_view text) : bytes_(text.size() + kBlock), size_(text.size()) {
    text.copy(bytes_.data(), text.size());  // memcpy() may not be called with an empty text's null pointer
  }
  [[nodiscard]] const char* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view view() const noexcept { return {data(), size_}; }

 private:
  std::vector<char> bytes_;
  std::size_t size_;
};

// Grows as it is needed, and keeps its memory when it is cleared.
class TextBuffer {
 public:
  void clear() noexcept { size_ = 0; }
  [[nodiscard]] const char* data() const noexcept { return bytes_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view view() const noexcept { return {data(), size_}; }

  void add(std::string_view text) { size_ += text.copy(room(text.size()), text.size()); }
  void add(char letter) { *room(1) = letter, ++size_; }
  // Of `text`, kBlock bytes after its end can be read.
  void add_padded(const char* text, std::size_t count) {
    char* to = room(count + kBlock);
    for (std::size_t done = 0; done < count; done += kBlock) std::memcpy(to + done, text + done, kBlock);
    size_ += count;
  }
  // Copies what stands at `begin` in this buffer to its end.
  void repeat(std::size_t begin, std::size_t count) {
    char* const to = room(count + kBlock);
    const char* const from = bytes_.get() + begin;
    for (std::size_t done = 0; done < count; done += kBlock) {
      std::array<char, kBlock> block;  // the last one may reach into the copy
      std::memcpy(block.data(), from + done, kBlock);
      std::memcpy(to + done, block.data(), kBlock);
    }
    size_ += count;
  }
  void add(const PaddedText& text) { add_padded(text.data(), text.size()); }
  void add_hex16(std::uint64_t value) { end(base::put_hex16(room(16), value)); }
  void add_hex(std::uint64_t value) { end(base::put_hex(room(16), value)); }
  template <typename Integer>
  void add_decimal(Integer value) {
    end(base::put_decimal(room(base::kMostDigits), value));
  }
  // Pads what stands behind `begin` with blanks, on the right or on the left.
  void pad(std::size_t begin, std::size_t width, bool right) {
    const std::size_t used = size_ - begin;
    if (used >= width) return;
    static_cast<void>(room(width - used));
    char* const text = bytes_.get() + begin;
    if (!right) std::memmove(text + (width - used), text, used);
    std::memset(right ? text + used : text, ' ', width - used);
    size_ = begin + width;
  }
  void cut(std::size_t size) noexcept { size_ = size; }
  // Removes blanks from the end, but none before `begin`.
  void strip(std::size_t begin) noexcept {
    while (size_ > begin && bytes_.get()[size_ - 1] == ' ') --size_;
  }

 private:
  struct Freer {
    void operator()(char* bytes) const noexcept { std::free(bytes); }
  };

  [[nodiscard]] char* room(std::size_t count) {
    if (capacity_ - size_ < count) [[unlikely]]
      grow(count);
    return bytes_.get() + size_;
  }
  void end(const char* at) noexcept { size_ = static_cast<std::size_t>(at - bytes_.get()); }
  void grow(std::size_t count) {
    const std::size_t capacity = 2 * capacity_ + count + kLeast;
    char* const moved = static_cast<char*>(std::realloc(bytes_.get(), capacity));
    if (moved == nullptr) throw std::bad_alloc();
    static_cast<void>(bytes_.release());
    bytes_.reset(moved);
    capacity_ = capacity;
  }

  static constexpr std::size_t kLeast = std::size_t{1} << 16U;
  std::unique_ptr<char, Freer> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace ptkit::tables::text
