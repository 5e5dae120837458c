// Time of rows: for a position in the stream, the interval that contains the time. Reads ahead up to the next
// timing packet that limits the interval, in bounded memory.
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

// Stored in the `tsc_source` column: append only. The best packet that the interval depends on; RECORD: the
// recorder's time of a branch record.
enum class TimeSource : std::uint8_t {
#define PT_TIME_SOURCE(name, value, text) name = value,
#include "time/kinds.def"
};

// The time is in [tsc, tsc + error]; error saturates at 2^32 - 1. Unknown: known == false, tsc == 0.
struct TimeRange {
  std::uint64_t tsc = 0;
  std::uint32_t error = 0;
  TimeSource source = TimeSource::NONE;
  bool known = false;
};

// Position in the stream: after the packet at `since` was generated, and not after the packet at `offset` was
// generated.
struct TimeQuery {
  // Added to `offset`: the packet there is a TNT packet, and the position is before the branch of its first
  // bit; or the packet is a TIP that the bits of such a packet waited for.
  static constexpr std::uint64_t kBeforeFirstBit = std::uint64_t{1} << 63U;

  std::uint64_t since = 0;
  std::uint64_t offset = 0;

  [[nodiscard]] bool before_first_bit() const noexcept { return (offset & kBeforeFirstBit) != 0; }
  [[nodiscard]] std::uint64_t packet() const noexcept { return offset & ~kBeforeFirstBit; }
  bool operator==(const TimeQuery&) const = default;
};

// A packet with known limits of its time.
struct TimePoint {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t number = kNone;  // number of the point in the stream
  std::uint64_t low = 0;         // lower limit of the time
  std::uint64_t estimate = 0;    // most likely time
  bool cycles = false;           // CYC

  [[nodiscard]] bool is_known() const noexcept { return number != kNone; }
};

// The nearest points of a position: the last one before it, and the first one after it.
struct TimePoints {
  TimePoint before;
  TimePoint after;
  bool at_before = false;  // the first row at this position has the time of `before`
  bool at_after = false;   // the last row at this position has the time of `after`
};

// State that a track has from packets that may be far back. A track that begins at a PSB cannot know it.
struct CarriedTime {
  std::uint64_t tsc = 0;          // of the last TSC, with its upper byte
  std::uint8_t ratio = 0;         // core:bus ratio
  std::uint8_t ratio_before = 0;  // another ratio that was in force since the last CYC
  bool wraps_seen = false;        // more than 256 MTC packets in a row were missing
};

struct ClockModel;
class RecordTrack;
class Timeline;

class TimeTrack {
 public:
  // `losses` (by offset): missing bytes. Time continues at the next PSB.
  TimeTrack(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
            std::span<const trace::KnownLoss> losses = {});
  // Of a stream that has times, and was calibrated.
  TimeTrack(base::Bytes stream, const ClockModel& model, const packet::Errata& errata,
            std::span<const trace::KnownLoss> losses);
  // For a stream of branch records: `offset` in queries is the number of a record.
  [[nodiscard]] static TimeTrack of_records(base::Bytes records);
  ~TimeTrack();
  TimeTrack(TimeTrack&&) noexcept;
  TimeTrack& operator=(TimeTrack&&) noexcept;

  // The interval of a row after the packet at `since` and not after the packet at `offset`. For a packet,
  // since == offset. `since` <= `offset`. From call to call neither may go back by more than the last PSB
  // interval. `tsc` never goes back.
  [[nodiscard]] TimeRange at(const TimeQuery& query);
  [[nodiscard]] TimeRange at(std::uint64_t since, std::uint64_t offset) { return at({since, offset}); }
  // Answers successive queries. `out` has room for all answers.
  void at(std::span<const TimeQuery> queries, TimeRange* out);
  // True if the CYC packet before a TNT packet gives the time of its first bit. If not,
  // TimeQuery::kBeforeFirstBit has no effect.
  [[nodiscard]] bool cyc_times_first_bits() const noexcept;

  // The points that limit a position; none in a stream of branch records. The order of queries is restricted
  // as for at().
  [[nodiscard]] TimePoints points(const TimeQuery& asked);

  // The point with this number, between the last results of points(); unknown if it was dropped.
  [[nodiscard]] TimePoint point(std::uint64_t number) const;

  // Returns the largest end such that every packet in [offset, end) is certainly before `tsc` (its tsc +
  // error is less), and skipping queries for these packets changes no answer. Only for point queries (since
  // == offset). Returns `offset` if nothing is certain.
  [[nodiscard]] std::uint64_t all_before_until(std::uint64_t offset, std::uint64_t tsc);

  // No later answer of at() is before `tsc`, as if an earlier answer had been. Only for a stream of packets.
  void not_before(std::uint64_t tsc) noexcept;

  // A track of the same stream that continues from TimeSurvey's state at a PSB+; none if the state is
  // invalid.
  [[nodiscard]] std::optional<TimeTrack> from(base::Bytes state) const;
  // A track of the same stream that begins at a PSB, before anything was asked of this one. `carried`: of a
  // track that has read some of the stream before, as a prediction. From a PSB+ on where both have the same
  // state_at(), both have the same answers.
  [[nodiscard]] TimeTrack begin_at(std::uint64_t psb, const CarriedTime& carried) const;
  // The state at the PSB+ at `psb`, for from(). Empty: unknown, or too far from the last answer.
  [[nodiscard]] std::vector<std::uint8_t> state_at(std::uint64_t psb) const;
  [[nodiscard]] CarriedTime carried() const noexcept;
  // The timing packets as far as they are read; only for a stream of packets.
  [[nodiscard]] Timeline& timeline() noexcept;

 private:
  class Impl;
  explicit TimeTrack(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;            // for packets
  std::unique_ptr<RecordTrack> records_;  // for branch records
};

// Conversion by perf's parameters. 0 if the clock has neither these nor tsc_hz (check clock.perf_time_known
// || clock.tsc_hz).
[[nodiscard]] std::int64_t tsc_to_ns(const trace::Clock& clock, std::uint64_t tsc) noexcept;
[[nodiscard]] std::uint64_t ns_to_tsc(const trace::Clock& clock, std::int64_t ns) noexcept;

}  // namespace ptkit::time
