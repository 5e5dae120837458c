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

 protected:
  // Once for each piece, by one thread at a time.
  virtual void make(std::size_t piece, std::span<std::uint8_t> out) noexcept = 0;

 private:
  std::vector<std::size_t> begins_;
  std::vector<bool> made_;
  std::atomic<std::size_t> missing_;
  std::mutex mutex_;
  Room room_;
};

// Parts one behind the other. Copied where they are needed, if there are several.
[[nodiscard]] base::Result<trace::TraceBuffer> join_parts(std::vector<trace::TraceBuffer> parts);

}  // namespace ptkit::formats
