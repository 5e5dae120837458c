// Who ran, by place instead of by time, where the kernel was traced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats {

// By stream and time of a switch: ticks.
using SwitchWidths = std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t>;

// A recorder tells of switches by its clock, which is taken before or after the page tables change, and the
// trace knows its own time only so well. PIP packets say exactly where page tables change. Streams that have
// some get their switches by offset: who comes with other page tables, at the PIP that belongs to it; others
// (threads of one process, the idle task, kernel threads) by time, as before.
struct SwitchPlacing {
  // Some switches may not be told; then page tables of somebody who is not told to run are one, and otherwise
  // they are what he who runs has for a while (vfork(), exec()).
  bool records_lost = false;
  std::vector<bool> processes;  // by space: of programs, not of the kernel's threads
  // By how much a switch may have been earlier or later, where that is more than switch_doubt(). Between the
  // records of its two threads a CPU may be held up (by SMIs, a hypervisor).
  SwitchWidths widths{};
  std::function<bool()> go_on = [] { return true; };  // asked now and then
};

// By how many ticks a record of a switch may be too early or too late.
[[nodiscard]] std::uint64_t switch_doubt(const trace::Clock& clock);

// Reads the streams that are concerned once, some megabytes at a time. False, and nothing is changed, if it
// was told not to go on.
[[nodiscard]] bool place_switches(trace::TraceBundle& bundle, const SwitchPlacing& placing);

// Those that have code in a bundle which is complete.
[[nodiscard]] std::vector<bool> spaces_with_code(const trace::TraceBundle& bundle);

}  // namespace ptkit::formats
