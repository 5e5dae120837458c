// Trace bytes with an owner: a mapped file, a vector, or memory that someone else keeps alive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::trace {

class TraceBuffer {
 public:
  TraceBuffer() = default;
  // Borrows `bytes`, keeping `owner` alive as long as any copy of this object.
  TraceBuffer(base::Bytes bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  [[nodiscard]] static TraceBuffer from_vector(std::vector<std::uint8_t> bytes);
  [[nodiscard]] static base::Result<TraceBuffer> map_file(const std::string& path);  // read-only mmap
  [[nodiscard]] TraceBuffer slice(std::size_t offset, std::size_t size) const;       // shares the owner

  [[nodiscard]] base::Bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

 private:
  base::Bytes bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace ptkit::trace
