// Times of branch records. Only a few records have a time; the others are in between.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "time/track.h"

namespace ptkit::time {

// A recorder takes the time when it reads a record. The record's branch happened not later, and the branches
// of later records not earlier. So the limits of a record are the last time before it, and the first time at
// or after it.
class RecordTrack {
 public:
  explicit RecordTrack(base::Bytes records) noexcept : records_(records) {}

  // Limits of the record with this number and its path. Any order is allowed; ascending order is fast.
  [[nodiscard]] TimeRange at(std::uint64_t number) noexcept;

 private:
  void step() noexcept;
  [[nodiscard]] std::uint64_t tsc_at(std::uint64_t index) const noexcept;

  base::Bytes records_;
  // Only the last record in [begin_, end_) has a time. At the end of the stream it may have
  // none.
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  bool low_known_ = false;
  bool high_known_ = false;
  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

}  // namespace ptkit::time
