#include "capture/perf_ran.h"

namespace ptkit::capture {

using formats::perf::Running;

std::optional<Running> PerfRan::only_one_until(std::uint64_t tsc) {
  std::optional<Running> found = inside_;
  bool several = false;
  for (; !coming_.empty() && coming_.front().tsc <= tsc; coming_.pop_front()) {
    const Running& one = coming_.front();
    inside_.reset();
    if (one.out || one.tid <= 0) continue;
    inside_ = one;
    several = several || (found && found->tid != one.tid);
    found = one;
  }
  return several ? std::nullopt : found;
}

}  // namespace ptkit::capture
