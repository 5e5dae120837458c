// Timing packets of a frame (from one TSC packet to the next), and the limits of their times.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "time/track.h"

namespace ptkit::time {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Quality of a time source. The higher rank wins.
enum class Rank : std::uint8_t { NONE, CBR, TSC, MTC, CYC };
[[nodiscard]] constexpr Rank rank_of(TimeSource source) noexcept {
  constexpr std::array<Rank, 5> kRanks = {Rank::NONE, Rank::TSC, Rank::MTC, Rank::CYC, Rank::CBR};
  return kRanks[static_cast<std::size_t>(source)];
}
[[nodiscard]] constexpr TimeSource source_of(Rank rank) noexcept {
  constexpr std::array<TimeSource, 5> kSources = {TimeSource::NONE, TimeSource::CBR, TimeSource::TSC,
                                                  TimeSource::MTC, TimeSource::CYC};
  return kSources[static_cast<std::size_t>(rank)];
}

// Packets at offsets [first, last] have the same time.
struct Extent {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  bool operator==(const Extent&) const = default;
  template <typename Fields>
  void describe(Fields& fields) {  // for files: see base/fields.h
    fields(first);
    fields(last);
  }
};

// A TSC or MTC packet. Times are integer TSC ticks since the frame's origin. They are far below 2^53, so a
// double is exact enough.
struct TscMtcPoint {
  Extent extent;
  std::uint64_t value = 0;  // payload of MTC
  double low = 0;           // the time is in [low, high]
  double high = kNoLimit;
  std::size_t cycles = 0;  // index of the first CYC after it
  TimeSource source = TimeSource::NONE;
  bool mtc = false;
  bool joined = false;  // generated in the cycle of the preceding CYC
  bool lost = false;    // packets may be missing between the preceding point and this one
  bool usable = true;   // MTC: its time is resolved

  bool operator==(const TscMtcPoint&) const = default;
  template <typename Fields>
  void describe(Fields& fields) {  // for files: the point that opens a frame, without a CYC before it
    extent.describe(fields);
    fields(value);
    fields(low);
    fields(high);
    fields(source, TimeSource::CBR);
    fields(mtc);
    fields(joined);
    fields(lost);
    fields(usable);
  }
  [[nodiscard]] bool bounded() const noexcept { return usable && high < kNoLimit; }
  [[nodiscard]] bool exact() const noexcept { return bounded() && high - low <= 4; }
};

// Makes room for `size` elements. Columns never shrink, so that each element is cleared once.
template <typename T>
void grow_to(std::vector<T>& column, std::size_t size) {
  if (column.size() < size) column.resize(size);
}

// The CYC packets of a frame as columns.
struct Cycles {
  enum Flag : std::uint8_t {
    LOST = 1,        // packets may be missing between the preceding point and this one
    BEFORE_TNT = 2,  // `last` is a TNT packet; its branches may have other times
  };

  std::vector<Extent> extent;
  std::vector<double> weight;  // counted cycles; when resolved: minimum of ticks since the preceding CYC
  std::vector<double> margin;  // error of the cycle count, in ticks
  std::vector<double> low;
  std::vector<double> high;
  std::vector<Rank> rank;  // rank of the limits
  // largest core:bus ratio known to be in force since the preceding CYC; 0: unknown
  std::vector<std::uint8_t> ratio;
  std::vector<std::uint8_t> flags;
  std::size_t size = 0;
  bool any_lost = false;
  bool ratios_differ = false;

  void clear() noexcept {
    size = 0;
    any_lost = ratios_differ = false;
  }
  // Makes room for `extra` more elements of the columns that the reader fills.
  void reserve(std::size_t extra) {
    grow_to(extent, size + extra);
    grow_to(weight, size + extra);
    grow_to(ratio, size + extra);
    grow_to(flags, size + extra);
  }
  // Makes room in the columns that the resolver fills.
  void prepare() {
    grow_to(margin, size);
    grow_to(low, size);
    grow_to(high, size);
    grow_to(rank, size);
  }
};

// TSC/MTC alignment: CTC[15:0] at the TSC's time, and the ticks since CTC last changed.
struct Tma {
  bool known = false;
  std::uint16_t ctc = 0;
  std::uint16_t fast = 0;
};

// Reason for the end of a frame.
enum class FrameEnd : std::uint8_t {
  TSC,     // the last point is the next TSC
  CUT,     // the frame is too long without a TSC
  STREAM,  // end of the stream
};

struct Frame {
  std::vector<TscMtcPoint> tsc_mtc_points;  // the first is the opening point if `opened`
  Cycles cycles;
  bool opened = false;
  FrameEnd end = FrameEnd::STREAM;
  std::uint64_t end_tsc = 0;  // if end == TSC
  Tma end_tma;
  std::uint8_t next_ratio = 0;  // core:bus ratio at the end
  bool lost_at_end = false;     // packets may be missing after the last point
  std::uint64_t psb = 0;        // offset of the last PSB
  bool end_in_psb = false;      // end == TSC: the TSC is in the PSB+ at `psb`

  [[nodiscard]] std::size_t points() const noexcept { return tsc_mtc_points.size() + cycles.size; }
  // End index of the CYC packets that follow a TSC or MTC point. They begin at its `cycles`.
  [[nodiscard]] std::size_t cycles_end(std::size_t point) const noexcept {
    return point + 1 < tsc_mtc_points.size() ? tsc_mtc_points[point + 1].cycles : cycles.size;
  }
  [[nodiscard]] bool ends_with_cycles() const noexcept {
    return cycles.size > (tsc_mtc_points.empty() ? 0 : tsc_mtc_points.back().cycles);
  }
  // Extent of the last point, which exists.
  [[nodiscard]] Extent& last_extent() noexcept {
    return ends_with_cycles() ? cycles.extent[cycles.size - 1] : tsc_mtc_points.back().extent;
  }
  [[nodiscard]] double last_low() const noexcept {
    return ends_with_cycles() ? cycles.low[cycles.size - 1] : tsc_mtc_points.back().low;
  }
  [[nodiscard]] double last_high() const noexcept {
    return ends_with_cycles() ? cycles.high[cycles.size - 1] : tsc_mtc_points.back().high;
  }
};

// The branch of a TNT packet that the preceding CYC gives the time of. The manual ("Cycle Packet Semantics")
// says: the first branch. Software encoders often give the time of the packet, which is that of the last
// branch.
enum class TntTime : std::uint8_t { UNKNOWN, FIRST_BRANCH, PACKET };

// Clock parameters, as configured or as inferred from the stream.
struct ClockModel {
  bool mtc_usable = false;
  unsigned mtc_period = 0;     // MTCFreq
  double ratio_numerator = 0;  // TSC ticks per CTC tick
  double ratio_denominator = 1;
  double slop = 0;  // error of an MTC's time, because the ratio is no integer
  // TSC ticks per bus clock; 0: unknown. A core cycle takes bus_ticks / CBR ticks
  double bus_ticks = 0;
  TntTime tnt_time = TntTime::UNKNOWN;
  bool long_tnt = false;  // the stream has TNT-64 packets

  [[nodiscard]] double ctc_ticks(double ctc) const noexcept {
    return ctc * ratio_numerator / ratio_denominator;
  }
  [[nodiscard]] double edge_ticks() const noexcept {
    return ctc_ticks(static_cast<double>(1U << mtc_period));
  }
  [[nodiscard]] double cycle_ticks(std::uint8_t ratio) const noexcept {
    return ratio == 0 ? 0 : bus_ticks / ratio;
  }
};

}  // namespace ptkit::time
