#include "formats/perf_data/branches.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "trace/branch_record.h"
#include "trace/branch_records.h"

namespace ptkit::formats::perf {
namespace {

using trace::BranchRecord;

// A process executes a program in this range of time.
struct Program {
  std::uint64_t tsc_from = 0;
  std::uint64_t tsc_to = 0;
  bool narrow = false;  // 32 bits
};

// nullopt: not an x86 program. (x32 programs are ELFCLASS32 files of 64-bit code.)
std::optional<bool> is_narrow(base::Bytes file) {
  constexpr std::size_t kMachineAt = 18;
  if (file.size() < sizeof(Elf32_Ehdr) || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) return std::nullopt;
  const std::uint64_t machine = base::load_le<2>(file.data() + kMachineAt);
  if (machine == EM_X86_64) return false;
  if (machine == EM_386 && file[EI_CLASS] == ELFCLASS32) return true;
  return std::nullopt;
}

// Returns the programs of each space. The first ELF file that is mapped is the program; later ones are its
// libraries.
std::vector<std::vector<Program>> programs_of(const trace::TraceBundle& bundle) {
  std::vector<std::optional<bool>> narrow;
  for (const trace::ImageFile& file : bundle.files) narrow.push_back(is_narrow(file.contents.bytes()));
  std::vector<std::vector<Program>> programs(bundle.spaces.size());
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file < 0 || !narrow[static_cast<std::size_t>(region.file)]) continue;
    std::vector<Program>& known = programs[region.space];
    if (!known.empty() && region.tsc_from < known.back().tsc_to) continue;
    known.push_back({region.tsc_from, region.tsc_to, *narrow[static_cast<std::size_t>(region.file)]});
  }
  return programs;
}

bool runs_narrow(const std::vector<Program>& programs, std::uint64_t tsc) {
  const auto after = std::ranges::upper_bound(programs, tsc, {}, &Program::tsc_from);
  if (programs.empty()) return false;
  return after == programs.begin() ? programs.front().narrow : std::prev(after)->narrow;
}

void mark(trace::Stream& stream, const std::vector<std::vector<Program>>& programs) {
  std::vector<BranchRecord> records(stream.data.size() / sizeof(BranchRecord));
  std::memcpy(records.data(), stream.data.bytes().data(), records.size() * sizeof(BranchRecord));
  // A record's time is when the kernel drained the buffer: records before it have no later time.
  std::vector<std::uint64_t> times(records.size());
  std::uint64_t tsc = trace::kTscMax;
  for (std::size_t i = records.size(); i-- > 0;) times[i] = tsc = records[i].tsc != 0 ? records[i].tsc : tsc;
  trace::SpaceId space = stream.space;
  auto next = stream.switches.begin();
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (; next != stream.switches.end() && next->offset <= i * sizeof(BranchRecord); ++next)
      space = next->space;
    if (records[i].to_ip < kEndOf32BitCode && runs_narrow(programs[space], times[i]))
      records[i].flags |= trace::RECORD_CODE32;
  }
  stream.data = trace::to_buffer(std::move(records));
}

using trace::BranchRecord;

constexpr std::uint32_t kTypeHardware = 0;
constexpr std::uint64_t kBranchInstructions = 4;
constexpr unsigned kFrequency = 10;  // Attr::flag
// PERF_SAMPLE_BRANCH_*
constexpr std::uint64_t kCallStack = 1U << 11U;

// With -e branches -c 1 the kernel uses BTS and makes a sample of each branch.
bool each_is_a_branch(const Attr& attr) {
  return attr.type == kTypeHardware && attr.config == kBranchInstructions && attr.period == 1 &&
         !attr.flag(kFrequency) && attr.has(SAMPLE_IP) && attr.has(SAMPLE_ADDR);
}

trace::Stream named(std::int64_t cpu, std::int64_t tid) {
  trace::Stream stream = stream_named(cpu, tid);
  stream.kind = trace::StreamKind::BRANCH_RECORDS;
  return stream;
}

std::uint64_t byte_offset_of(const std::vector<BranchRecord>& records) {
  return records.size() * sizeof(BranchRecord);
}

// Context switches of one CPU, for any number of buffers of it. A query takes logarithmic time, since each
// buffer begins with the oldest switch. (capture/linux/perf/running_thread.h does the same online, for one
// buffer.) Positions count from 1; 0: none.
class SwitchTimeline {
 public:
  // In the order of time.
  void add(const Running& one) {
    const bool inside = !one.out && one.tid > 0;
    if (inside && last_in_ != 0 && all_[last_in_ - 1].running.tid != one.tid) other_in_ = last_in_;
    if (inside) last_in_ = all_.size() + 1;
    all_.push_back({one, last_in_, other_in_});
  }
  // Returns the number of switches up to a time.
  [[nodiscard]] std::size_t count_until(std::uint64_t tsc) const noexcept {
    const auto end =
        std::ranges::upper_bound(all_, tsc, {}, [](const Entry& one) { return one.running.tsc; });
    return static_cast<std::size_t>(end - all_.begin());
  }
  // Returns the only thread that ran between two positions. nullptr: none is known, or several ran.
  [[nodiscard]] const Running* only_thread(std::size_t first, std::size_t last) const noexcept {
    if (last == 0) return nullptr;
    const Entry& end = all_[last - 1];
    const bool known = end.last_in != 0 && end.last_in >= first;
    return known && (end.other_in == 0 || end.other_in < first) ? &all_[end.last_in - 1].running : nullptr;
  }

 private:
  struct Entry {
    Running running;
    std::size_t last_in = 0;   // position of the last switch in, this entry included
    std::size_t other_in = 0;  // position of the last switch in of another thread
  };
  std::vector<Entry> all_;
  std::size_t last_in_ = 0;
  std::size_t other_in_ = 0;
};

// Walks one CPU's context switches in the order of time.
class TimelineCursor {
 public:
  explicit TimelineCursor(const SwitchTimeline& timeline) : timeline_(timeline) {}

  // Returns the only thread that ran since the time of the call before. nullptr: none is known, or several
  // ran.
  [[nodiscard]] const Running* only_thread_until(std::uint64_t tsc) {
    const std::size_t before = at_;
    at_ = std::max(at_, timeline_.count_until(tsc));
    return timeline_.only_thread(before, at_);
  }

 private:
  const SwitchTimeline& timeline_;
  std::size_t at_ = 0;
};

// Converts BTS records to those of a bundle, part by part.
class BtsConverter {
 public:
  explicit BtsConverter(base::Bytes bytes) : bytes_(bytes) {
    records_.reserve(bytes.size() / kBtsRecordBytes);
  }

  void append_until(std::uint64_t offset) {
    const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(offset, bytes_.size()));
    if (end <= at_) return;
    const std::size_t had = records_.size();
    trace::append_bts_aux(bytes_.subspan(at_, end - at_), first_, records_);
    at_ = end;
    first_ = first_ && records_.size() == had;
  }
  void add_loss(trace::KnownLoss loss) {
    append_until(loss.offset);
    loss.offset = byte_offset_of(records_);
    losses.push_back(loss);
    break_path();
  }
  // The next record does not continue at the last record's target.
  void break_path() noexcept { first_ = true; }
  [[nodiscard]] std::vector<BranchRecord>& records() noexcept { return records_; }

  std::vector<trace::KnownLoss> losses;

 private:
  base::Bytes bytes_;
  std::size_t at_ = 0;
  std::vector<BranchRecord> records_;
  bool first_ = true;
};

}  // namespace

SampledBranches::Queue& SampledBranches::queue_of(const Trailer& trailer) {
  return queues_[{trailer.cpu, trailer.cpu == trace::kNoId ? trailer.tid : trace::kNoId}];
}

bool SampledBranches::add_sample(const Attr& attr, const Sample& sample) {
  const bool is_branch = each_is_a_branch(attr) && sample.address != 0;
  if (!is_branch && (sample.branches.empty() || (attr.branch_type & kCallStack) != 0)) return false;
  Queue& queue = queue_of(sample.trailer);
  add_loss(queue);
  const std::size_t had = queue.records.size();
  if (is_branch) {
    add_branch(sample, queue);
  } else {
    add_stack(attr, sample, queue);
  }
  for (std::size_t i = had; sample.is_32_bit && i < queue.records.size(); ++i) {
    if (queue.records[i].to_ip < kEndOf32BitCode) queue.records[i].flags |= trace::RECORD_CODE32;
  }
  const Trailer& trailer = sample.trailer;
  const bool same = !queue.owners.empty() && queue.owners.back().tid == trailer.tid &&
                    queue.owners.back().pid == trailer.pid;
  if (!same && queue.records.size() != had) {
    queue.owners.push_back(
        {.tsc = trailer.time, .pid = trailer.pid, .tid = trailer.tid, .offset = had * sizeof(BranchRecord)});
  }
  return true;
}

// A stack may repeat branches of the stack before. The number of repeated branches is unknown.
void SampledBranches::add_stack(const Attr& attr, const Sample& sample, Queue& queue) {
  const std::size_t had = queue.records.size();
  const bool whole = trace::has_every_branch(attr.branch_type);
  trace::append_branch_stack(sample.branches, sample.trailer.time, whole, queue.records);
  const std::size_t count = queue.records.size() - had;
  largest_ = std::max(largest_, count);
  if (whole && trace::newest_is_copy(queue.records, had))
    queue.copies.emplace_back(queue.records.size() - 1, count);
}

// The kernel drains many BTS records at once and gives all samples the same time. Only the last one keeps it.
void SampledBranches::add_branch(const Sample& sample, Queue& queue) {
  BranchRecord record;
  record.from_ip = sample.ip;
  record.to_ip = sample.address;
  record.tsc = sample.trailer.time;
  if (queue.first) record.flags |= trace::RECORD_FIRST;
  queue.first = false;
  if (!queue.records.empty() && queue.records.back().tsc == record.tsc) queue.records.back().tsc = 0;
  queue.records.push_back(record);
}

void SampledBranches::add_loss(Queue& queue) const {
  if (queue.times_lost != times_lost_ && !queue.first) {
    queue.first = true;
    queue.losses.push_back({byte_offset_of(queue.records), base::Status::BUFFER_FULL, 0});
  }
  queue.times_lost = times_lost_;
}

std::vector<BranchStream> SampledBranches::build(const trace::Clock& clock, std::size_t depth) {
  std::vector<BranchStream> out;
  if (depth == 0 && trace::is_lbr_depth(largest_)) depth = largest_;
  for (auto& [owner, queue] : queues_) {
    add_loss(queue);
    for (BranchRecord& record : queue.records) {
      if (record.tsc != 0) record.tsc = tsc_of(clock, record.tsc);
    }
    for (const auto& [number, count] : queue.copies) {
      if (count != depth) continue;
      queue.records[number].flags |= trace::RECORD_MAY_REPEAT;
      ++may_repeat_;
    }
    for (Owner& one : queue.owners) one.tsc = tsc_of(clock, one.tsc);
    trace::Stream stream = named(owner.first, owner.second);
    stream.losses = std::move(queue.losses);
    stream.data = trace::to_buffer(std::move(queue.records));
    out.push_back({std::move(stream), std::move(queue.owners)});
  }
  queues_.clear();
  return out;
}

namespace {

BranchStream bts_stream(const AuxStream& aux, const SwitchTimeline& timeline, const trace::Clock& clock,
                        bool kernel) {
  BranchStream out{named(aux.stream.cpu, aux.stream.tid), {}};
  TimelineCursor cursor(timeline);
  BtsConverter bts(aux.stream.data.bytes());
  auto loss = aux.stream.losses.begin();
  const auto add_losses_until = [&](std::uint64_t offset) {
    for (; loss != aux.stream.losses.end() && loss->offset <= offset; ++loss) bts.add_loss(*loss);
  };
  for (const Flush& flush : aux.flushes) {
    const std::uint64_t from = byte_offset_of(bts.records());
    add_losses_until(flush.offset);
    bts.append_until(flush.offset);
    // The kernel code that drains the buffer is not recorded. User code continues without a gap.
    if (kernel) bts.break_path();
    const std::uint64_t tsc = tsc_of(clock, flush.ns);
    const Running* const ran = cursor.only_thread_until(tsc);
    Owner owner{.tsc = tsc, .pid = flush.pid, .tid = flush.tid, .offset = from};
    if (!aux.of_task) {
      owner.pid = ran != nullptr ? ran->pid : trace::kNoId;
      owner.tid = ran != nullptr ? ran->tid : trace::kNoId;
    }
    if (byte_offset_of(bts.records()) == from) continue;
    bts.records().back().tsc = tsc;
    out.owners.push_back(owner);
  }
  for (const std::uint64_t begin : aux.snapshots) {
    add_losses_until(begin);
    bts.append_until(begin);
    bts.break_path();
  }
  add_losses_until(trace::kTscMax);
  bts.append_until(aux.stream.data.size());
  trace::infer_prediction_known(bts.records());
  out.stream.losses = std::move(bts.losses);
  out.stream.data = trace::to_buffer(std::move(bts.records()));
  if (aux.stream.cpu == trace::kNoId) out.owners.clear();  // a per-thread stream
  return out;
}

}  // namespace

std::vector<BranchStream> bts_streams(const std::vector<AuxStream>& aux_streams,
                                      const std::vector<Running>& running, const trace::Clock& clock,
                                      bool kernel) {
  std::map<std::int64_t, SwitchTimeline> timelines;
  for (const Running& one : running) timelines[one.cpu].add(one);
  std::vector<BranchStream> out;
  out.reserve(aux_streams.size());
  for (const AuxStream& aux : aux_streams)
    out.push_back(bts_stream(aux, timelines[aux.stream.cpu], clock, kernel));
  return out;
}

void mark_32_bit_code(trace::TraceBundle& bundle) {
  const std::vector<std::vector<Program>> programs = programs_of(bundle);
  const bool any = std::ranges::any_of(programs, [](const std::vector<Program>& of_space) {
    return std::ranges::any_of(of_space, &Program::narrow);
  });
  if (!any) return;
  for (trace::Stream& stream : bundle.streams) {
    if (stream.kind == trace::StreamKind::BRANCH_RECORDS) mark(stream, programs);
  }
}

}  // namespace ptkit::formats::perf
