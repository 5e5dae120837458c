// Bytes of a stream that are made piece by piece, when they are first needed, in memory of their own.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "trace/buffer.h"

namespace ptkit::formats {

// Address space: memory is taken where it is written.
class Room {
 public:
  explicit Room(std::size_t size);
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  [[nodiscard]] bool good() const noexcept { return memory_ != nullptr; }
  // Gives back memory of whole pages in [begin, end): they read as zeros.
  void give_back(std::size_t begin, std::size_t end) noexcept;
  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return {memory_, size_}; }

 private:
  std::uint8_t* memory_ = nullptr;
  std::size_t size_;
};

class PiecewiseData : public trace::ByteSource {
 public:
  // Pieces begin at these offsets, the first at 0; the last one ends at `size`.
  PiecewiseData(std::vector<std::size_t> begins, std::size_t size);

  [[nodiscard]] bool good() const noexcept { return room_.good(); }
  [[nodiscard]] base::Bytes bytes() const noexcept { return room_.bytes(); }
  void need(std::size_t begin, std::size_t end) noexcept final;
  void forget_before(std::size_t end) noexcept final;

 protected:
  [[nodiscard]] const std::vector<std::size_t>& begins() const noexcept { return begins_; }
  // Once for each piece, and again where it was forgotten; by one thread at a time.
  virtual void make(std::size_t piece, std::span<std::uint8_t> out) noexcept = 0;

 private:
  [[nodiscard]] std::size_t end_of(std::size_t piece) const noexcept {
    return piece + 1 < begins_.size() ? begins_[piece + 1] : room_.bytes().size();
  }

  std::vector<std::size_t> begins_;
  std::vector<bool> made_;
  std::size_t forgotten_ = 0;  // the pieces before this one
  std::atomic<std::size_t> missing_;
  std::mutex mutex_;
  Room room_;
};

// Of a source that has room: its bytes.
template <typename Source>
[[nodiscard]] std::optional<trace::TraceBuffer> buffer_of(std::shared_ptr<Source> source) {
  if (!source->good()) return std::nullopt;
  const base::Bytes bytes = source->bytes();
  return trace::TraceBuffer::from_source(bytes, std::move(source));
}

// Parts one behind the other. Copied where they are needed, if there are several.
[[nodiscard]] base::Result<trace::TraceBuffer> join_parts(std::vector<trace::TraceBuffer> parts);

}  // namespace ptkit::formats
