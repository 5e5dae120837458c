// Aligns context switches to PIP packets if kernel code was traced: switches get offsets instead of times.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::processes {

// By stream and TSC of a switch: additional skew in ticks.
using SwitchSkews = std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t>;

// A recorder dates context switches by its clock, which it reads before or after CR3 is written, and the
// trace has time of limited precision only. PIP packets are exact (SDM Vol. 3C, "Paging Information Packet"):
//
//   records (TSC)    SWITCH OUT a ........ SWITCH IN b
//                    |<- max_switch_skew() + skews ->|
//   stream           ... a ...   PIP(CR3 of b)   ... b ...
//                                ^ the switch gets the offset after this packet
//
// A thread with other page tables is switched in at the PIP of its page tables. Other threads (of the same
// process, the idle task, kernel threads) are switched in by time.
struct SwitchAlignment {
  // SWITCH records may be missing. Then page tables of a process without a SWITCH record are a switch to the
  // process. Otherwise the running thread has these page tables for a while (vfork(), exec()).
  bool records_lost = false;
  std::vector<bool> processes;  // by space: it belongs to a program, not to a kernel thread
  // Skew of single switches that is larger than max_switch_skew(): an SMI or a hypervisor may interrupt the
  // CPU between the two records.
  SwitchSkews skews{};
  std::function<bool()> go_on = [] { return true; };  // called repeatedly; false cancels
};

// The skew, in ticks, that every SWITCH record may have.
[[nodiscard]] std::uint64_t max_switch_skew(const trace::Clock& clock);

// Reads the streams with such switches once, some megabytes at a time. Returns false, and changes nothing, if
// `placing.go_on` returns false.
[[nodiscard]] bool align_switches_to_pips(trace::TraceBundle& bundle, const SwitchAlignment& options);

// By space: whether it has code. The bundle must be complete.
[[nodiscard]] std::vector<bool> spaces_with_code(const trace::TraceBundle& bundle);

}  // namespace ptkit::processes
