#include "tables/calls/stack/task_moves.h"

#include <algorithm>

#include "ptkit/rtit_regs.h"

namespace ptkit::tables::calls {

TaskMoves::TaskMoves(const trace::TraceBundle& bundle, std::uint32_t stream) {
  const trace::Configuration& configuration = bundle.configuration;
  const bool has_kernel = configuration.rtit_ctl_known && (configuration.rtit_ctl >> PT_CTL_OS & 1U) != 0;
  const trace::Stream& own = bundle.streams[stream];
  if (!has_kernel || own.cpu == trace::kNoId) return;
  std::vector<std::int64_t> tids;
  for (const trace::Switch& one : own.switches) {
    if (one.tid > 0) tids.push_back(one.tid);
  }
  std::sort(tids.begin(), tids.end());
  tids.erase(std::unique(tids.begin(), tids.end()), tids.end());
  for (const trace::Stream& other : bundle.streams) {
    if (&other == &own || other.cpu == own.cpu) continue;
    for (const trace::Switch& one : other.switches) {
      if (one.tsc != 0 && std::binary_search(tids.begin(), tids.end(), one.tid))
        arrivals_.emplace_back(one.tid, one.tsc);
    }
  }
  std::sort(arrivals_.begin(), arrivals_.end());
}

bool TaskMoves::was_elsewhere(std::int64_t tid, std::uint64_t from, std::uint64_t until) const {
  const auto next = std::upper_bound(arrivals_.begin(), arrivals_.end(), std::pair{tid, from});
  return next != arrivals_.end() && next->first == tid && next->second < until;
}

}  // namespace ptkit::tables::calls
