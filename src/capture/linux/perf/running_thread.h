// The running thread of one CPU between two queries. This is the online version: records come while the CPU
// runs, one buffer queries, and records before the last query are freed. Runs in
// formats/perf_data/branches.cpp is the offline version: any number of buffers query all records of a CPU.
// Both must give the same answers.
#pragma once

#include <deque>
#include <optional>

#include "formats/perf_event/sideband.h"

namespace ptkit::capture {

class RunningThread {
 public:
  void take(const formats::perf::Running& one) { pending_.push_back(one); }  // in the order of time
  // The only thread that ran from the `tsc` of the last query to this one; nothing: no thread is known, or
  // several ran.
  [[nodiscard]] std::optional<formats::perf::Running> only_one_until(std::uint64_t tsc) {
    pass(tsc);
    const auto only = several_ ? std::nullopt : last_;
    last_ = current_;
    several_ = false;
    return only;
  }
  // Frees the records up to `tsc`: no later query has an earlier time.
  void pass(std::uint64_t tsc) {
    for (; !pending_.empty() && pending_.front().tsc <= tsc; pending_.pop_front()) {
      const formats::perf::Running& one = pending_.front();
      current_.reset();
      if (one.out || one.tid <= 0) continue;
      current_ = one;
      several_ = several_ || (last_ && last_->tid != one.tid);
      last_ = one;
    }
  }

 private:
  std::deque<formats::perf::Running> pending_;
  std::optional<formats::perf::Running> current_;
  std::optional<formats::perf::Running> last_;  // the last thread since the previous query
  bool several_ = false;                        // since the previous query
};

}  // namespace ptkit::capture
