#include "formats/perf_event/sideband.h"

#include <algorithm>
#include <iterator>

#include "code/image/elf/elf.h"
#include "trace/clock.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kMostBuildIdBytes = 20;

std::uint64_t time_of(const Trailer& trailer) { return trailer.time_known ? trailer.time : 0; }

Event event_of(const Record& record, const Trailer& trailer) {
  Event event;
  event.tsc = time_of(trailer);
  event.type = record.type;
  return event;
}

}  // namespace

std::uint64_t tsc_of(const trace::Clock& clock, std::uint64_t ns) {
  return ns == 0 || !clock.perf_time_known ? trace::kTscMin : trace::perf_tsc_from_ns(clock, ns);
}

trace::Departure departure_of(std::uint16_t misc) noexcept {
  if ((misc & kMiscSwitchOut) == 0) return trace::Departure::UNKNOWN;
  return (misc & kMiscSwitchOutPreempt) != 0 ? trace::Departure::PREEMPTED : trace::Departure::WAITS;
}

bool Sideband::take(const Record& record, base::Bytes body, const Trailer& trailer) {
  Fields fields(body);
  switch (record.type) {
    case MMAP:
    case MMAP2:
      return take_mmap(record, fields, trailer);
    case COMM:
      return take_comm(record, fields, trailer);
    case FORK:
    case EXIT:
      return take_fork(record, fields, trailer);
    case ITRACE_START: {
      const std::int64_t pid = fields.id();
      running_.push_back({time_of(trailer), trailer.cpu, pid, fields.id(), false});
      return fields.ok();
    }
    case SWITCH:
    case SWITCH_CPU_WIDE:
      running_.push_back({time_of(trailer), trailer.cpu, trailer.pid, trailer.tid,
                          (record.misc & kMiscSwitchOut) != 0, departure_of(record.misc)});
      return true;
    case LOST:
      fields.skip(8);
      lost_ += fields.u64();
      return fields.ok();
    default:
      return true;
  }
}

bool Sideband::take_switch(const SchedSwitch& event, const Sample& sample) {
  Fields fields(sample.raw);
  fields.skip(event.next_tid_at);
  const std::int64_t tid = fields.id();
  running_.push_back({time_of(sample.trailer), sample.trailer.cpu, trace::kNoId, tid, false});
  return fields.ok();
}

std::optional<Mapped> read_mmap(const Record& record, Fields fields) {
  Mapped out;
  Event& event = out.event;
  event.type = record.type;
  event.pid = fields.id();
  event.tid = fields.id();
  event.address = fields.u64();
  event.size = fields.u64();
  event.file_offset = fields.u64();
  out.is_code = (record.misc & kMiscMmapData) == 0;
  if (record.type == MMAP2) {
    const base::Bytes where = fields.take_bytes(24);
    if ((record.misc & kMiscMmapBuildId) != 0 && fields.ok() && where[0] <= kMostBuildIdBytes) {
      event.build_id = code::image::build_id_text(where.subspan(4, where[0]));
    } else if ((record.misc & kMiscMmapBuildId) == 0) {
      Fields number(where);
      event.device_major = number.u32();
      event.device_minor = number.u32();
      event.inode = number.u64();
    }
    constexpr std::uint32_t kProtExec = 4;
    out.is_code = (fields.u32() & kProtExec) != 0;
    fields.skip(4);
  }
  event.text = fields.text();
  return fields.ok() ? std::optional(std::move(out)) : std::nullopt;
}

bool Sideband::take_mmap(const Record& record, Fields fields, const Trailer& trailer) {
  auto mapped = read_mmap(record, fields);
  if (!mapped) return false;
  Event& event = mapped->event;
  event.tsc = time_of(trailer);
  // The kernel (pid -1) is mapped by kcore: its MMAP records have the ranges of kcore.
  if (mapped->is_code && event.pid >= 0 && event.size != 0) events_.push_back(std::move(event));
  return true;
}

bool Sideband::take_comm(const Record& record, Fields fields, const Trailer& trailer) {
  Event event = event_of(record, trailer);
  event.exec = (record.misc & kMiscCommExec) != 0;
  event.pid = fields.id();
  event.tid = fields.id();
  event.text = fields.text();
  if (fields.ok()) events_.push_back(std::move(event));
  return fields.ok();
}

bool Sideband::take_fork(const Record& record, Fields fields, const Trailer& trailer) {
  Event event = event_of(record, trailer);
  event.exec = record.type == FORK && (record.misc & kMiscForkExec) != 0;
  event.pid = fields.id();
  event.parent_pid = fields.id();
  event.tid = fields.id();
  event.parent_tid = fields.id();
  if (fields.ok()) events_.push_back(std::move(event));
  return fields.ok();
}

void Sideband::update_time(const Trailer& trailer) {
  if (!trailer.time_known || trailer.time == 0 || trailer.cpu < 0)
    return;  // synthesised records have no time
  std::uint64_t& last = last_times_[trailer.cpu];
  last = std::max(last, trailer.time);
}

// The running thread of each CPU is known up to the CPU's last record.
void Sideband::forget_running() {
  for (const auto& [cpu, time] : last_times_) running_.push_back({.tsc = time, .cpu = cpu});
  last_times_.clear();
}

void Sideband::finish(const trace::Clock& clock) {
  for (Event& event : events_) event.tsc = tsc_of(clock, event.tsc);
  for (Running& one : running_) one.tsc = tsc_of(clock, one.tsc);
  std::ranges::stable_sort(events_, {}, &Event::tsc);
  std::ranges::stable_sort(running_, {}, &Running::tsc);
  for (const Event& event : events_) pids_.insert_or_assign(event.tid, event.pid);
  for (const Running& one : running_) {
    if (one.pid >= 0) pids_.insert_or_assign(one.tid, one.pid);
  }
  for (Running& one : running_) {
    if (one.pid < 0 && one.tid > 0) one.pid = pid_of(one.tid);
  }
}

void Sideband::add(std::vector<Event> events) {
  std::ranges::move(events, std::back_inserter(events_));
  std::ranges::stable_sort(events_, {}, &Event::tsc);
}

std::int64_t Sideband::pid_of(std::int64_t tid) const {
  const auto found = pids_.find(tid);
  return found == pids_.end() ? trace::kNoId : found->second;
}

}  // namespace ptkit::formats::perf
