// Space on the disk for the unpacked streams of one recording, instead of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/status.h"
#include "base/system/reserved_memory.h"

namespace ptkit::base {

// Thread-safe. The file is created for the first stream that is read.
class UnpackedFile {
 public:
  // Null on Windows, which writes any memory to its page file: a file of our own saves nothing there.
  [[nodiscard]] static std::shared_ptr<UnpackedFile> create();
  virtual ~UnpackedFile() = default;
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  // Returns the file offset of the space for a stream.
  [[nodiscard]] virtual std::uint64_t add(std::uint64_t bytes) = 0;
  // Takes the space on the disk.
  [[nodiscard]] virtual std::optional<Failure> reserve(std::uint64_t offset, std::uint64_t bytes) = 0;
  // After reserve() was successful: replaces the memory by the file from `offset` on. What is written to the
  // memory later stays in memory.
  [[nodiscard]] virtual bool show(std::uint64_t offset, const ReservedMemory& memory) const noexcept = 0;
  // After reserve() was successful.
  [[nodiscard]] virtual bool write(std::uint64_t offset, Bytes bytes) const noexcept = 0;

 protected:
  UnpackedFile() = default;
};

}  // namespace ptkit::base
