#include "formats/perf_data/owners.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ptkit::formats::perf {

namespace {

// A CPU has one or a few AUX buffers. Each context switch is added to all of them, so that a malicious file
// with many buffers would need much memory.
constexpr std::size_t kMostStreamsOfCpu = 16;

// A stream belongs to a thread from a time or from an offset on.
struct OwnerChange {
  std::size_t stream = 0;
  Owner owner;
};

// Tracks the running thread of one CPU by its SWITCH records.
class RunningThread {
 public:
  // False: a switch out that is recorded after the next thread's switch in.
  bool apply(const Running& one) {
    if (!one.out) {
      before_ = std::exchange(now_, one.tid);
      return true;
    }
    if (one.tid == before_ && one.tid != now_) {
      before_ = trace::kNoId;
      return false;
    }
    before_ = now_ = trace::kNoId;
    return true;
  }

 private:
  std::int64_t now_ = trace::kNoId;
  std::int64_t before_ = trace::kNoId;  // thread without a switch out yet
};

std::vector<OwnerChange> changes_of(const trace::TraceBundle& bundle, const std::vector<Running>& running,
                                    const std::vector<std::vector<Owner>>& owners) {
  std::vector<OwnerChange> changes;
  std::multimap<std::int64_t, std::size_t> by_cpu;
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
    const trace::Stream& stream = bundle.streams[i];
    if (i < owners.size() && !owners[i].empty()) {
      for (const Owner& owner : owners[i]) changes.push_back({i, owner});
    } else if (stream.cpu != trace::kNoId && stream.kind == trace::StreamKind::PROCESSOR_TRACE &&
               by_cpu.count(stream.cpu) < kMostStreamsOfCpu) {
      by_cpu.emplace(stream.cpu, i);
    }
  }
  constexpr std::int64_t kIdle = 0;
  std::map<std::int64_t, RunningThread> now;  // by CPU
  for (const Running& one : running) {
    if (!now[one.cpu].apply(one)) continue;
    const bool no_thread = one.out || one.tid <= kIdle;
    const Owner owner{.tsc = one.tsc,
                      .pid = no_thread ? trace::kNoId : one.pid,
                      .tid = no_thread ? trace::kNoId : one.tid,
                      .departure = one.departure};
    const auto [begin, end] = by_cpu.equal_range(one.cpu);
    for (auto at = begin; at != end; ++at) changes.push_back({at->second, owner});
  }
  std::ranges::stable_sort(changes, {}, [](const OwnerChange& change) { return change.owner.tsc; });
  return changes;
}

void add_switch(trace::Stream& stream, const Owner& owner, Processes& processes) {
  trace::Switch one{.tsc = owner.tsc,
                    .pid = owner.pid,
                    .tid = owner.tid,
                    .offset = owner.offset,
                    .departure = owner.departure};
  if (owner.tid != trace::kNoId) one.space = processes.space_of(owner.pid);
  // A switch out and a switch in at the same time are one switch.
  const bool replaces = !stream.switches_by_offset && !stream.switches.empty() && one.tid != trace::kNoId &&
                        stream.switches.back().tsc == one.tsc && stream.switches.back().tid == trace::kNoId;
  if (replaces) {
    one.departure = stream.switches.back().departure;
    stream.switches.pop_back();
  }
  // A switch to the idle task and a switch out have no thread. The second of two such switches adds nothing.
  const bool still_idle = !stream.switches_by_offset && one.tid == trace::kNoId && !stream.switches.empty() &&
                          stream.switches.back().tid == trace::kNoId;
  if (still_idle) return;
  stream.switches.push_back(one);
}

}  // namespace

// A process' space changes with time, so that events and switches are applied in the order of time.
void assign_owners(trace::TraceBundle& bundle, const Sideband& sideband,
                   const std::vector<std::vector<Owner>>& owners, Processes& processes) {
  for (std::size_t i = 0; i < owners.size(); ++i) {
    bundle.streams[i].switches_by_offset = !owners[i].empty();
  }
  const std::vector<Event>& events = sideband.events();
  for (const Event& one : events) processes.expect(one);
  auto event = events.begin();
  for (const OwnerChange& change : changes_of(bundle, sideband.running(), owners)) {
    for (; event != events.end() && event->tsc <= change.owner.tsc; ++event) processes.apply(*event);
    add_switch(bundle.streams[change.stream], change.owner, processes);
  }
  for (; event != events.end(); ++event) processes.apply(*event);
  for (trace::Stream& stream : bundle.streams) {
    if (stream.switches_by_offset) std::ranges::stable_sort(stream.switches, {}, &trace::Switch::offset);
    if (stream.tid == trace::kNoId) continue;
    if (stream.pid == trace::kNoId) stream.pid = sideband.pid_of(stream.tid);
    stream.space = stream.pid == trace::kNoId ? trace::kAnySpace : processes.space_of(stream.pid);
  }
  processes.finish();
}

}  // namespace ptkit::formats::perf
