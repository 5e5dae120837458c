// Any bytes, any clock: no crash, no hang, and time never goes back.
#include <cstdlib>

#include "time/track.h"

namespace {

ptkit::trace::Clock clock_of(std::uint8_t choice) {
  ptkit::trace::Clock clock;
  if ((choice & 1) != 0) {
    clock.tsc_ctc_numerator = 168;
    clock.tsc_ctc_denominator = (choice & 2) != 0 ? 2 : 5;
  }
  clock.mtc_period_known = (choice & 4) != 0;
  clock.mtc_period = choice >> 4;
  clock.max_nonturbo_ratio = (choice & 8) != 0 ? 24 : 0;
  return clock;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const ptkit::base::Bytes stream(data + 2, size - 2);
  ptkit::time::TimeTrack track(stream, clock_of(data[0]), ptkit::packet::errata_for({}));
  const std::uint64_t step = 1 + data[1] % 16U;
  std::uint64_t since = 0;
  std::uint64_t last = 0;
  for (std::uint64_t offset = 0; offset <= stream.size(); offset += step) {
    const ptkit::time::TimeRange range = track.at(since, offset);
    if (range.known && range.tsc < last) std::abort();
    if (range.known) last = range.tsc;
    if (!range.known && (range.tsc != 0 || last != 0)) std::abort();
    since = offset;
  }
  return 0;
}
