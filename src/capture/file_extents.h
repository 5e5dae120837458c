// The parts of a file that have blocks: holes, which may have any length, are skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "capture/tracee.h"

namespace ptkit::capture {

class FileExtents {
 public:
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // Those in bytes [from, to) of the file.
  FileExtents(const Fd& file, std::uint64_t from, std::uint64_t to) : file_(file), at_(from), to_(to) {}

  [[nodiscard]] std::optional<Extent> next();

 private:
  const Fd& file_;
  std::uint64_t at_;
  std::uint64_t to_;
};

// pread() of all that is there: fewer bytes at the end of the file only, or after an error.
[[nodiscard]] std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<std::uint8_t> to);

}  // namespace ptkit::capture
