// A regular file that is open for reading at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace ptkit::base {

class FileReader {
 public:
  // Fails with IO_ERROR, the path, and the kind if the file is not regular.
  [[nodiscard]] static Result<FileReader> open(const std::string& path);

  // Reads until `out` is full or the file ends. Returns the number of bytes. Thread-safe.
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept;

 private:
  struct State;
  explicit FileReader(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace ptkit::base
