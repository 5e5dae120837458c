#include "time/record_track.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "trace/branch_record.h"

namespace ptkit::time {
namespace {

constexpr std::uint64_t kMaxRecordError = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::uint64_t RecordTrack::tsc_at(std::uint64_t index) const noexcept {
  const std::size_t at =
      static_cast<std::size_t>(index) * sizeof(trace::BranchRecord) + offsetof(trace::BranchRecord, tsc);
  return base::load_le<8>(records_.data() + at);
}

// Advances to the records after end_, up to the next one with a time.
void RecordTrack::step() noexcept {
  const std::uint64_t count = records_.size() / sizeof(trace::BranchRecord);
  if (high_known_) {
    low_ = high_;
    low_known_ = true;
  }
  high_known_ = false;
  begin_ = end_;
  while (end_ < count && !high_known_) {
    const std::uint64_t tsc = tsc_at(end_++);
    high_known_ = tsc != 0;
    // Times that go back give no limits in between.
    if (high_known_) high_ = std::max(tsc, low_known_ ? low_ : 0);
  }
  if (end_ == begin_) end_ = std::numeric_limits<std::uint64_t>::max();  // after the last record
}

TimeRange RecordTrack::at(std::uint64_t number) noexcept {
  if (number < begin_) *this = RecordTrack(records_);
  while (number >= end_) step();
  if (!low_known_) return {};
  const std::uint64_t error = high_known_ ? std::min(high_ - low_, kMaxRecordError) : kMaxRecordError;
  return {low_, static_cast<std::uint32_t>(error), TimeSource::RECORD, true};
}

}  // namespace ptkit::time
