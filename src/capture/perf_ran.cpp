#include "capture/perf_ran.h"

namespace ptkit::capture {

using formats::perf::Running;

void PerfRan::pass(std::uint64_t tsc) {
  for (; !coming_.empty() && coming_.front().tsc <= tsc; coming_.pop_front()) {
    const Running& one = coming_.front();
    inside_.reset();
    if (one.out || one.tid <= 0) continue;
    inside_ = one;
    several_ = several_ || (found_ && found_->tid != one.tid);
    found_ = one;
  }
}

std::optional<Running> PerfRan::only_one_until(std::uint64_t tsc) {
  pass(tsc);
  const auto only = several_ ? std::nullopt : found_;
  found_ = inside_;
  several_ = false;
  return only;
}

}  // namespace ptkit::capture
