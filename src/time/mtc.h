// Times of MTC packets, from the TMA on either side of them.
#pragma once

#include "time/point.h"

namespace ptkit::time {

// What ties CTC to time: at `time` (ticks since the frame's origin) the low bits of CTC became `ctc`.
struct CtcReference {
  bool known = false;
  std::uint64_t ctc = 0;
  double time = 0;
  unsigned bits = 16;  // of `ctc` that are known

  template <typename Fields>
  void describe(Fields& fields) {  // for files: see base/fields.h
    fields(known);
    fields(ctc);
    fields(time);
    fields(bits, 64);
  }
};

// The reference that a TMA gives; not known if the TMA cannot be true (erratum SKZ84 corrupts them).
[[nodiscard]] CtcReference reference_of(const Tma& tma, double tsc, const ClockModel& model) noexcept;

struct MtcBounds {
  double begin = 0;       // the opening TSC
  double end = kNoLimit;  // the closing TSC; kNoLimit: none
  CtcReference before;    // of the opening TSC
  CtcReference after;     // of the closing TSC
  // Without a closing TSC: may whole wraps be missing? The manual (MTC packet) expects that no more than 256
  // MTC packets in a row are lost; a stream that showed otherwise is not believed.
  bool wraps = false;
};

struct MtcResult {
  bool usable = false;   // false: the packets contradict each other; no MTC of the frame is usable
  bool wrapped = false;  // whole wraps are missing
};

// Sets low, high and `usable` of the frame's MTC points. MTC holds 8 bits of CTC: where packets were lost or
// the processor slept, multiples of 256 periods may be missing, which show in sum at the closing TSC. An MTC
// that such a gap may precede or follow gets both as limits.
MtcResult resolve_mtc(Frame& frame, const MtcBounds& bounds, const ClockModel& model);

}  // namespace ptkit::time
