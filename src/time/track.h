// Time from timing packets: for a place in the stream, the interval in which the true time lies.
// Reads ahead of its user (to the next timing packet that bounds the interval), in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "packet/errata.h"
#include "packet/packet.h"
#include "trace/bundle.h"

namespace ptkit::time {

// Stored in the `tsc_source` column: append only. The best packet that the estimate rests on;
// RECORD: the recorder's time of a branch record.
enum class TimeSource : std::uint8_t { NONE = 0, TSC = 1, MTC = 2, CYC = 3, CBR = 4, RECORD = 5 };

// The true time lies in [tsc, tsc + error]; error saturates at 2^32 - 1. Not known: known == false, tsc == 0.
struct TimeRange {
  std::uint64_t tsc = 0;
  std::uint32_t error = 0;
  TimeSource source = TimeSource::NONE;
  bool known = false;
};

// A place in the stream: what happened after the packet at `since` was made and not after the packet at
// `offset` was.
struct Question {
  // Added to `offset`: the packet there is a TNT packet, and it happened before the branch of its first bit.
  // Or the packet is a TIP that the bits of such a packet waited for.
  static constexpr std::uint64_t kBeforeFirstBit = std::uint64_t{1} << 63U;

  std::uint64_t since = 0;
  std::uint64_t offset = 0;

  [[nodiscard]] bool before_first_bit() const noexcept { return (offset & kBeforeFirstBit) != 0; }
  [[nodiscard]] std::uint64_t packet() const noexcept { return offset & ~kBeforeFirstBit; }
  bool operator==(const Question&) const = default;
};

// A packet of which something is known of the time when it was made.
struct TimePoint {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t number = kNone;  // counts these packets along the stream
  std::uint64_t low = 0;         // the least time
  std::uint64_t likely = 0;      // the most likely time
  bool cycles = false;           // CYC

  [[nodiscard]] bool is_known() const noexcept { return number != kNone; }
};

// The points next to something that happened: the last one before it and the first one after it.
struct TimePoints {
  TimePoint before;
  TimePoint after;
  bool at_before = false;  // the first thing that is asked for at this place happened at `before` itself
  bool at_after = false;   // the last thing that is asked for at this place happened at `after` itself
};

class RecordTrack;

class TimeTrack {
 public:
  // `losses` (by offset): where bytes are missing; time goes on at the next PSB.
  TimeTrack(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
            std::span<const trace::KnownLoss> losses = {});
  // Of a stream of branch records: what is asked of is the records themselves, by `offset`.
  [[nodiscard]] static TimeTrack of_records(base::Bytes records);
  ~TimeTrack();
  TimeTrack(TimeTrack&&) noexcept;
  TimeTrack& operator=(TimeTrack&&) noexcept;

  // The interval of something that happened after the packet at `since` was made and not after the packet at
  // `offset` was. For a packet itself since == offset. `since` <= `offset`; neither may go back from call to
  // call by more than what the last PSB interval spans. `tsc` never goes back.
  [[nodiscard]] TimeRange at(const Question& question);
  [[nodiscard]] TimeRange at(std::uint64_t since, std::uint64_t offset) { return at({since, offset}); }
  // The same for many places, one after the other; `out` has room for as many answers.
  void at(std::span<const Question> questions, TimeRange* out);
  // Does the CYC packet before a TNT packet tell the time of its first bit? If not, Question::kBeforeFirstBit
  // makes no difference.
  [[nodiscard]] bool tells_first_bits() const noexcept;

  // The points that bound what happened at a place; none in a stream of branch records. The same demands on
  // order as at().
  [[nodiscard]] TimePoints points(const Question& asked);

  // The point with this number, which lies between those that points() named last; not known if it has been
  // forgotten.
  [[nodiscard]] TimePoint point(std::uint64_t number) const;

  // For who asks about packets themselves only (since == offset), and only to learn when a time comes: at
  // offsets from `offset` up to the returned one, tsc + error is less than `tsc`, and whether they are asked
  // for or not changes no answer. May be `offset` itself: nothing is certain.
  [[nodiscard]] std::uint64_t quiet_until(std::uint64_t offset, std::uint64_t tsc);

  // A track of the same stream that goes on from what a TimeSurvey said of a PSB+; none if it cannot be true.
  [[nodiscard]] std::optional<TimeTrack> from(base::Bytes state) const;

 private:
  class Impl;
  explicit TimeTrack(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;            // of packets, or
  std::unique_ptr<RecordTrack> records_;  // of records
};

// perf's conversion; 0 if the clock does not know it and has no tsc_hz (check clock.perf_time_known ||
// clock.tsc_hz).
[[nodiscard]] std::int64_t tsc_to_ns(const trace::Clock& clock, std::uint64_t tsc) noexcept;
[[nodiscard]] std::uint64_t ns_to_tsc(const trace::Clock& clock, std::int64_t ns) noexcept;

}  // namespace ptkit::time
