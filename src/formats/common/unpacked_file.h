// Room on the disk for the unpacked streams of one recording, in place of memory.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/posix/unnamed_file.h"

namespace ptkit::formats {

// Thread-safe. The file is created for the first stream that is read.
class UnpackedFile {
 public:
  // Returns the file offset of the room for a stream.
  [[nodiscard]] std::uint64_t add(std::uint64_t bytes);
  // Takes the room on the disk.
  [[nodiscard]] std::optional<base::Failure> reserve(std::uint64_t offset, std::uint64_t bytes);
  // After reserve() was successful.
  [[nodiscard]] const base::UnnamedFile& file() const noexcept { return *file_; }

 private:
  std::mutex mutex_;
  std::uint64_t size_ = 0;
  std::optional<base::UnnamedFile> file_;
};

}  // namespace ptkit::formats
