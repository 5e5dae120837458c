// Which events are opened, for whom, and which buffers they write.
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "capture/perf_units.h"
#include "capture/refusals.h"

namespace ptkit::capture {

namespace {

constexpr int kAll = -1;
constexpr int kMostLooks = 10;  // for threads that begin while we look
constexpr std::uint64_t kMostWatermark = std::uint64_t{1} << 30U;
// Of a piece of what a whole processor stored it is known who ran only if nobody else did.
constexpr std::uint64_t kShortPieces = std::uint64_t{64} << 10U;

// A buffer is a processor's, or else a thread's.
std::pair<int, int> place_of(int tid, int cpu) { return {cpu, cpu != kAll ? kAll : tid}; }

formats::perf::Attr records_attr(const perf_event_attr& attr) {
  formats::perf::Attr out;
  out.type = attr.type;
  out.config = attr.config;
  out.sample_type = attr.sample_type;
  out.branch_type = attr.branch_sample_type;
  out.flags = std::uint64_t{1} << formats::perf::kSampleIdAll;
  return out;
}

}  // namespace

void PerfUnits::close_all() {
  for (const Opened& one : opened_) port_->close(one.event);
  opened_.clear();
}

PerfUnits::Problem PerfUnits::open_all(int pid) {
  busy_.clear();
  too_fast_ = false;
  if (pid != 0) return open_threads(pid);
  const std::vector<std::uint32_t>& chosen = options_.hardware.cpus;
  for (const std::uint32_t cpu : chosen.empty() ? unit_.cpus : chosen) {
    if (auto failure = open_one(kAll, static_cast<int>(cpu), false)) return failure;
  }
  return {};
}

// Threads that begin meanwhile are followed by what was opened for those that began them, or are found by
// looking again.
PerfUnits::Problem PerfUnits::open_threads(int pid) {
  std::set<int> seen;
  bool any = true;
  for (int look = 0; look < kMostLooks && any; ++look) {
    any = false;
    for (const int tid : port_->threads(pid)) {
      if (!seen.insert(tid).second) continue;
      any = true;
      if (options_.hardware.per_thread) {
        if (auto failure = open_one(tid, kAll, look > 0)) return failure;
        continue;
      }
      for (const std::uint32_t cpu : unit_.cpus) {
        if (auto failure = open_one(tid, static_cast<int>(cpu), look > 0)) return failure;
      }
    }
  }
  too_fast_ = any;
  if (opened_.empty()) return open_refusal(*port_, scope(), busy_.empty() ? ESRCH : EBUSY).failure();
  return {};
}

// Who was asked for, and is not traced.
void PerfUnits::tell_who_is_missing() {
  if (!busy_.empty()) {
    constexpr std::size_t kMostNames = 10;
    std::string names;
    std::size_t count = 0;
    for (const int tid : busy_) {
      if (count++ == kMostNames) break;
      names += (names.empty() ? "" : ", ") + std::to_string(tid);
    }
    if (busy_.size() > kMostNames) names += ", ...";
    warnings_.push_back(
        "Of process " + std::to_string(pid_) + ' ' + plural(busy_.size(), "thread") + " (" + names +
        ") could not be traced, or not on all processors: somebody else traces there already; end that, and "
        "record again.");
  }
  if (too_fast_) {
    warnings_.push_back("Process " + std::to_string(pid_) +
                        " began threads while its threads were looked for, again and again: some may not be "
                        "traced; record from the program's beginning, or whole processors.");
  }
}

// Cycles of each kind of core are another event.
PerfUnits::Problem PerfUnits::open_one(int tid, int cpu, bool may_be_followed) {
  for (const perf_event_attr& attr : events_on(attr_, cores_, cpu)) {
    if (auto failure = open_event(attr, tid, cpu, may_be_followed)) return failure;
  }
  return {};
}

PerfUnits::Problem PerfUnits::open_event(perf_event_attr attr, int tid, int cpu, bool may_be_followed) {
  const bool inherits = tid != kAll && cpu != kAll;
  attr.inherit = inherits ? 1 : 0;
  attr.inherit_thread = inherits && !options_.hardware.children ? 1 : 0;
  // It wakes us up, and interrupts, so often.
  if (!sizes_.ring) {
    const std::uint64_t most = records(Recorded::STORE) && tid == kAll ? kShortPieces : kMostWatermark;
    attr.aux_watermark = static_cast<std::uint32_t>(std::min(sizes_.trace / 4, most));
  }
  const int event = port_->open(attr, tid, cpu);
  if (event >= 0) {
    const bool again = !opened_.empty() && opened_.back().tid == tid && opened_.back().cpu == cpu;
    opened_.push_back({event, tid, cpu, again});
    return {};
  }
  if (tid != kAll && event == -ESRCH) return {};  // it has ended
  if (tid != kAll && event == -EBUSY) {
    // One that began meanwhile has an event of its parent's; any other is somebody else's.
    if (!may_be_followed || !inherits) busy_.insert(tid);
    return {};
  }
  PerfScope where = scope();
  where.cpu = cpu;
  if (event == -EINVAL) return invalid_refusal(*port_, attr, tid, cpu, where).failure();
  return open_refusal(*port_, where, -event).failure();
}

// ---- buffers

// How many are needed.
std::size_t PerfUnits::count_buffers() const {
  std::set<std::pair<int, int>> places;
  for (const Opened& one : opened_) places.insert(place_of(one.tid, one.cpu));
  return places.size();
}

// 0, or the errno; then there is none.
int PerfUnits::map_buffers() {
  std::map<std::pair<int, int>, std::size_t> places;
  for (Opened& one : opened_) {
    const auto [at, fresh] = places.try_emplace(place_of(one.tid, one.cpu), buffers_.size());
    one.buffer = at->second;
    if (!fresh) continue;
    int error = 0;
    auto buffer = PerfBuffer::map(*port_, one.event, one.tid, one.cpu, sizes_, error);
    if (!buffer) {
      for (PerfBuffer& other : buffers_) other.unmap(*port_);
      buffers_.clear();
      return error;
    }
    buffers_.push_back(std::move(*buffer));
  }
  return 0;
}

// All events of a processor, or of a thread, write the buffer of the first one.
PerfUnits::Problem PerfUnits::share_buffers() {
  writers_.assign(buffers_.size(), {});
  for (const Opened& one : opened_) {
    const PerfBuffer& buffer = buffers_[one.buffer];
    writers_[one.buffer].push_back(one.event);
    if (buffer.event() == one.event) continue;
    if (auto failure = send_to(one.event, buffer)) return failure;
  }
  return {};
}

PerfUnits::Problem PerfUnits::send_to(int event, const PerfBuffer& buffer) {
  const auto to = static_cast<std::uintptr_t>(buffer.event());
  const int error = port_->request(event, PERF_EVENT_IOC_SET_OUTPUT, to);
  if (error == 0) return {};
  return unsupported(std::string("perf's events cannot share a buffer: ") + std::strerror(error));
}

// ---- records

// What an older kernel does not know is left out, newest first.
int PerfUnits::open_dummy(perf_event_attr attr, int tid, int cpu) {
  int event = port_->open(attr, tid, cpu);
  if (event == -EINVAL && attr.build_id != 0) {
    attr.build_id = 0;
    event = port_->open(attr, tid, cpu);
  }
  return event;
}

// It counts nothing.
perf_event_attr PerfUnits::dummy() const {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = attr_.sample_type & ~std::uint64_t{PERF_SAMPLE_BRANCH_STACK};
  attr.sample_id_all = attr.exclude_kernel = attr.exclude_hv = 1;
  return attr;
}

PerfUnits::Problem PerfUnits::open_sideband() {
  const HardwareOptions& hardware = options_.hardware;
  const bool packets = records(Recorded::PACKETS);
  const bool store = records(Recorded::STORE);
  for (PerfBuffer& buffer : buffers_) {
    buffer.set_attr(records_attr(attr_), packets && !hardware.per_thread);
    if (store) buffer.has_stored(!hardware.whole_cpus(), hardware.kernel);
  }
  // Samples, and what is stored by a thread, say whose they are.
  const bool switches = packets ? !hardware.per_thread : store && hardware.whole_cpus();
  for (const Opened& one : opened_) {
    if (one.again) continue;
    if (auto failure = open_dummy_for(one, switches)) return failure;
    if (store) restart_at_exec(one);
  }
  return hardware.kernel ? open_kernel_sideband() : Problem();
}

// Records of who runs, what is mapped and what it is called.
PerfUnits::Problem PerfUnits::open_dummy_for(const Opened& one, bool switches) {
  perf_event_attr attr = dummy();
  attr.mmap = attr.mmap2 = attr.build_id = 1;
  attr.comm = attr.comm_exec = attr.task = 1;
  attr.inherit = one.tid != kAll && one.cpu != kAll ? 1 : 0;
  attr.inherit_thread = attr.inherit != 0 && !options_.hardware.children ? 1 : 0;
  attr.context_switch = switches ? 1 : 0;
  const int event = open_dummy(attr, one.tid, one.cpu);
  if (event == -ESRCH) return {};
  if (event == -EINVAL) {
    return unsupported(
        "this kernel cannot tell of switches, names and mappings as ptkit asks for it (perf's records); use "
        "Linux 4.3 or newer");
  }
  if (event < 0) return open_refusal(*port_, scope(), -event).failure();
  dummies_.push_back(event);
  return send_to(event, buffers_[one.buffer]);
}

// Where an event begins with another program, the kernel stops and starts all of the thread: so it tells how
// far the program before had come. Without that a piece may have branches of both.
void PerfUnits::restart_at_exec(const Opened& one) {
  if (one.tid == kAll) return;
  perf_event_attr attr = dummy();
  attr.disabled = attr.enable_on_exec = 1;
  attr.inherit = one.cpu != kAll ? 1 : 0;
  attr.inherit_thread = attr.inherit != 0 && !options_.hardware.children ? 1 : 0;
  const int event = port_->open(attr, one.tid, one.cpu);
  if (event >= 0) dummies_.push_back(event);
  if (event >= 0 || event == -ESRCH || std::exchange(exec_told_, true)) return;
  warnings_.push_back(
      std::string("The kernel does not end a piece where a process executes another program (") +
      std::strerror(-event) +
      "): branches of a program may be joined with those of the next one, and taken for its.");
}

// The kernel changes its code on behalf of whoever runs, so whole processors have to be asked.
PerfUnits::Problem PerfUnits::open_kernel_sideband() {
  bool all = true;
  for (const PerfBuffer& buffer : buffers_) {
    perf_event_attr attr = dummy();
    attr.ksymbol = attr.text_poke = 1;
    const int event = buffer.cpu() == kAll ? -EINVAL : port_->open(attr, kAll, buffer.cpu());
    if (event == -EMFILE || event == -ENFILE) return open_refusal(*port_, scope(), -event).failure();
    all = all && event >= 0;
    if (event < 0) continue;
    dummies_.push_back(event);
    all = all && !send_to(event, buffer);
  }
  if (!all) {
    warnings_.emplace_back(
        "The kernel does not tell here when it changes its own code: rows of kernel code may be wrong or "
        "missing.");
  }
  return {};
}

}  // namespace ptkit::capture
