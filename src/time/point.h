// Timing packets of one frame (the span from a TSC packet to the next) and what is known of their times.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "time/buffer.h"
#include "time/track.h"

namespace ptkit::time {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// How good a source is: the better one wins.
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

// Packets at offsets [first, last] were made at one time.
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

// A TSC or MTC packet. Times are TSC ticks since the frame's origin, an integer; spans are far below 2^53, so
// that a double is exact enough.
struct Anchor {
  Extent place;
  std::uint64_t value = 0;  // MTC: payload
  double low = 0;           // the true time lies in [low, high]
  double high = kNoLimit;
  std::size_t cycles = 0;  // index of the first CYC behind it
  TimeSource source = TimeSource::NONE;
  bool mtc = false;
  bool joined = false;  // made in the cycle of the CYC right before
  bool lost = false;    // packets may be missing between the point before and this one
  bool usable = true;   // MTC: its time could be resolved

  bool operator==(const Anchor&) const = default;
  template <typename Fields>
  void describe(Fields& fields) {  // for files, of one that opens a frame: no CYC is before it
    place.describe(fields);
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

// The CYC packets of a frame, column by column.
struct Cycles {
  enum Flag : std::uint8_t {
    LOST = 1,        // packets may be missing between the point before and this one
    BEFORE_TNT = 2,  // `last` is a TNT packet, whose branches need not be of this time
  };

  Buffer<Extent> place;
  Buffer<double> weight;  // cycles as counted; resolved: least number of ticks since the CYC before
  Buffer<double> margin;  // what the cycle count may be off, in ticks
  Buffer<double> low;
  Buffer<double> high;
  Buffer<Rank> rank;  // of what the limits rest on
  Buffer<std::uint8_t>
      ratio;  // largest core:bus ratio known to be in force since the CYC before; 0: not known
  Buffer<std::uint8_t> flags;
  std::size_t size = 0;
  bool any_lost = false;
  bool ratios_differ = false;

  void clear() noexcept {
    size = 0;
    any_lost = ratios_differ = false;
  }
  // Room for `extra` more that the reader fills in.
  void reserve(std::size_t extra) {
    place.grow(size + extra, size);
    weight.grow(size + extra, size);
    ratio.grow(size + extra, size);
    flags.grow(size + extra, size);
  }
  // Room for what the resolver finds out.
  void prepare() {
    margin.grow(size, 0);
    low.grow(size, 0);
    high.grow(size, 0);
    rank.grow(size, 0);
  }
};

// TSC/MTC alignment: CTC[15:0] at the TSC's time and the ticks since CTC last changed.
struct Tma {
  bool known = false;
  std::uint16_t ctc = 0;
  std::uint16_t fast = 0;
};

// Why a frame ends.
enum class FrameEnd : std::uint8_t {
  TSC,     // the last point is the next TSC
  CUT,     // too many points without a TSC
  STREAM,  // nothing follows
};

struct Frame {
  std::vector<Anchor> anchors;  // the first is the opening point if `opened`
  Cycles cycles;
  bool opened = false;
  FrameEnd end = FrameEnd::STREAM;
  std::uint64_t end_tsc = 0;  // if end == TSC
  Tma end_tma;
  std::uint8_t next_ratio = 0;  // core:bus ratio at the end
  bool lost_at_end = false;     // packets may be missing after the last point
  std::uint64_t psb = 0;        // offset of the last PSB seen
  bool end_in_psb = false;      // end == TSC: it stands in the PSB+ at `psb`

  [[nodiscard]] std::size_t points() const noexcept { return anchors.size() + cycles.size; }
  // CYC packets behind an anchor: from its `cycles` to this index.
  [[nodiscard]] std::size_t cycles_end(std::size_t anchor) const noexcept {
    return anchor + 1 < anchors.size() ? anchors[anchor + 1].cycles : cycles.size;
  }
  [[nodiscard]] bool ends_with_cycles() const noexcept {
    return cycles.size > (anchors.empty() ? 0 : anchors.back().cycles);
  }
  // Of the last point; there is one.
  [[nodiscard]] Extent& last_place() noexcept {
    return ends_with_cycles() ? cycles.place[cycles.size - 1] : anchors.back().place;
  }
  [[nodiscard]] double last_low() const noexcept {
    return ends_with_cycles() ? cycles.low[cycles.size - 1] : anchors.back().low;
  }
  [[nodiscard]] double last_high() const noexcept {
    return ends_with_cycles() ? cycles.high[cycles.size - 1] : anchors.back().high;
  }
};

// What branches of a TNT packet the CYC right before it tells about. The manual ("Cycle Packet Semantics")
// says: the first; encoders in software often give the time at which the packet was made, that is, of the
// last.
enum class TntTime : std::uint8_t { UNKNOWN, FIRST_BRANCH, PACKET };

// Clock parameters in use: as configured, or inferred from the stream.
struct ClockModel {
  bool mtc_usable = false;
  unsigned mtc_period = 0;     // MTCFreq
  double ratio_numerator = 0;  // TSC ticks per CTC tick
  double ratio_denominator = 1;
  double slop = 0;       // what an MTC's time may be off because the ratio is no integer
  double bus_ticks = 0;  // TSC ticks per bus clock; 0: not known. A core cycle takes bus_ticks / CBR ticks
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
