// The extents of a file (lseek() with SEEK_DATA, SEEK_HOLE). Holes may have any length and are skipped.
#pragma once

#include <cstdint>
#include <optional>

#include "capture/linux/process/process.h"

namespace ptkit::capture {

class FileExtents {
 public:
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // The extents in bytes [from, to).
  FileExtents(const Fd& file, std::uint64_t from, std::uint64_t to) : file_(file), at_(from), to_(to) {}

  [[nodiscard]] std::optional<Extent> next();

 private:
  const Fd& file_;
  std::uint64_t at_;
  std::uint64_t to_;
};

}  // namespace ptkit::capture
