#include "capture/linux/perf/buffer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/addresses.h"

namespace ptkit::capture {

namespace {

using base::kPageBytes;
constexpr std::uint64_t kGapFlags = PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION;
// Bytes: four records of intel_bts. With less space the kernel starts no tracing, and need not write an AUX
// record.
constexpr std::uint64_t kMinFree = 96;
// Bytes: an AUX record, and the LOST record that may precede it, with their sample_id and a byte more.
constexpr std::uint64_t kAuxRecordSpace = 128;

base::Failure impossible(int cpu, const char* what) {
  return {base::Status::UNSUPPORTED, 0,
          "processor " + std::to_string(cpu) + ": perf's " + what + " has impossible positions"};
}

perf_event_mmap_page& page_of(std::span<std::uint8_t> memory) {
  return *reinterpret_cast<perf_event_mmap_page*>(memory.data());
}

template <typename T>
std::uint64_t* counter(T& member) {  // __u64 and std::uint64_t are different types of equal width
  static_assert(sizeof member == sizeof(std::uint64_t));
  return reinterpret_cast<std::uint64_t*>(&member);
}

}  // namespace

PerfRing::Spans PerfRing::spans(std::uint64_t from, std::uint64_t to) const noexcept {
  const auto bytes = static_cast<std::size_t>(to - from);
  const auto offset = static_cast<std::size_t>(from % memory_.size());
  const base::Bytes first = memory_.subspan(offset, std::min(bytes, memory_.size() - offset));
  return {first, memory_.first(bytes - first.size())};
}

std::vector<std::uint8_t> PerfRing::copy(std::uint64_t from, std::uint64_t to) const {
  const Spans found = spans(from, to);
  std::vector<std::uint8_t> out(found.first.begin(), found.first.end());
  out.insert(out.end(), found.second.begin(), found.second.end());
  return out;
}

// A seqlock (perf_event.h, perf_event_mmap_page): values read while `lock` changed are invalid.
std::optional<trace::Clock> clock_of(const perf_event_mmap_page& page) noexcept {
  constexpr int kTries = 1000;
  constexpr unsigned kBits = 64;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t before = __atomic_load_n(&page.lock, __ATOMIC_ACQUIRE);
    const bool known = page.cap_user_time_zero != 0;
    trace::Clock clock;
    clock.time_shift = page.time_shift;
    clock.time_mult = page.time_mult;
    clock.time_zero = page.time_zero;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (__atomic_load_n(&page.lock, __ATOMIC_RELAXED) != before || (before & 1U) != 0) continue;
    if (!known || clock.time_mult == 0 || clock.time_shift >= kBits) return {};
    clock.perf_time_known = true;
    return clock;
  }
  return {};
}

std::vector<std::uint8_t> unrolled(base::Bytes memory, std::uint64_t position, bool& lapped) {
  const auto offset = static_cast<std::size_t>(position % memory.size());
  const base::Bytes after = memory.subspan(offset);
  lapped = lapped || std::any_of(after.rbegin(), after.rend(), [](std::uint8_t byte) { return byte != 0; });
  std::vector<std::uint8_t> out;
  if (lapped) out.assign(after.begin(), after.end());
  const base::Bytes before = memory.first(offset);
  out.insert(out.end(), before.begin(), before.end());
  return out;
}

std::optional<PerfBuffer> PerfBuffer::map(PerfPort& port, int event, int tid, int cpu, const Sizes& sizes,
                                          int& error) {
  const PerfPort::Mapped first = port.map(event, 0, kPageBytes + sizes.records, true);
  error = first.error;
  if (first.bytes.empty()) return {};
  PerfBuffer out(event, tid, cpu, sizes);
  if (sizes.trace == 0) {
    out.attach(first.bytes, {});
    return out;
  }
  page_of(first.bytes).aux_offset = first.bytes.size();
  page_of(first.bytes).aux_size = sizes.trace;
  // A read-only mapping of the AUX area selects overwrite mode: the kernel overwrites AUX data that was not
  // read (rb_alloc_aux() in kernel/events/ring_buffer.c, RING_BUFFER_WRITABLE).
  const PerfPort::Mapped trace = port.map(event, first.bytes.size(), sizes.trace, !sizes.ring);
  error = trace.error;
  if (trace.bytes.empty()) {
    port.unmap(first.bytes);
    return {};
  }
  out.attach(first.bytes, trace.bytes);
  return out;
}

void PerfBuffer::attach(std::span<std::uint8_t> first, std::span<std::uint8_t> trace) {
  page_ = first;
  memory_ = trace;
  perf_event_mmap_page& page = page_of(first);
  records_ =
      PerfRing(base::Bytes(first).subspan(kPageBytes), counter(page.data_head), counter(page.data_tail));
  trace_ = PerfRing(trace, counter(page.aux_head), counter(page.aux_tail));
  if (const auto clock = clock_of(page)) clock_ = *clock;
}

void PerfBuffer::unmap(PerfPort& port) {
  if (!memory_.empty()) port.unmap(memory_);
  port.unmap(page_);
}

void PerfBuffer::set_attr(const formats::perf::Attr& attr, bool switches) {
  reader_.emplace(attr, clock_, switches);
}

void PerfBuffer::set_bts(bool per_thread, bool kernel) {
  const std::uint64_t used = BtsBuffer::used_bytes(trace_.size());
  bts_.emplace(per_thread, kernel, used);
  snapshots_ = SnapshotDelta(used);
  holes_ = formats::RingHoles(used);
}

void PerfBuffer::interrupt() {
  if (bts_) bts_->interrupt();
}

void PerfBuffer::forget(std::int32_t pid, std::uint64_t before_tsc) {
  if (bts_) bts_->forget(pid, before_tsc);
}

ParsedRecords PerfBuffer::read_records() {
  ParsedRecords parsed;
  const std::uint64_t head = records_.head();
  const std::uint64_t tail = records_.tail();
  parsed.is_full = head - tail + kAuxRecordSpace > records_.size();
  if (!records_.holds(head)) {
    ++parsed.bad;
  } else if (head != tail) {
    const std::vector<std::uint8_t> bytes = records_.copy(tail, head);
    // data_head is always at the end of a record: remaining bytes are malformed.
    if (reader_->take(bytes, parsed) != bytes.size()) ++parsed.bad;
  }
  records_.release(head);
  return parsed;
}

void PerfBuffer::count_flags(const AuxRecord& aux) {
  if ((aux.flags & PERF_AUX_FLAG_TRUNCATED) != 0) ++counts_.stops;
  if ((aux.flags & PERF_AUX_FLAG_PARTIAL) != 0) ++counts_.gaps;
  if ((aux.flags & PERF_AUX_FLAG_COLLISION) != 0) ++counts_.collisions;
}

// AUX records are in the order of their data, and the data of a record fits the buffer.
bool PerfBuffer::is_plausible(const AuxRecord& aux) const noexcept {
  const std::uint64_t at = aux.begin - trace_.tail();
  return aux.begin >= recorded_to_ && at <= trace_.size() && aux.bytes <= trace_.size() - at;
}

// The kernel writes AUX records for all AUX data. AUX data [recorded_to_, position) has none, so its records
// were lost. A lost record may have reported a gap before its data (PARTIAL, COLLISION) or a full buffer
// after its data (TRUNCATED).
void PerfBuffer::add_unrecorded(std::uint64_t position) {
  if (position <= recorded_to_) return;
  losses_.push_back({recorded_to_, base::Status::BUFFER_FULL});
  losses_.push_back({position, base::Status::BUFFER_FULL});
  may_be_disabled_ = true;
  recorded_to_ = position;
}

// The end of the AUX data that can be written now: data after `recorded_to` have no AUX record yet.
std::uint64_t PerfBuffer::settled_end(std::uint64_t head, std::uint64_t recorded_to, bool lost) {
  const std::uint64_t awaited_to = std::exchange(awaited_to_, head);
  return lost || recorded_to >= head ? head : std::max(recorded_to, awaited_to);
}

// Whether the buffer has no space left and no AUX record reports that (TRUNCATED). The kernel then traces the
// next thread not at all, and writes no record.
bool PerfBuffer::fills_silently(std::uint64_t head) const {
  if (ring_ || trace_.size() - (head - trace_.tail()) > kMinFree) return false;
  const bool reported = std::any_of(losses_.begin(), losses_.end(), [&](const Loss& loss) {
    return loss.position == head && loss.cause == base::Status::BUFFER_FULL;
  });
  return !reported && std::none_of(pending_aux_.begin(), pending_aux_.end(), [](const AuxRecord& aux) {
    return (aux.flags & PERF_AUX_FLAG_TRUNCATED) != 0;
  });
}

// A thread that is switched in while the buffer is full is not traced. The kernel sets `pending_disable`, so
// the thread's event is disabled when the thread is switched out after the next time that it is traced.
// Events of whole CPUs are never switched.
void PerfBuffer::find_untraced_threads(const ParsedRecords& parsed, bool fills_silently) {
  if (tid_ < 0) return;
  if (fills_silently) full_since_ = last_aux_tsc_;
  for (const AuxRecord& aux : parsed.aux_records) {
    if ((aux.flags & PERF_AUX_FLAG_TRUNCATED) != 0) full_since_ = aux.tsc;
  }
  if (!full_since_) return;
  for (const SystemRecord& record : parsed.records) {
    const bool switched_in = record.kind == SystemRecord::Kind::SWITCH && record.tsc > *full_since_;
    if (switched_in && record.tid > 0) switched_in_while_full_.insert(record.tid);
  }
}

// Moves aux_tail, and computes the next state. A lost record may have been an AUX record with TRUNCATED.
void PerfBuffer::release_space(std::uint64_t end, const ParsedRecords& parsed, bool fills_silently) {
  if (fills_silently) ++counts_.stops;
  last_drain_.had_trace = end != trace_.tail();
  trace_.release(end);
  may_be_disabled_ =
      may_be_disabled_ || fills_silently || parsed.lost != 0 ||
      std::any_of(parsed.aux_records.begin(), parsed.aux_records.end(),
                  [](const AuxRecord& aux) { return (aux.flags & PERF_AUX_FLAG_TRUNCATED) != 0; });
  find_untraced_threads(parsed, fills_silently);
  last_drain_.full = may_be_disabled_ && losses_.empty() && pending_aux_.empty() && end >= awaited_to_;
  last_drain_.was_full = last_drain_.was_full || last_drain_.full;
  // A thread may have been switched in while the buffer was full, until release() above. The next call reads
  // the thread's SWITCH record, so `full_since_` stays set for that call.
  if (!may_be_disabled_) full_since_.reset();
  if (last_drain_.full) may_be_disabled_ = false;
}

// In overwrite mode, aux_offset of an AUX record is the position of the next byte, not of the first one.
void PerfBuffer::add_hole(const AuxRecord& aux) {
  holes_.add_aux_record(aux.begin, (aux.flags & kGapFlags) != 0);
}

// TRUNCATED: trace is missing after the data of the AUX record. PARTIAL, COLLISION: trace is missing
// somewhere in the data, and the loss is put before it.
void PerfBuffer::on_aux_record(const AuxRecord& aux) {
  if (!is_plausible(aux)) {
    ++counts_.bad_records;
    return;
  }
  add_unrecorded(aux.begin);
  recorded_to_ = aux.begin + aux.bytes;
  last_aux_tsc_ = aux.tsc;
  if ((aux.flags & PERF_AUX_FLAG_TRUNCATED) != 0 || switched_in_while_full_.erase(aux.tid) != 0)
    losses_.push_back({aux.begin + aux.bytes, base::Status::BUFFER_FULL});
  if ((aux.flags & kGapFlags) != 0) losses_.push_back({aux.begin, base::Status::NOT_TRACED});
}

void PerfBuffer::write_trace(BundleOutput& output, std::uint64_t from, std::uint64_t to) {
  counts_.bytes += to - from;
  const auto write = [&](std::uint64_t begin, std::uint64_t end) {
    const PerfRing::Spans spans = trace_.spans(begin, end);
    if (!spans.first.empty()) output.data(stream_, spans.first);
    if (!spans.second.empty()) output.data(stream_, spans.second);
  };
  std::stable_sort(losses_.begin(), losses_.end(),
                   [](const Loss& a, const Loss& b) { return a.position < b.position; });
  auto loss = losses_.begin();
  for (; loss != losses_.end() && loss->position <= to; ++loss) {
    const std::uint64_t position = std::max(loss->position, from);
    write(from, position);
    output.loss(stream_, 0, loss->cause);
    from = position;
  }
  losses_.erase(losses_.begin(), loss);
  write(from, to);
}

// ---- branch records

void PerfBuffer::write_branches(BundleOutput& output, const BranchChunk& chunk,
                                std::vector<SystemRecord>& records) {
  if (chunk.records.empty()) return;
  SystemRecord owner;
  owner.kind = SystemRecord::Kind::SWITCH;
  owner.tsc = chunk.tsc;
  owner.pid = chunk.pid;
  owner.tid = chunk.tid;
  owner.offset = counts_.bytes;
  records.push_back(std::move(owner));
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(chunk.records.data()),
                          chunk.records.size() * sizeof(trace::BranchRecord));
  output.data(stream_, bytes);
  counts_.bytes += bytes.size();
}

void PerfBuffer::add_loss(BundleOutput& output, base::Status cause) {
  output.loss(stream_, 0, cause);
  may_be_disabled_ = may_be_disabled_ || cause == base::Status::BUFFER_FULL;
  bts_->interrupt();
}

void PerfBuffer::write_aux_record(BundleOutput& output, const AuxRecord& aux,
                                  std::vector<SystemRecord>& records) {
  if ((aux.flags & kGapFlags) != 0) add_loss(output, base::Status::NOT_TRACED);
  const std::vector<std::uint8_t> bytes = trace_.copy(aux.begin, aux.begin + aux.bytes);
  write_branches(output, bts_->chunk(aux, bytes), records);
  if ((aux.flags & PERF_AUX_FLAG_TRUNCATED) != 0) add_loss(output, base::Status::BUFFER_FULL);
}

// Writes only data that has AUX records. The kernel pads between records, and the padding has old data.
// Returns the end of the data that the kernel may overwrite.
std::uint64_t PerfBuffer::write_bts(BundleOutput& output, std::uint64_t head, bool lost,
                                    std::vector<SystemRecord>& records) {
  std::uint64_t at = trace_.tail();
  auto aux = pending_aux_.begin();
  for (; aux != pending_aux_.end() && aux->begin <= head && aux->bytes <= head - aux->begin; ++aux) {
    if (aux->begin < at) {
      ++counts_.bad_records;
      continue;
    }
    if (!BtsBuffer::is_padding(aux->begin - at)) add_loss(output, base::Status::BUFFER_FULL);
    write_aux_record(output, *aux, records);
    at = aux->begin + aux->bytes;
  }
  const std::uint64_t end = settled_end(head, at, lost);
  if (!BtsBuffer::is_padding(end - at)) add_loss(output, base::Status::BUFFER_FULL);
  pending_aux_.erase(pending_aux_.begin(), aux);
  return end;
}

std::optional<base::Failure> PerfBuffer::drain_bts(BundleOutput& output, std::uint64_t head,
                                                   const ParsedRecords& parsed,
                                                   std::vector<SystemRecord>& records) {
  for (const auto& one : parsed.running) bts_->ran(one);
  if (ring_) {
    for (const AuxRecord& one : parsed.aux_records) {
      bts_->add_ring_record(one);
      add_hole(one);
    }
    return {};
  }
  // The data of a lost AUX record may be as short as padding.
  if (parsed.lost != 0) bts_->interrupt();
  for (const AuxRecord& aux : parsed.aux_records) {
    if (aux.bytes <= trace_.size())
      pending_aux_.push_back(aux);
    else
      ++counts_.bad_records;
  }
  if (!trace_.holds(head)) return impossible(cpu_, "buffer of trace");
  const bool fills = fills_silently(head);
  const std::uint64_t end = write_bts(output, head, parsed.lost != 0 || parsed.is_full, records);
  const bool full = fills && end == head;
  if (full) add_loss(output, base::Status::BUFFER_FULL);
  release_space(end, parsed, full);
  return {};
}

// ---- draining and snapshots

std::optional<base::Failure> PerfBuffer::drain_trace(BundleOutput& output, std::uint64_t head,
                                                     const ParsedRecords& parsed) {
  if (ring_) {
    for (const AuxRecord& one : parsed.aux_records) add_hole(one);
    return {};
  }
  if (!trace_.holds(head)) return impossible(cpu_, "buffer of trace");
  for (const AuxRecord& one : parsed.aux_records) on_aux_record(one);
  const std::uint64_t end = settled_end(head, recorded_to_, parsed.lost != 0 || parsed.is_full);
  add_unrecorded(end);
  const bool full = end == head && fills_silently(head);
  if (full) losses_.push_back({head, base::Status::BUFFER_FULL});
  write_trace(output, trace_.tail(), end);
  release_space(end, parsed, full);
  return {};
}

std::optional<base::Failure> PerfBuffer::drain(BundleOutput& output, std::vector<SystemRecord>& records,
                                               std::vector<FiredEvent>& fired) {
  // aux_head is read first: the records of that data are read afterwards (drawn in buffer.h).
  const std::uint64_t head = memory_.empty() ? 0 : trace_.head();
  ParsedRecords parsed = read_records();
  counts_.lost_records += parsed.lost;
  counts_.throttled += parsed.throttled;
  counts_.bad_records += parsed.bad;
  for (const auto& [type, count] : parsed.unknown) counts_.unknown[type] += count;
  for (const AuxRecord& one : parsed.aux_records) count_flags(one);
  fired.insert(fired.end(), parsed.fired.begin(), parsed.fired.end());
  for (const BranchChunk& stack : parsed.stacks) write_branches(output, stack, records);
  std::optional<base::Failure> failure;
  if (!memory_.empty())
    failure = bts_ ? drain_bts(output, head, parsed, records) : drain_trace(output, head, parsed);
  std::move(parsed.records.begin(), parsed.records.end(), std::back_inserter(records));
  return failure;
}

void PerfBuffer::collect(BundleOutput& output, std::vector<SystemRecord>& records) {
  if (!ring_) return;
  const base::Bytes used =
      base::Bytes(memory_).first(bts_ ? BtsBuffer::used_bytes(memory_.size()) : memory_.size());
  const std::uint64_t position = trace_.head() % used.size();
  const std::vector<std::uint8_t> newest = unrolled(used, position, lapped_);
  const SnapshotDelta::NewBytes fresh = snapshots_.take(newest, lapped_, position);
  if (fresh.lost) output.loss(stream_, 0, base::Status::RING_WRAPPED);
  const std::vector<std::uint64_t> holes = holes_.take_offsets(fresh.bytes, position, fresh.lost);
  if (bts_) {
    if (!holes.empty()) add_loss(output, base::Status::NOT_TRACED);
    for (const BranchChunk& chunk : bts_->chunks_of_snapshot(fresh.bytes))
      write_branches(output, chunk, records);
    return;
  }
  std::size_t from = 0;
  for (const std::uint64_t hole : holes) {
    const auto at = static_cast<std::size_t>(hole);
    if (at != from) output.data(stream_, fresh.bytes.subspan(from, at - from));
    output.loss(stream_, 0, base::Status::NOT_TRACED);
    from = at;
  }
  output.data(stream_, fresh.bytes.subspan(from));
  counts_.bytes += fresh.bytes.size();
}

}  // namespace ptkit::capture
