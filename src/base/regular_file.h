// Regular files that are open for reading. FIFOs, sockets and devices are refused without waiting for them: a
// recording may name any path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace ptkit::base {

class RegularFile {
 public:
  // IO_ERROR with the path, and with what it is if it is no regular file. Nothing that the path names is
  // opened unless it is one.
  [[nodiscard]] static Result<RegularFile> open(const std::string& path);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  RegularFile& operator=(RegularFile&& other) noexcept;
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }  // bytes, when it was opened
  // Reads until `out` is full or the file ends: the number of bytes.
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept;

 private:
  RegularFile(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
  int fd_;
  std::uint64_t size_;
};

}  // namespace ptkit::base
