// Which events are opened, for whom, and which buffers they write.
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "capture/perf_units.h"

namespace ptkit::capture {

namespace {

constexpr int kAll = -1;
constexpr int kMostLooks = 10;  // for threads that begin while we look
constexpr std::uint64_t kMostWatermark = std::uint64_t{1} << 30U;

base::Failure unsupported(std::string what) { return {base::Status::UNSUPPORTED, 0, std::move(what)}; }

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

// As the kernel reads it: "filter 0x1000/0x20@/bin/true,stop 0x2000/0x10@/bin/true".
std::string filter_text(const std::vector<FilterPlace>& filters) {
  std::string text;
  for (const FilterPlace& one : filters) {
    const bool stops = one.kind == FilterRequest::Kind::TRACESTOP;
    text += text.empty() ? "" : ",";
    text += stops ? "stop " : "filter ";
    text += hex(one.path.empty() ? one.first : one.file_offset) + "/" + hex(one.last - one.first + 1);
    if (!one.path.empty()) text += "@" + one.path;
  }
  return text;
}

// Records of who runs, what is mapped and what it is called.
perf_event_attr dummy_attr(const perf_event_attr& unit) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = unit.sample_type;
  attr.sample_id_all = attr.exclude_kernel = attr.exclude_hv = 1;
  attr.mmap = attr.mmap2 = attr.build_id = 1;
  attr.comm = attr.comm_exec = attr.task = 1;
  attr.inherit = unit.inherit;
  attr.inherit_thread = unit.inherit_thread;
  return attr;
}

formats::perf::Attr records_attr(const perf_event_attr& attr) {
  formats::perf::Attr out;
  out.type = attr.type;
  out.config = attr.config;
  out.sample_type = attr.sample_type;
  out.flags = std::uint64_t{1} << formats::perf::kSampleIdAll;
  return out;
}

}  // namespace

void PerfUnits::close_all() {
  for (const Opened& one : opened_) port_->close(one.event);
  opened_.clear();
}

PerfUnits::Problem PerfUnits::open_all(int pid) {
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
  std::vector<int> seen;
  for (int look = 0; look < kMostLooks; ++look) {
    bool any = false;
    for (const int tid : port_->threads(pid)) {
      if (std::find(seen.begin(), seen.end(), tid) != seen.end()) continue;
      any = true;
      seen.push_back(tid);
      if (options_.hardware.per_thread) {
        if (auto failure = open_one(tid, kAll, look > 0)) return failure;
        continue;
      }
      for (const std::uint32_t cpu : unit_.cpus) {
        if (auto failure = open_one(tid, static_cast<int>(cpu), look > 0)) return failure;
      }
    }
    if (!any) break;
  }
  if (opened_.empty()) return open_refusal(*port_, scope(), ESRCH).failure();
  return {};
}

PerfUnits::Problem PerfUnits::open_one(int tid, int cpu, bool may_be_followed) {
  perf_event_attr attr = event_attr(event_, unit_.type);
  const bool inherits = tid != kAll && cpu != kAll;
  attr.inherit = inherits ? 1 : 0;
  attr.inherit_thread = inherits && !options_.hardware.children ? 1 : 0;
  // It wakes us up, and interrupts, so often.
  if (!sizes_.ring)
    attr.aux_watermark = static_cast<std::uint32_t>(std::min(sizes_.trace / 4, kMostWatermark));
  const int event = port_->open(attr, tid, cpu);
  if (event >= 0) {
    opened_.push_back({event, tid, cpu});
    return {};
  }
  // One that has an event of its parent's by now, or has ended.
  const bool is_extra = may_be_followed || (!opened_.empty() && tid != kAll);
  if (is_extra && (event == -EBUSY || event == -ESRCH)) return {};
  PerfScope where = scope();
  where.cpu = cpu;
  return open_refusal(*port_, where, -event).failure();
}

PerfUnits::Problem PerfUnits::set_filters(const std::vector<FilterPlace>& filters) {
  if (filters.empty()) return {};
  if (filters.size() > unit_.filters) return too_many_filters(filters.size(), unit_.filters);
  const std::string text = filter_text(filters);
  for (const Opened& one : opened_) {
    const int error =
        port_->request(one.event, PERF_EVENT_IOC_SET_FILTER, reinterpret_cast<std::uintptr_t>(text.c_str()));
    if (error != 0) return filter_refusal(text, scope(), error).failure();
  }
  return {};
}

// ---- buffers

const PerfBuffer* PerfUnits::buffer_of(const Opened& one) const {
  const auto at = std::find_if(buffers_.begin(), buffers_.end(), [&](const PerfBuffer& buffer) {
    return one.cpu != kAll ? buffer.cpu() == one.cpu : buffer.tid() == one.tid;
  });
  return at == buffers_.end() ? nullptr : &*at;
}

// How many are needed.
std::size_t PerfUnits::count_buffers() const {
  std::set<std::pair<int, int>> places;
  for (const Opened& one : opened_) places.emplace(one.cpu, one.cpu != kAll ? kAll : one.tid);
  return places.size();
}

// 0, or the errno; then there is none.
int PerfUnits::map_buffers() {
  for (const Opened& one : opened_) {
    if (buffer_of(one) != nullptr) continue;
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
  for (const Opened& one : opened_) {
    const PerfBuffer* buffer = buffer_of(one);
    if (buffer->event() == one.event) continue;
    if (auto failure = send_to(one.event, *buffer)) return failure;
  }
  for (const PerfBuffer& buffer : buffers_) waiting_.push_back(buffer.event());
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

PerfUnits::Problem PerfUnits::open_sideband() {
  const perf_event_attr unit = event_attr(event_, unit_.type);
  const bool by_switches = !options_.hardware.per_thread;
  for (PerfBuffer& buffer : buffers_) buffer.set_attr(records_attr(unit), by_switches);
  for (const Opened& one : opened_) {
    perf_event_attr attr = dummy_attr(unit);
    attr.inherit = one.tid != kAll && one.cpu != kAll ? 1 : 0;
    attr.inherit_thread = attr.inherit != 0 && !options_.hardware.children ? 1 : 0;
    attr.context_switch = by_switches ? 1 : 0;
    const int event = open_dummy(attr, one.tid, one.cpu);
    if (event == -ESRCH) continue;
    if (event < 0) return open_refusal(*port_, scope(), -event).failure();
    dummies_.push_back(event);
    if (auto failure = send_to(event, *buffer_of(one))) return failure;
  }
  if (event_.kernel) open_kernel_sideband();
  return {};
}

// The kernel changes its code on behalf of whoever runs, so whole processors have to be asked.
void PerfUnits::open_kernel_sideband() {
  bool all = true;
  for (const PerfBuffer& buffer : buffers_) {
    perf_event_attr attr = dummy_attr(event_attr(event_, unit_.type));
    attr.mmap = attr.mmap2 = attr.build_id = attr.comm = attr.comm_exec = attr.task = 0;
    attr.ksymbol = attr.text_poke = 1;
    const int event = buffer.cpu() == kAll ? -EINVAL : port_->open(attr, kAll, buffer.cpu());
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
}

}  // namespace ptkit::capture
