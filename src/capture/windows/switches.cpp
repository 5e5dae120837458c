#include "capture/windows/switches.h"

#include <iterator>
#include <utility>

namespace ptkit::capture {

namespace {

constexpr std::size_t kMostWaiting = 4096;  // of a CPU, for a process that may never be known
constexpr std::size_t kMostKept = 1 << 16;  // of a CPU, for branches that may never come

}  // namespace

WindowsSwitches::WindowsSwitches(const std::vector<std::uint32_t>& cpus, std::int64_t pid, bool kernel,
                                 SpaceOf space_of)
    : pid_(pid), kernel_(kernel), space_of_(std::move(space_of)) {
  for (const std::uint32_t cpu : cpus) cpus_[cpu];
}

// A switch of the same time replaces the last one.
void WindowsSwitches::doubt(Cpu& cpu) { cpu.waiting.push_back({cpu.last_tsc, cpu.tid, false}); }

void WindowsSwitches::add_switch(const KernelEvent& event) {
  const auto found = cpus_.find(event.cpu);
  if (found == cpus_.end()) return;
  Cpu& cpu = found->second;
  if (event.tsc < cpu.last_tsc) {
    ++missing_;
    return;
  }
  if (cpu.tid == trace::kNoId) {
    cpu.waiting.push_back({trace::kTscMin, event.old_tid, true});
  } else if (cpu.tid != event.old_tid) {
    ++missing_;
    doubt(cpu);
  } else if (cpu.uncertain) {
    doubt(cpu);
  }
  cpu.uncertain = false;
  cpu.waiting.push_back({event.tsc, event.tid, true});
  if (cpu.waiting.size() > kMostKept) cpu.waiting.pop_front();
  cpu.last_tsc = event.tsc;
  cpu.tid = event.tid;
}

void WindowsSwitches::add_loss() {
  for (auto& [number, cpu] : cpus_) cpu.uncertain = true;
}

// A thread that is known only from later on was there before: the session tells of its threads one by one.
std::int64_t WindowsSwitches::owner_of(const Waiting& one) const {
  if (one.tid == 0) return 0;  // the idle thread
  const auto found = owners_.find(one.tid);
  if (found == owners_.end()) return trace::kNoId;
  const auto& by_time = found->second;
  const auto after = by_time.upper_bound(one.tsc);
  return after == by_time.begin() ? after->second : std::prev(after)->second;
}

std::optional<trace::Switch> WindowsSwitches::switch_to(const Waiting& one, std::int64_t pid) const {
  trace::Switch out;
  out.tsc = one.tsc;
  if (pid_ == 0) {
    // With kernel code there are PIP packets, which correct the process.
    if (!one.certain && !kernel_) return out;
    out.pid = pid;
    if (one.certain) out.tid = one.tid;
    if (pid > 0) out.space = space_of_(pid);
    return out;
  }
  const bool own = pid == pid_;
  // Other processes have no trace. Their threads in this one's address space execute kernel code.
  if (!own && !kernel_ && one.certain) return std::nullopt;
  out.pid = pid_;
  if (own && one.certain) out.tid = one.tid;
  out.space = space_of_(pid_);
  return out;
}

std::vector<trace::Switch> WindowsSwitches::take(std::uint32_t number, bool all) {
  std::vector<trace::Switch> out;
  const auto found = cpus_.find(number);
  if (found == cpus_.end()) return out;
  Cpu& cpu = found->second;
  if (all && std::exchange(cpu.uncertain, false) && cpu.tid != trace::kNoId) doubt(cpu);
  while (!cpu.waiting.empty()) {
    const Waiting& one = cpu.waiting.front();
    const std::int64_t pid = owner_of(one);
    if (pid == trace::kNoId && !all && cpu.waiting.size() <= kMostWaiting) break;
    if (const auto to = switch_to(one, pid)) out.push_back(*to);
    cpu.waiting.pop_front();
  }
  return out;
}

// The idle thread executes no user code: it matters where kernel branches are stored.
trace::Switch WindowsSwitches::common_thread(const Cpu& cpu, std::uint64_t since, std::uint64_t until) const {
  trace::Switch out;
  out.tsc = since;
  if (cpu.waiting.empty() || cpu.waiting.front().tsc > since) return out;
  bool idle = false;
  bool one_thread = true;
  std::optional<Waiting> first;
  for (const Waiting& one : cpu.waiting) {
    if (one.tsc > until) break;
    if (!one.certain) return out;
    if (one.tid == 0) {
      idle = true;
    } else if (!first) {
      first = one;
    } else if (one.tid != first->tid) {
      one_thread = false;
      if (owner_of(one) != owner_of(*first)) return out;
    }
  }
  if (!first) {
    out.pid = out.tid = 0;
    return out;
  }
  const std::int64_t pid = owner_of(*first);
  if (pid > 0) out.space = space_of_(pid);
  if (idle && kernel_) return out;
  out.pid = pid;
  if (one_thread) out.tid = first->tid;
  return out;
}

std::optional<trace::Switch> WindowsSwitches::thread_between(std::uint32_t number, std::uint64_t since,
                                                             std::uint64_t until, bool all) {
  trace::Switch unknown;
  unknown.tsc = since;
  const auto found = cpus_.find(number);
  if (found == cpus_.end()) return unknown;
  Cpu& cpu = found->second;
  if (all && std::exchange(cpu.uncertain, false) && cpu.tid != trace::kNoId) doubt(cpu);
  if (!all && cpu.last_tsc <= until) return std::nullopt;
  while (cpu.waiting.size() > 1 && cpu.waiting[1].tsc <= since) cpu.waiting.pop_front();
  return common_thread(cpu, since, until);
}

}  // namespace ptkit::capture
