// Times of MTC packets, from the TMA packets on both sides.
#pragma once

#include "time/point.h"

namespace ptkit::time {

// Relation of CTC to time: at `time` (ticks since the frame's origin) the low bits of CTC became `ctc`.
struct CtcReference {
  bool known = false;
  std::uint64_t ctc = 0;
  double time = 0;
  unsigned bits = 16;  // number of known bits of `ctc`

  template <typename Fields>
  void describe(Fields& fields) {  // for files: see base/fields.h
    fields(known);
    fields(ctc);
    fields(time);
    fields(bits, 64);
  }
};

// The reference of a TMA; not known if the TMA is implausible (erratum SKZ84 corrupts TMA packets).
[[nodiscard]] CtcReference reference_of(const Tma& tma, double tsc, const ClockModel& model) noexcept;

struct MtcBounds {
  double begin = 0;       // time of the opening TSC
  double end = kNoLimit;  // time of the closing TSC; kNoLimit: none
  CtcReference before;    // reference at the opening TSC
  CtcReference after;     // reference at the closing TSC
  // True if whole wraps may be missing although there is no closing TSC. The manual (MTC packet) expects that
  // at most 256 MTC packets in a row are lost. A stream that contradicts it sets this.
  bool wraps = false;
};

struct MtcResult {
  bool usable = false;   // false: the packets contradict each other, and no MTC of the frame is usable
  bool wrapped = false;  // whole wraps are missing
};

// Sets low, high and `usable` of the frame's MTC points. MTC has 8 bits of CTC: where packets were lost or
// the processor slept, multiples of 256 periods may be missing. The closing TSC gives their sum. An MTC that
// such a gap may precede or follow has both times as limits.
MtcResult resolve_mtc(Frame& frame, const MtcBounds& bounds, const ClockModel& model);

}  // namespace ptkit::time
