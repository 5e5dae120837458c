#include "capture/linux/perf/running_thread.h"

namespace ptkit::capture {

using formats::perf::Running;

void RunningThread::pass(std::uint64_t tsc) {
  for (; !pending_.empty() && pending_.front().tsc <= tsc; pending_.pop_front()) {
    const Running& one = pending_.front();
    current_.reset();
    if (one.out || one.tid <= 0) continue;
    current_ = one;
    several_ = several_ || (last_ && last_->tid != one.tid);
    last_ = one;
  }
}

std::optional<Running> RunningThread::only_one_until(std::uint64_t tsc) {
  pass(tsc);
  const auto only = several_ ? std::nullopt : last_;
  last_ = current_;
  several_ = false;
  return only;
}

}  // namespace ptkit::capture
