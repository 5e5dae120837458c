// Regular files that are open for reading. FIFOs, sockets and devices are rejected without blocking: a
// recording may name any path.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/posix/fd.h"
#include "base/status.h"

namespace ptkit::base {

// The kind of a file that is not regular, by its mode: "a FIFO".
[[nodiscard]] const char* file_kind(mode_t mode) noexcept;

class RegularFile {
 public:
  // Fails with IO_ERROR, the path, and the kind if the file is not regular. Opens regular files only.
  [[nodiscard]] static Result<RegularFile> open(const std::string& path);

  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }  // bytes, when it was opened
  // Reads until `out` is full or the file ends. Returns the number of bytes.
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
    return read_at(file_, offset, out);
  }

 private:
  RegularFile(Fd file, std::uint64_t size) noexcept : file_(std::move(file)), size_(size) {}
  Fd file_;
  std::uint64_t size_;
};

}  // namespace ptkit::base
