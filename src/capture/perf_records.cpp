#include "capture/perf_records.h"

#include <sys/sysmacros.h>

#include <utility>

#include "capture/tsc.h"
#include "formats/branch_records.h"
#include "formats/perf_sample.h"
#include "trace/clock.h"

namespace ptkit::capture {

namespace {

using formats::perf::Fields;
using formats::perf::Record;
using formats::perf::Trailer;
using Kind = SystemRecord::Kind;
namespace perf = formats::perf;

constexpr std::uint32_t kLostSamples = 13;
constexpr std::uint32_t kThrottle = 5;
constexpr std::uint32_t kUnthrottle = 6;
constexpr std::uint16_t kUnregister = 1;   // KSYMBOL
constexpr std::size_t kTriggerBytes = 32;  // a sample that has who and when alone

std::int32_t narrow(std::int64_t id) { return static_cast<std::int32_t>(id); }

Kind kind_of(std::uint32_t type) {
  switch (type) {
    case perf::COMM:
      return Kind::NAME;
    case perf::FORK:
      return Kind::FORK;
    case perf::EXIT:
      return Kind::EXIT;
    default:
      return Kind::MAP;
  }
}

// What both EXEC and NAME come of is one COMM.
void add_event(const perf::Event& event, SystemRecord out, PerfTold& told) {
  out.pid = narrow(event.pid);
  out.tid = narrow(event.tid);
  out.parent_pid = narrow(event.parent_pid);
  out.parent_tid = narrow(event.parent_tid);
  out.status = -1;  // of those that end: perf does not tell
  if (event.exec) {
    out.kind = Kind::EXEC;
    told.records.push_back(out);
  }
  out.kind = kind_of(event.type);
  out.address = event.address;
  out.bytes = event.size;
  out.file_offset = event.file_offset;
  out.text = event.text;
  out.build_id = event.build_id;
  told.records.push_back(std::move(out));
}

// Where MMAP2 tells a mapping's file, if that is not by its build-id.
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

bool take_symbol(Fields fields, SystemRecord out, PerfTold& told) {
  out.kind = Kind::KERNEL_CODE;
  out.address = fields.u64();
  out.bytes = fields.u32();
  fields.skip(2);  // of a program for BPF, or another
  const bool gone = (fields.u16() & kUnregister) != 0;
  if (!fields.ok()) return false;
  out.text = fields.text();
  if (!gone) told.records.push_back(std::move(out));
  return true;
}

bool take_poke(Fields fields, SystemRecord out, PerfTold& told) {
  out.kind = Kind::KERNEL_POKE;
  out.address = fields.u64();
  const std::size_t before = fields.u16();
  const std::size_t after = fields.u16();
  const base::Bytes old_code = fields.take_bytes(before);
  const base::Bytes new_code = fields.take_bytes(after);
  if (!fields.ok()) return false;
  out.old_code.assign(old_code.begin(), old_code.end());
  out.new_code.assign(new_code.begin(), new_code.end());
  told.records.push_back(std::move(out));
  return true;
}

}  // namespace

PerfRecords::PerfRecords(perf::Attr attr, const trace::Clock& clock, bool switches)
    : attrs_{std::move(attr)}, trailers_(attrs_), clock_(clock), switches_(switches) {}

// Where perf's times mean nothing, it is when the record was read.
std::uint64_t PerfRecords::tsc_of(const Trailer& who) const {
  return clock_.perf_time_known && who.time_known ? trace::perf_tsc_from_ns(clock_, who.time) : read_tsc();
}

std::size_t PerfRecords::take(base::Bytes bytes, PerfTold& told) {
  const perf::Walked walked = perf::walk(bytes, 0, false, [&](const Record& record) {
    if (!take_one(record, told)) ++told.bad;
    return true;
  });
  return walked.end;
}

bool PerfRecords::take_one(const Record& record, PerfTold& told) {
  if (record.type == perf::SAMPLE) return take_sample(record.body, told);
  const auto who = trailers_.read(record);
  if (!who) return false;
  const base::Bytes body = record.body.first(record.body.size() - who->bytes);
  SystemRecord out;
  out.tsc = tsc_of(*who);
  out.cpu = static_cast<std::uint32_t>(who->cpu);
  out.pid = narrow(who->pid);
  out.tid = narrow(who->tid);
  switch (record.type) {
    case perf::AUX:
      return take_aux(body, out, told);
    case perf::KSYMBOL:
      return take_symbol(Fields(body), std::move(out), told);
    case perf::TEXT_POKE:
      return take_poke(Fields(body), std::move(out), told);
    case kLostSamples:
    case kThrottle:
      ++told.held_back;
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
      return take_sideband(record, body, *who, out, told);
    default:
      ++told.unknown[record.type];
      return true;
  }
}

// Of a trigger, or a branch stack.
bool PerfRecords::take_sample(base::Bytes body, PerfTold& told) const {
  const perf::Attr& attr = attrs_.front();
  if (!attr.has(perf::SAMPLE_BRANCH_STACK) || body.size() <= kTriggerBytes) {
    return take_hit(Fields(body), told);
  }
  const auto sample = perf::parse_sample(attr, body);
  if (!sample) return false;
  BranchPiece piece{tsc_of(sample->who), narrow(sample->who.pid), narrow(sample->who.tid), {}};
  formats::append_branch_stack(sample->branches, piece.tsc, formats::has_every_branch(attr.branch_type),
                               piece.records);
  told.stacks.push_back(std::move(piece));
  return true;
}

bool PerfRecords::take_hit(Fields fields, PerfTold& told) const {
  PerfHit hit;
  hit.event = fields.u64();
  Trailer who;
  who.pid = fields.u32();
  fields.skip(4);  // the thread
  who.time = fields.u64();
  who.time_known = true;
  hit.pid = narrow(who.pid);
  hit.tsc = tsc_of(who);
  if (fields.ok()) told.hits.push_back(hit);
  return fields.ok();
}

bool PerfRecords::take_sideband(const Record& record, base::Bytes body, const Trailer& who,
                                const SystemRecord& common, PerfTold& told) {
  perf::Sideband found;
  if (!found.take(record, body, who)) return false;
  told.lost += found.lost();
  // A thread that ends is not told to go out: its events went before.
  if (record.type == perf::EXIT) last_out_ = common.tsc;
  SystemRecord with_file = common;
  add_file(record, Fields(body), with_file);
  for (const perf::Event& event : found.events()) add_event(event, with_file, told);
  for (const perf::Running& one : found.running()) {
    // Who was here when tracing began is of interest as long as nobody came in.
    if (record.type == perf::ITRACE_START && any_switch_) continue;
    if (!switches_) {
      told.running.push_back(one);
      told.running.back().tsc = common.tsc;
      continue;
    }
    SystemRecord out = common;
    out.pid = narrow(one.pid);
    out.tid = narrow(one.tid);
    take_switch(one.out, std::move(out), told);
  }
  return true;
}

bool PerfRecords::take_aux(base::Bytes body, const SystemRecord& common, PerfTold& told) {
  Fields fields(body);
  AuxNote note;
  note.begin = fields.u64();
  note.bytes = fields.u64();
  note.flags = fields.u64();
  note.tsc = common.tsc;
  note.pid = common.pid;
  note.tid = common.tid;
  if (fields.ok()) told.notes.push_back(note);
  return fields.ok();
}

// The kernel writes them a little after tracing has gone on for who comes in, and a little before it ends for
// who goes out. In between, or right between the two, is the switch.
void PerfRecords::take_switch(bool is_out, SystemRecord out, PerfTold& told) {
  if (is_out) {
    last_out_ = out.tsc;
    return;
  }
  out.kind = Kind::SWITCH;
  // The first one was here from the beginning.
  out.since = any_switch_ ? out.tsc : 1;
  if (last_out_ != 0 && last_out_ < out.tsc) out.since = last_out_ + (out.tsc - last_out_) / 2;
  last_out_ = 0;
  any_switch_ = true;
  told.records.push_back(std::move(out));
}

}  // namespace ptkit::capture
