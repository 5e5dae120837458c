// Trace bytes with an owner: a mapped file, a vector, memory that someone else keeps alive, or a source that
// makes them when they are asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::trace {

class TraceBuffer;

// Makes bytes in memory of its own when they are first needed. For any number of threads.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // On return, bytes [begin, end) are there and do not change any more.
  virtual void need(std::size_t begin, std::size_t end) noexcept = 0;
  // See TraceBuffer. Nothing if there is no room for them; forget_before() is for what again() gave.
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
  // `bytes` is the memory of `source`, which makes them.
  [[nodiscard]] static TraceBuffer from_source(base::Bytes bytes, std::shared_ptr<ByteSource> source);
  [[nodiscard]] static base::Result<TraceBuffer> map_file(const std::string& path);  // read-only mmap
  [[nodiscard]] TraceBuffer slice(std::size_t offset, std::size_t size) const;       // shares the owner

  [[nodiscard]] base::Bytes bytes() const noexcept {
    if (source_ != nullptr) source_->need(0, bytes_.size());
    return bytes_;
  }
  // Bytes [begin, end) only.
  [[nodiscard]] base::Bytes part(std::size_t begin, std::size_t end) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

  // The same bytes for somebody who goes through them once, on one thread: what a source makes of them goes
  // to other memory, which forget_before() gives back.
  [[nodiscard]] TraceBuffer again() const;
  // Bytes before `end` are not looked at any more, unless part() gives them once more. Does nothing to
  // buffers that others use, too.
  void forget_before(std::size_t end) const noexcept {
    if (forgets_) source_->forget_before(end);
  }

 private:
  base::Bytes bytes_;
  std::shared_ptr<const void> owner_;
  ByteSource* source_ = nullptr;  // part of what owner_ keeps alive
  bool forgets_ = false;
};

}  // namespace ptkit::trace
