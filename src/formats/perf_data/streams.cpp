#include "formats/perf_data/streams.h"

#include <algorithm>

#include "formats/common/lazy_bytes.h"
#include "formats/perf_data/overlap.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::uint64_t kPadding = 8;  // perf pads a chunk with zeros to a multiple of 8 bytes
constexpr std::uint64_t kHoles = kAuxPartial | kAuxCollision;

trace::TraceBuffer whole_records(const trace::TraceBuffer& bytes, std::size_t size,
                                 std::size_t record_bytes) {
  return bytes.slice(0, size - size % record_bytes);
}

// Returns true if the chunk's bytes from `begin` on can be padding. Fewer than kPadding bytes count as perf's
// padding without a look at them.
bool is_padding(const trace::TraceBuffer& bytes, std::uint64_t begin) {
  const std::uint64_t size = bytes.size() - begin;
  if (size < kPadding) return true;
  const base::Bytes zeros = bytes.part(begin, begin + std::min(size, kLossZeros));
  return std::ranges::all_of(zeros, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

trace::Stream stream_named(std::int64_t cpu, std::int64_t tid) {
  trace::Stream stream;
  stream.name = cpu != trace::kNoId ? "cpu " : "thread ";
  stream.name += std::to_string(cpu != trace::kNoId ? cpu : tid);
  stream.cpu = cpu;
  stream.tid = tid;
  return stream;
}

bool AuxStreams::add_auxtrace(const Record& auxtrace, trace::TraceBuffer bytes) {
  Fields fields(auxtrace.body);
  fields.skip(8);  // size
  const std::uint64_t begin = fields.u64();
  fields.skip(8);  // reference
  const std::uint32_t number = fields.u32();
  const std::int64_t tid = fields.id();
  const std::int64_t cpu = fields.id();
  if (!fields.ok()) return false;
  Queue& queue = queues_[number];
  queue.tid = tid;
  queue.cpu = cpu;
  if (bytes.size() != 0) queue.chunks.push_back({std::move(bytes), begin, ++order_});
  return true;
}

void AuxStreams::add_sample(trace::TraceBuffer bytes, const Trailer& trailer) {
  const std::int64_t tid = trailer.cpu == trace::kNoId ? trailer.tid : trace::kNoId;
  Queue& queue = samples_[{trailer.cpu, tid}];
  queue.cpu = trailer.cpu;
  queue.tid = tid;
  if (tid != trace::kNoId) queue.pid = trailer.pid;
  queue.chunks.push_back({std::move(bytes), 0, ++order_});
}

bool AuxStreams::add_aux_record(const Record& aux, const Trailer& trailer) {
  Fields fields(aux.body);
  AuxRecord record;
  record.begin = fields.u64();
  record.end = record.begin + fields.u64();
  record.flags = fields.u64();
  record.trailer = trailer;
  if (!fields.ok()) return false;
  if ((record.flags & kAuxPartial) != 0) ++partial_;
  for (AuxRecords* records : {&records_of_cpu_[trailer.cpu], &records_of_tid_[trailer.tid]}) {
    records->all.push_back(record);
    if ((record.flags & kAuxOverwrite) != 0)
      records->of_rings.push_back(
          {record.begin, record.end - record.begin, ++order_, (record.flags & kHoles) != 0});
  }
  return true;
}

AuxStreams::AuxRecords& AuxStreams::records_of(const Queue& queue) {
  return queue.cpu != trace::kNoId ? records_of_cpu_[queue.cpu] : records_of_tid_[queue.tid];
}

void AuxStreams::AuxRecords::sort() {
  for (const AuxRecord& record : all) {
    // A full buffer (TRUNCATED) loses trace after the written range. PARTIAL and COLLISION lose trace within
    // it.
    const bool ring = (record.flags & kAuxOverwrite) != 0;
    if ((record.flags & kAuxTruncated) != 0)
      losses.emplace(record.end, ring ? base::Status::RING_WRAPPED : base::Status::BUFFER_FULL);
    if ((record.flags & kHoles) != 0) losses.emplace(record.begin, base::Status::NOT_TRACED);
  }
  std::ranges::stable_sort(all, {}, &AuxRecord::end);
  const auto same = [](const AuxRecord& a, const AuxRecord& b) { return a.end == b.end; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
}

// The next chunk's begin and the kernel's AUX records give a chunk's end. Its own size may include padding.
void AuxStreams::join(Queue& queue, const AuxRecords& records, std::size_t record_bytes) {
  for (std::size_t i = 0; i < queue.chunks.size(); ++i) {
    AuxChunk& chunk = queue.chunks[i];
    const std::uint64_t padded = chunk.begin + chunk.bytes.size();
    const auto within = [&](std::uint64_t end, std::uint64_t padding) {
      return end <= padded && end + padding > padded && end > chunk.begin;
    };
    const auto record = std::ranges::upper_bound(records.all, padded, {}, &AuxRecord::end);
    const bool last = i + 1 == queue.chunks.size();
    std::uint64_t real = padded;
    if (record != records.all.begin()) {
      const std::uint64_t end = std::prev(record)->end;
      if (within(end, kMostLossPadding) && is_padding(chunk.bytes, end - chunk.begin)) real = end;
    }
    if (!last && within(queue.chunks[i + 1].begin, kPadding)) real = queue.chunks[i + 1].begin;
    chunk.bytes = whole_records(chunk.bytes, static_cast<std::size_t>(real - chunk.begin), record_bytes);
    // perf leaves out the bytes at the ring's end that are too few for a whole BTS record.
    if (last || queue.chunks[i + 1].begin - real < record_bytes) continue;
    AuxChunk& next = queue.chunks[i + 1];
    next.lost = base::Status::RING_WRAPPED;
    next.lost_bytes = next.begin > real ? next.begin - real : 0;
  }
}

// Uses the AUX records since the snapshot before. `padded`: AUX offset of the snapshot's end, padding
// included; nullopt: unknown.
void AuxStreams::find_holes(AuxChunk& chunk, std::optional<std::uint64_t> padded, AuxRecords& records,
                            bool lost) {
  std::uint64_t ring_bytes = 0;
  bool any = false;
  for (; records.passed < records.of_rings.size(); ++records.passed) {
    const RingRecord& record = records.of_rings[records.passed];
    if (record.order > chunk.order) break;
    if (!records.holes) records.holes.emplace(std::max<std::uint64_t>(record.ring_bytes, 1));
    records.holes->add_aux_record(record.head, record.hole);
    ring_bytes = record.ring_bytes;
    any = any || record.hole;
  }
  if (!any) return;
  if (!padded || ring_bytes == 0) {
    chunk.holes = {0};
    return;
  }
  const std::uint64_t after_head = (*padded - records.holes->head()) % ring_bytes;
  const std::uint64_t padding =
      after_head < kPadding ? std::min<std::uint64_t>(after_head, chunk.bytes.size()) : 0;
  const base::Bytes fresh = chunk.bytes.bytes();
  chunk.holes = records.holes->take_offsets(fresh.first(fresh.size() - static_cast<std::size_t>(padding)),
                                            *padded - padding, lost);
}

// Offsets of snapshots do not show the overlap of two snapshots. Their contents do.
void AuxStreams::join_snapshots(Queue& queue, AuxRecords& records, const AuxLayout& layout) {
  trace::TraceBuffer older;
  for (std::size_t i = 0; i < queue.chunks.size(); ++i) {
    AuxChunk& chunk = queue.chunks[i];
    const std::uint64_t padded = chunk.begin + chunk.bytes.size();
    chunk.bytes = whole_records(chunk.bytes, chunk.bytes.size(), layout.record_bytes);
    trace::TraceBuffer whole = chunk.bytes;
    const auto overlap = i == 0 ? std::nullopt : find_overlap(older.bytes(), whole.bytes());
    if (overlap && overlap->repeated % layout.record_bytes == 0) {
      chunk.bytes = whole.slice(overlap->repeated, whole.size() - overlap->repeated);
      trace::TraceBuffer& before = queue.chunks[i - 1].bytes;
      before = before.slice(0, before.size() - std::min(before.size(), overlap->padding));
    } else if (i != 0) {
      chunk.lost = base::Status::RING_WRAPPED;
    }
    const bool known = layout.snapshots && layout.record_bytes == 1;
    find_holes(chunk, known ? std::optional(padded) : std::nullopt, records, !overlap);
    older = std::move(whole);
  }
}

void AuxStreams::add_losses(const Queue& queue, const AuxRecords& records,
                            std::vector<trace::KnownLoss>& losses) {
  const auto& losses_known = records.losses;
  std::uint64_t at = 0;
  std::uint64_t end = 0;  // end of the chunk before
  for (const AuxChunk& chunk : queue.chunks) {
    if (chunk.lost != base::Status::OK) {
      const auto cause = losses_known.lower_bound({end, base::Status::OK});
      const bool cause_known = cause != losses_known.end() && cause->first == end;
      losses.push_back({at, cause_known ? cause->second : chunk.lost, chunk.lost_bytes});
    }
    for (const std::uint64_t hole : chunk.holes)
      losses.push_back({at + std::min<std::uint64_t>(hole, chunk.bytes.size()), base::Status::NOT_TRACED, 0});
    const std::uint64_t limit = chunk.bytes.size() + (&chunk == &queue.chunks.back() ? 1 : 0);
    for (auto loss = losses_known.lower_bound({chunk.begin, base::Status::OK});
         loss != losses_known.end() && loss->first - chunk.begin < limit; ++loss) {
      losses.push_back({at + (loss->first - chunk.begin), loss->second, 0});
    }
    at += chunk.bytes.size();
    end = chunk.begin + chunk.bytes.size();
  }
  std::ranges::stable_sort(losses, {}, &trace::KnownLoss::offset);
}

std::vector<Flush> AuxStreams::flushes_of(const Queue& queue, const AuxRecords& records) {
  std::vector<Flush> flushes;
  std::uint64_t at = 0;
  for (const AuxChunk& chunk : queue.chunks) {
    for (auto record = std::ranges::upper_bound(records.all, chunk.begin, {}, &AuxRecord::end);
         record != records.all.end() && record->end - chunk.begin <= chunk.bytes.size(); ++record) {
      flushes.push_back(
          {at + (record->end - chunk.begin), record->trailer.time, record->trailer.pid, record->trailer.tid});
    }
    at += chunk.bytes.size();
  }
  return flushes;
}

base::Result<AuxStream> AuxStreams::stream_of(Queue& queue, const AuxRecords& records, bool flushes,
                                              bool is_snapshot) {
  AuxStream out;
  trace::Stream& stream = out.stream;
  // perf gives CPU and thread if it opened the event for one task and its children (inherit).
  stream = stream_named(queue.cpu, queue.cpu == trace::kNoId ? queue.tid : trace::kNoId);
  out.of_task = queue.tid != trace::kNoId;
  if (flushes) out.flushes = flushes_of(queue, records);
  stream.pid = queue.pid;
  add_losses(queue, records, stream.losses);
  std::vector<trace::TraceBuffer> parts;
  std::uint64_t at = 0;
  for (AuxChunk& chunk : queue.chunks) {
    if (is_snapshot) out.snapshots.push_back(at);
    at += chunk.bytes.size();
    parts.push_back(std::move(chunk.bytes));
  }
  auto data = join_buffers(std::move(parts));
  if (!data.ok()) return data.failure();
  stream.data = std::move(data.value());
  return out;
}

base::Result<std::vector<AuxStream>> AuxStreams::build(const AuxLayout& layout) {
  std::vector<AuxStream> streams;
  std::vector<std::pair<Queue*, bool>> all;
  for (auto& [number, queue] : queues_) all.emplace_back(&queue, layout.snapshots);
  for (auto& [owner, queue] : samples_) all.emplace_back(&queue, true);
  for (auto& [cpu, records] : records_of_cpu_) records.sort();
  for (auto& [tid, records] : records_of_tid_) records.sort();
  const AuxRecords none;
  for (const auto& [queue, is_snapshot] : all) {
    if (queue->chunks.empty()) continue;
    const AuxRecords& records = is_snapshot ? none : records_of(*queue);
    if (is_snapshot) {
      join_snapshots(*queue, records_of(*queue), layout);
    } else {
      join(*queue, records, layout.record_bytes);
    }
    auto stream = stream_of(*queue, records, layout.flushes, is_snapshot);
    if (!stream.ok()) return stream.failure();
    streams.push_back(std::move(stream.value()));
  }
  return streams;
}

}  // namespace ptkit::formats::perf
