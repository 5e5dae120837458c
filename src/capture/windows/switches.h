// The thread of each CPU over time, made of ETW's context switches.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "capture/windows/kernel_events.h"
#include "trace/bundle.h"

namespace ptkit::capture {

class WindowsSwitches {
 public:
  // The address space of a process.
  using SpaceOf = std::function<trace::SpaceId(std::int64_t pid)>;

  // `cpus`: those that are recorded. `pid`: the process that is traced by CR3; 0: all processes. `kernel`:
  // kernel code is traced, which other processes' threads may execute in the address space of this one.
  WindowsSwitches(const std::vector<std::uint32_t>& cpus, std::int64_t pid, bool kernel, SpaceOf space_of);

  // Thread `tid` belongs to process `pid` from `tsc` on. Numbers of threads are used again.
  void add_thread(std::int64_t pid, std::int64_t tid, std::uint64_t tsc) { owners_[tid][tsc] = pid; }
  void add_switch(const KernelEvent& event);
  // Events were lost: what ran on any CPU since its last switch is not certain.
  void add_loss();

  // The switches of a CPU since the last call. A switch to a thread of an unknown process, and those after
  // it, are kept back until its process is known, unless `all`.
  [[nodiscard]] std::vector<trace::Switch> take(std::uint32_t cpu, bool all);

  // The thread of the branches that a CPU stored from `since` to `until`, its process and space, as far as
  // they are the same for all of them. Nothing: events have not come that far yet, and more will come, unless
  // `all`. For CPUs without calls of take(); `since` does not go back.
  [[nodiscard]] std::optional<trace::Switch> thread_between(std::uint32_t cpu, std::uint64_t since,
                                                            std::uint64_t until, bool all);

  // Switches to another thread than the one that the next switch left, or that came too late.
  [[nodiscard]] std::uint64_t missing() const noexcept { return missing_; }

 private:
  struct Waiting {
    std::uint64_t tsc = 0;
    std::int64_t tid = 0;
    bool certain = true;  // false: another thread may have run after this one
  };
  struct Cpu {
    std::deque<Waiting> waiting;
    std::uint64_t last_tsc = trace::kTscMin;
    std::int64_t tid = trace::kNoId;  // that runs; kNoId: no switch was there yet
    bool uncertain = false;           // events were lost since the last switch
  };

  [[nodiscard]] std::int64_t owner_of(const Waiting& one) const;
  [[nodiscard]] trace::Switch common_thread(const Cpu& cpu, std::uint64_t since, std::uint64_t until) const;
  [[nodiscard]] std::optional<trace::Switch> switch_to(const Waiting& one, std::int64_t pid) const;
  static void doubt(Cpu& cpu);

  std::int64_t pid_;
  bool kernel_;
  SpaceOf space_of_;
  std::map<std::uint32_t, Cpu> cpus_;
  // By thread: its processes, by the time from which it belongs to them.
  std::map<std::int64_t, std::map<std::uint64_t, std::int64_t>> owners_;
  std::uint64_t missing_ = 0;
};

}  // namespace ptkit::capture
