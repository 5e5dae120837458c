// Who ran on a processor between two looks at it. Records come while it runs and for one buffer, so that what
// is past is forgotten; Runs of formats/perf_branches.cpp answers the same for files, where any number of
// buffers look at all that a processor did, each from the beginning. Both have to give the same answers.
#pragma once

#include <deque>
#include <optional>

#include "formats/perf_sideband.h"

namespace ptkit::capture {

class PerfRan {
 public:
  void take(const formats::perf::Running& one) { coming_.push_back(one); }  // in the order of time
  // The only thread that ran since the time that was asked for before; nothing: none is known, or several
  // ran.
  [[nodiscard]] std::optional<formats::perf::Running> only_one_until(std::uint64_t tsc);
  // Nobody will ask for an earlier time: what led there takes no memory any more.
  void pass(std::uint64_t tsc);

 private:
  std::deque<formats::perf::Running> coming_;
  std::optional<formats::perf::Running> inside_;
  std::optional<formats::perf::Running> found_;  // the last one since the look before
  bool several_ = false;
};

}  // namespace ptkit::capture
