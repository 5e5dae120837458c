#include "capture/linux/perf/records.h"

#include <sys/sysmacros.h>

#include <utility>

#include "capture/linux/process/tsc_clock.h"
#include "formats/perf_event/sample.h"
#include "trace/branch_records.h"
#include "trace/clock.h"

namespace ptkit::capture {

namespace {

using formats::perf::Fields;
using formats::perf::Record;
using formats::perf::Trailer;
using RecordKind = SystemRecord::Kind;
namespace perf = formats::perf;

constexpr std::uint32_t kLostSamples = 13;
constexpr std::uint32_t kThrottle = 5;
constexpr std::uint32_t kUnthrottle = 6;
constexpr std::uint16_t kUnregister = 1;   // KSYMBOL
constexpr std::size_t kTriggerBytes = 32;  // a sample with IDENTIFIER, TID, TIME and CPU only

std::int32_t narrow(std::int64_t id) { return static_cast<std::int32_t>(id); }

RecordKind kind_of(std::uint32_t type) {
  switch (type) {
    case perf::COMM:
      return RecordKind::COMM;
    case perf::FORK:
      return RecordKind::FORK;
    case perf::EXIT:
      return RecordKind::EXIT;
    default:
      return RecordKind::MMAP;
  }
}

// A COMM record with PERF_RECORD_MISC_COMM_EXEC gives two records: EXEC and COMM.
void add_event(const perf::Event& event, SystemRecord out, ParsedRecords& parsed) {
  out.pid = narrow(event.pid);
  out.tid = narrow(event.tid);
  out.parent_pid = narrow(event.parent_pid);
  out.parent_tid = narrow(event.parent_tid);
  out.status = -1;  // EXIT: perf does not record it
  if (event.exec) {
    out.kind = RecordKind::EXEC;
    parsed.records.push_back(out);
  }
  out.kind = kind_of(event.type);
  out.address = event.address;
  out.bytes = event.size;
  out.file_offset = event.file_offset;
  out.text = event.text;
  out.build_id = event.build_id;
  parsed.records.push_back(std::move(out));
}

// Adds device and inode of an MMAP2 record, which has them instead of a build-id.
void add_file(const Record& record, Fields fields, SystemRecord& out) {
  constexpr std::uint16_t kByBuildId = 1U << 14U;
  if (record.type != perf::MMAP2 || (record.misc & kByBuildId) != 0) return;
  fields.skip(32);  // process, thread, address, length, offset
  const auto major = static_cast<unsigned>(fields.u32());
  const std::uint64_t device = makedev(major, static_cast<unsigned>(fields.u32()));
  const std::uint64_t inode = fields.u64();
  if (!fields.ok()) return;
  out.device = device;
  out.inode = inode;
}

bool take_ksymbol(Fields fields, SystemRecord out, ParsedRecords& parsed) {
  out.kind = RecordKind::KSYMBOL;
  out.address = fields.u64();
  out.bytes = fields.u32();
  fields.skip(2);  // ksym_type: BPF or OOL
  const bool gone = (fields.u16() & kUnregister) != 0;
  if (!fields.ok()) return false;
  out.text = fields.text();
  if (!gone) parsed.records.push_back(std::move(out));
  return true;
}

bool take_text_poke(Fields fields, SystemRecord out, ParsedRecords& parsed) {
  out.kind = RecordKind::TEXT_POKE;
  out.address = fields.u64();
  const std::size_t before = fields.u16();
  const std::size_t after = fields.u16();
  const base::Bytes old_code = fields.take_bytes(before);
  const base::Bytes new_code = fields.take_bytes(after);
  if (!fields.ok()) return false;
  out.old_code.assign(old_code.begin(), old_code.end());
  out.new_code.assign(new_code.begin(), new_code.end());
  parsed.records.push_back(std::move(out));
  return true;
}

}  // namespace

PerfRecords::PerfRecords(perf::Attr attr, const trace::Clock& clock, bool switches)
    : attrs_{std::move(attr)}, trailers_(attrs_), clock_(clock), switches_(switches) {}

// If perf's clock is not convertible to TSC: the TSC at which the record is read.
std::uint64_t PerfRecords::tsc_of(const Trailer& trailer) const {
  return clock_.perf_time_known && trailer.time_known ? trace::perf_tsc_from_ns(clock_, trailer.time)
                                                      : read_tsc();
}

std::size_t PerfRecords::take(base::Bytes bytes, ParsedRecords& parsed) {
  const perf::Walked walked = perf::walk(bytes, 0, false, [&](const Record& record) {
    if (!take_record(record, parsed)) ++parsed.bad;
    return true;
  });
  return walked.end;
}

bool PerfRecords::take_record(const Record& record, ParsedRecords& parsed) {
  if (record.type == perf::SAMPLE) return take_sample(record.body, parsed);
  const auto trailer = trailers_.read(record);
  if (!trailer) return false;
  const base::Bytes body = record.body.first(record.body.size() - trailer->bytes);
  SystemRecord out;
  out.tsc = tsc_of(*trailer);
  out.cpu = static_cast<std::uint32_t>(trailer->cpu);
  out.pid = narrow(trailer->pid);
  out.tid = narrow(trailer->tid);
  switch (record.type) {
    case perf::AUX:
      return take_aux(body, out, parsed);
    case perf::KSYMBOL:
      return take_ksymbol(Fields(body), std::move(out), parsed);
    case perf::TEXT_POKE:
      return take_text_poke(Fields(body), std::move(out), parsed);
    case kLostSamples:
    case kThrottle:
      ++parsed.throttled;
      return true;
    case kUnthrottle:
      return true;
    case perf::MMAP:
    case perf::MMAP2:
    case perf::COMM:
    case perf::FORK:
    case perf::EXIT:
    case perf::ITRACE_START:
    case perf::SWITCH:
    case perf::SWITCH_CPU_WIDE:
    case perf::LOST:
      return take_sideband(record, body, *trailer, out, parsed);
    default:
      ++parsed.unknown[record.type];
      return true;
  }
}

// A sample of a trigger's event, or of a branch stack.
bool PerfRecords::take_sample(base::Bytes body, ParsedRecords& parsed) const {
  const perf::Attr& attr = attrs_.front();
  if (!attr.has(perf::SAMPLE_BRANCH_STACK) || body.size() <= kTriggerBytes) {
    return on_fired_event(Fields(body), parsed);
  }
  const auto sample = perf::parse_sample(attr, body);
  if (!sample) return false;
  BranchChunk chunk{tsc_of(sample->trailer), narrow(sample->trailer.pid), narrow(sample->trailer.tid), {}};
  const bool whole = trace::has_every_branch(attr.branch_type);
  trace::append_branch_stack(sample->branches, chunk.tsc, whole, chunk.records);
  // Some processors store the newest branch of a full stack twice.
  if (whole && trace::is_lbr_depth(chunk.records.size()) && trace::newest_is_copy(chunk.records, 0))
    chunk.records.back().flags |= trace::RECORD_MAY_REPEAT;
  parsed.stacks.push_back(std::move(chunk));
  return true;
}

bool PerfRecords::on_fired_event(Fields fields, ParsedRecords& parsed) const {
  FiredEvent hit;
  hit.event = fields.u64();
  Trailer trailer;
  trailer.pid = fields.u32();
  fields.skip(4);  // the thread
  trailer.time = fields.u64();
  trailer.time_known = true;
  hit.pid = narrow(trailer.pid);
  hit.tsc = tsc_of(trailer);
  if (fields.ok()) parsed.fired.push_back(hit);
  return fields.ok();
}

bool PerfRecords::take_sideband(const Record& record, base::Bytes body, const Trailer& trailer,
                                const SystemRecord& common, ParsedRecords& parsed) {
  perf::Sideband found;
  if (!found.take(record, body, trailer)) return false;
  parsed.lost += found.lost();
  // A thread that exits has no SWITCH OUT record, as the kernel removes its events before. EXIT replaces it.
  if (record.type == perf::EXIT) {
    last_out_ = common.tsc;
    departure_ = trace::Departure::WAITS;
  }
  SystemRecord with_file = common;
  add_file(record, Fields(body), with_file);
  for (const perf::Event& event : found.events()) add_event(event, with_file, parsed);
  for (const perf::Running& one : found.running()) {
    // ITRACE_START names the thread that ran when tracing began. It counts before the first SWITCH IN only.
    if (record.type == perf::ITRACE_START && any_switch_) continue;
    if (!switches_) {
      parsed.running.push_back(one);
      parsed.running.back().tsc = common.tsc;
      continue;
    }
    SystemRecord out = common;
    out.pid = narrow(one.pid);
    out.tid = narrow(one.tid);
    take_switch(one, std::move(out), parsed);
  }
  return true;
}

bool PerfRecords::take_aux(base::Bytes body, const SystemRecord& common, ParsedRecords& parsed) {
  Fields fields(body);
  AuxRecord aux;
  aux.begin = fields.u64();
  aux.bytes = fields.u64();
  aux.flags = fields.u64();
  aux.tsc = common.tsc;
  aux.pid = common.pid;
  aux.tid = common.tid;
  if (fields.ok()) parsed.aux_records.push_back(aux);
  return fields.ok();
}

// The kernel writes a SWITCH IN record a little after tracing has begun for the next thread, and a SWITCH OUT
// record a little before tracing ends for the last one. The switch is between the two: its time is the
// middle.
void PerfRecords::take_switch(const perf::Running& running, SystemRecord out, ParsedRecords& parsed) {
  if (running.out) {
    last_out_ = out.tsc;
    departure_ = running.departure;
    return;
  }
  out.departure = std::exchange(departure_, trace::Departure::UNKNOWN);
  out.kind = RecordKind::SWITCH;
  // The first thread has run since tracing began.
  out.since = any_switch_ ? out.tsc : 1;
  if (last_out_ != 0 && last_out_ < out.tsc) out.since = last_out_ + (out.tsc - last_out_) / 2;
  last_out_ = 0;
  any_switch_ = true;
  parsed.records.push_back(std::move(out));
}

}  // namespace ptkit::capture
