#include "flow/events/stream_traits.h"

#include <algorithm>

namespace ptkit::flow {

bool changes_with_time(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept {
  if (!stream.switches.empty() && !stream.switches_by_offset) return true;
  return std::any_of(bundle.code.begin(), bundle.code.end(), [](const trace::CodeRegion& region) {
    return region.tsc_from != trace::kTscMin || region.tsc_to != trace::kTscMax;
  });
}

}  // namespace ptkit::flow
