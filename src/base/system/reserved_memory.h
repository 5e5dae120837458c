// A range of zeros for data that are written part by part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptkit::base {

// A page takes memory when it is first written to. Windows counts all of them at once, though: good() is
// false if the system has no memory for them.
class ReservedMemory {
 public:
  explicit ReservedMemory(std::size_t size);
  ~ReservedMemory();
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  [[nodiscard]] bool good() const noexcept { return memory_ != nullptr; }
  // Frees whole pages in [begin, end), and bytes before `begin` in its page. What they hold then is
  // undefined.
  void release(std::size_t begin, std::size_t end) noexcept;
  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return {memory_, size_}; }
  // The system's sentence for the last failure of this thread.
  [[nodiscard]] static std::string error();

 private:
  std::uint8_t* memory_ = nullptr;
  std::size_t size_;
};

}  // namespace ptkit::base
