// Stream bytes that are produced part by part on first access, into reserved memory or into a file.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "base/system/reserved_memory.h"
#include "base/system/unpacked_file.h"
#include "trace/buffer.h"

namespace ptkit::formats {

class LazyBytes : public trace::ByteSource {
 public:
  // `begins`: offsets of the parts, the first is 0. The last part ends at `size`. `file`: where they are
  // written; null: in memory.
  LazyBytes(std::vector<std::size_t> begins, std::size_t size,
            std::shared_ptr<base::UnpackedFile> file = nullptr);

  [[nodiscard]] bool good() const noexcept { return memory_.good(); }
  [[nodiscard]] base::Bytes bytes() const noexcept { return memory_.bytes(); }
  // Fails if neither the disk nor the free memory has room.
  [[nodiscard]] std::optional<base::Failure> prepare() final;
  void need(std::size_t begin, std::size_t end) noexcept final;
  void forget_before(std::size_t end) noexcept final;

 protected:
  [[nodiscard]] const std::vector<std::size_t>& begins() const noexcept { return begins_; }
  // Called once for each part, and again after forget_before() freed the part. One thread at a time.
  virtual void produce(std::size_t part, std::span<std::uint8_t> out) noexcept = 0;

 private:
  [[nodiscard]] std::size_t end_of(std::size_t part) const noexcept {
    return part + 1 < begins_.size() ? begins_[part + 1] : memory_.bytes().size();
  }

  [[nodiscard]] std::optional<base::Failure> take_room();
  void put(std::size_t part) noexcept;

  std::vector<std::size_t> begins_;
  std::vector<bool> produced_;
  std::size_t forgotten_ = 0;  // index of the first part that forget_before() did not free
  std::atomic<std::size_t> missing_;
  std::mutex mutex_;
  base::ReservedMemory memory_;
  std::shared_ptr<base::UnpackedFile> file_;
  std::uint64_t file_offset_ = 0;
  bool has_room_ = false;
  std::vector<std::uint8_t> scratch_;  // of the largest part, if parts are written to the file
};

// Returns the source's bytes as a TraceBuffer. nullopt: the source could not reserve memory.
template <typename Source>
[[nodiscard]] std::optional<trace::TraceBuffer> buffer_of(std::shared_ptr<Source> source) {
  if (!source->good()) return std::nullopt;
  const base::Bytes bytes = source->bytes();
  return trace::TraceBuffer::from_source(bytes, std::move(source));
}

// Concatenates buffers. A single buffer is returned as it is; several are copied lazily, where they are read.
[[nodiscard]] base::Result<trace::TraceBuffer> join_buffers(std::vector<trace::TraceBuffer> parts);

}  // namespace ptkit::formats
