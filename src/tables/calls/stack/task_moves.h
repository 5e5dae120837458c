// Threads that go on in the stream of another processor: a stream does not show what they did there.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::tables::calls {

class TaskMoves {
 public:
  // Of the threads of a stream. None, unless it is one of several processors, and the kernel was traced.
  TaskMoves(const trace::TraceBundle& bundle, std::uint32_t stream);

  [[nodiscard]] bool empty() const noexcept { return arrivals_.empty(); }
  // Another stream has the thread between two times, in TSC ticks.
  [[nodiscard]] bool was_elsewhere(std::int64_t tid, std::uint64_t from, std::uint64_t until) const;

 private:
  std::vector<std::pair<std::int64_t, std::uint64_t>>
      arrivals_;  // threads and times in other streams; sorted
};

}  // namespace ptkit::tables::calls
