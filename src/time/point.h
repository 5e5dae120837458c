// Timing packets of one frame (the span from a TSC packet to the next) and what is known of their times.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "time/track.h"

namespace ptkit::time {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

enum class PointKind : std::uint8_t { TSC, MTC, CYC };

// Times are TSC ticks since the frame's origin, an integer; spans are far below 2^53, so that a double is
// exact enough.
struct Point {
  std::uint64_t first = 0;  // packets at offsets [first, last] were made at the point's time
  std::uint64_t last = 0;
  std::uint64_t value = 0;  // MTC: payload; CYC: cycles
  double low = 0;           // the true time lies in [low, high]
  double high = kNoLimit;
  double weight = 0;  // CYC: least number of ticks since the CYC before
  double margin = 0;  // CYC: what the cycle count may be off, in ticks
  PointKind kind = PointKind::TSC;
  TimeSource source = TimeSource::NONE;
  std::uint8_t ratio =
      0;                // CYC: largest core:bus ratio known to be in force since the CYC before; 0: not known
  bool joined = false;  // MTC, TSC: made in the cycle of the CYC right before
  bool lost = false;    // packets may be missing between the point before and this one
  bool before_tnt = false;  // CYC: `last` is a TNT packet, whose branches need not be of this time
  bool usable = true;       // MTC: its time could be resolved
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
  std::vector<Point> points;  // the first is the opening point if `opened`
  bool opened = false;
  FrameEnd end = FrameEnd::STREAM;
  std::uint64_t end_tsc = 0;  // if end == TSC
  Tma end_tma;
  std::uint8_t next_ratio = 0;  // core:bus ratio at the end
  bool lost_at_end = false;     // packets may be missing after the last point
  std::uint64_t psb = 0;        // offset of the last PSB seen
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
