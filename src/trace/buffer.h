// Trace bytes with shared ownership: of a mapped file, a vector, foreign memory, or a source that produces
// the bytes on demand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::trace {

class TraceBuffer;

// Produces bytes in its own memory at their first use. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // See TraceBuffer.
  [[nodiscard]] virtual std::optional<base::Failure> prepare() { return std::nullopt; }
  // Produces bytes [begin, end). They never change afterwards.
  virtual void need(std::size_t begin, std::size_t end) noexcept = 0;
  // See TraceBuffer. again() returns nullopt if there is no memory. forget_before() applies to buffers of
  // again().
  [[nodiscard]] virtual std::optional<TraceBuffer> again() const = 0;
  virtual void forget_before(std::size_t end) noexcept = 0;
};

class TraceBuffer {
 public:
  TraceBuffer() = default;
  // Borrows `bytes`, keeping `owner` alive as long as any copy of this object.
  TraceBuffer(base::Bytes bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  [[nodiscard]] static TraceBuffer from_vector(std::vector<std::uint8_t> bytes);
  // `bytes` is the memory of `source`, which produces them.
  [[nodiscard]] static TraceBuffer from_source(base::Bytes bytes, std::shared_ptr<ByteSource> source);
  [[nodiscard]] static base::Result<TraceBuffer> map_file(const std::string& path);  // read-only mmap
  [[nodiscard]] TraceBuffer slice(std::size_t offset, std::size_t size) const;       // shares the owner

  // Takes the memory that the bytes need. Without this call, bytes() and part() take it, and cannot report a
  // failure.
  [[nodiscard]] std::optional<base::Failure> prepare() const {
    return source_ == nullptr ? std::nullopt : source_->prepare();
  }
  [[nodiscard]] base::Bytes bytes() const noexcept {
    if (source_ != nullptr) source_->need(0, bytes_.size());
    return bytes_;
  }
  // Bytes [begin, end) only.
  [[nodiscard]] base::Bytes part(std::size_t begin, std::size_t end) const noexcept;
  // This memory for a caller that reads no more of it than part() of this buffer has produced.
  [[nodiscard]] TraceBuffer in_parts() const { return {bytes_, owner_}; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  // A source produces the bytes, and checks them.
  [[nodiscard]] bool has_source() const noexcept { return source_ != nullptr; }

  // These bytes for a caller that reads them once, on one thread. A source produces them in
  // separate memory, which forget_before() frees.
  [[nodiscard]] TraceBuffer again() const;
  // The caller no longer reads bytes before `end`, unless part() returns them again. Has no effect on shared
  // buffers.
  void forget_before(std::size_t end) const noexcept {
    if (forgets_) source_->forget_before(end);
  }

 private:
  base::Bytes bytes_;
  std::shared_ptr<const void> owner_;
  ByteSource* source_ = nullptr;  // owner_ owns it
  bool forgets_ = false;
};

}  // namespace ptkit::trace
