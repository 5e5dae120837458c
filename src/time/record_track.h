// Times of branch records: a few have one, and the others lie in between.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "time/track.h"

namespace ptkit::time {

// The recorder's time of a record is when it took it: the record happened not later, and what follows it not
// earlier. So a record lies between the last time before it and the first one that is its own or behind it.
class RecordTrack {
 public:
  explicit RecordTrack(base::Bytes records) noexcept : records_(records) {}

  // Of the record at this offset, and of what led to it. In any order; quick where it goes on.
  [[nodiscard]] TimeRange at(std::uint64_t offset) noexcept;

 private:
  void step() noexcept;
  [[nodiscard]] std::uint64_t tsc_at(std::uint64_t index) const noexcept;

  base::Bytes records_;
  // Of the records in [begin_, end_) only the last one has a time, unless they are the stream's last ones.
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  bool low_known_ = false;
  bool high_known_ = false;
  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

}  // namespace ptkit::time
