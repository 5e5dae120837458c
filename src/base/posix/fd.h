// Owns a file descriptor.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace ptkit::base {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) static_cast<void>(::close(fd_));
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Repeats pread() until `to` is full. Returns fewer bytes only at the end of the file or after an error.
[[nodiscard]] std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<std::uint8_t> to) noexcept;

}  // namespace ptkit::base
