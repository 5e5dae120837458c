#include "formats/perf_export/branches.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fields.h"
#include "formats/perf_data/branches.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

namespace {

using trace::BranchRecord;
using trace::kNoId;

constexpr std::size_t kMostRecords = std::size_t{1} << 18U;   // records of a chunk
constexpr std::size_t kLeastRecords = std::size_t{1} << 12U;  // records of a chunk that ends at a known time
constexpr std::size_t kStepRecords = std::size_t{1} << 15U;   // records between two calls of go_on
constexpr std::uint64_t kPredicted = 1U << 4U;                // flag in a BTS record's third word
constexpr std::uint64_t kApart = 64;                          // distance of AUX offsets of a thread's buffers

// perf drops the last record of a buffer. An empty record is appended, which neither perf nor ptkit shows.
std::uint64_t stored_bytes(std::size_t records) { return records == 0 ? 0 : (records + 1) * kBtsRecordBytes; }

std::size_t count_of(const trace::Stream& stream) { return stream.data.size() / sizeof(BranchRecord); }

}  // namespace

// Reads the branch records of streams forwards, in blocks.
class RecordReader {
 public:
  explicit RecordReader(const trace::TraceBundle& bundle) : reader_(bundle) {}

  [[nodiscard]] BranchRecord at(std::size_t stream, std::size_t number) {
    if (stream != stream_ || number < first_ || number - first_ >= block_.size() / sizeof(BranchRecord)) {
      block_ =
          reader_.part(stream, number * sizeof(BranchRecord), (number + kStepRecords) * sizeof(BranchRecord));
      stream_ = stream;
      first_ = number;
    }
    BranchRecord record;
    std::memcpy(&record, block_.data() + (number - first_) * sizeof record, sizeof record);
    return record;
  }

 private:
  ForwardReader reader_;
  std::size_t stream_ = 0;
  std::size_t first_ = 0;  // index of the block's first record
  base::Bytes block_;
};

namespace {

void put_records(Output& out, RecordReader& reader, std::size_t stream, std::size_t begin, std::size_t end) {
  std::vector<std::uint8_t> stored;
  stored.reserve((end - begin) * kBtsRecordBytes);
  for (std::size_t i = begin; i < end; ++i) {
    const BranchRecord record = reader.at(stream, i);
    base::append_le(stored, record.from_ip);
    base::append_le(stored, record.to_ip);
    base::append_le(stored, (record.flags & trace::RECORD_PREDICTED) != 0 ? kPredicted : 0);
  }
  out.put(stored);
}

}  // namespace

BtsWriter::BtsWriter(const trace::TraceBundle& bundle, const std::vector<Queue>& queues, bool kernel,
                     GoOn go_on)
    : AuxWriter(bundle, std::move(go_on)), kernel_(kernel) {
  RecordReader reader(bundle);
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) split_stream(i, queues[i], reader);
  set_references();
}

std::size_t BtsWriter::queue_of(std::size_t stream, const Queue& owner) {
  const auto [found, added] = numbers_.try_emplace({stream, owner.tid}, queues_.size());
  if (added) {
    queues_.push_back(owner);
    begun_.push_back(false);
    offsets_[owner.tid] += kApart;
  }
  return found->second;
}

// Splits a stream into runs of one thread.
void BtsWriter::split_stream(std::size_t number, const Queue& rest, RecordReader& reader) {
  const trace::Stream& stream = bundle_.streams[number];
  const std::size_t count = count_of(stream);
  std::size_t begin = 0;
  Queue owner = rest;
  for (const trace::Switch& one : stream.switches) {
    const std::size_t at = std::clamp<std::size_t>(one.offset / sizeof(BranchRecord), begin, count);
    split_run(number, owner, begin, at, reader);
    begin = at;
    owner = one.tid == kNoId ? rest : Queue{kNoId, one.pid != kNoId ? one.pid : one.tid, one.tid};
  }
  split_run(number, owner, begin, count, reader);
}

void BtsWriter::split_run(std::size_t number, const Queue& owner, std::size_t begin, std::size_t end,
                          RecordReader& reader) {
  const trace::Stream& stream = bundle_.streams[number];
  if (begin == end) return;
  const bool is_last = end == count_of(stream);
  AuxChunk chunk{.stream = number, .queue = queue_of(number, owner), .begin = begin, .end = begin};
  const auto record_of = [](const trace::KnownLoss& one) { return one.offset / sizeof(BranchRecord); };
  auto loss = std::ranges::lower_bound(stream.losses, begin, {}, record_of);
  bool reported_loss = !begun_[chunk.queue];  // a queue's first record needs no loss before it
  for (; chunk.end < end || is_last; ++chunk.end) {
    for (; loss != stream.losses.end() && (record_of(*loss) <= chunk.end || chunk.end == end); ++loss) {
      add_loss(chunk, lost_flags(*loss), loss->lost_bytes);
      reported_loss = true;
    }
    if (chunk.end == end) break;
    const BranchRecord record = reader.at(number, chunk.end);
    if ((record.flags & trace::RECORD_FIRST) != 0 && !reported_loss) add_loss(chunk, kAuxTruncated, 0);
    reported_loss = false;
    const std::size_t size = chunk.end - chunk.begin;
    if (size >= kMostRecords || (size >= kLeastRecords && chunk.tsc != 0)) add(chunk);
    chunk.tsc = record.tsc;
  }
  add(chunk);
}

// Ends the chunk with a loss. If the number of lost bytes is known, the AUX offsets skip it.
void BtsWriter::add_loss(AuxChunk& chunk, std::uint64_t flags, std::uint64_t bytes) {
  chunk.lost_flags = flags;
  add(chunk);
  if (bytes >= kBtsRecordBytes && begun_[chunk.queue]) offsets_[queues_[chunk.queue].tid] += bytes;
}

// Stores the chunk and begins the next one after it.
void BtsWriter::add(AuxChunk& chunk) {
  if (chunk.begin == chunk.end && chunk.lost_flags == 0) return;
  std::uint64_t& offset = offsets_[queues_[chunk.queue].tid];
  chunk.offset = offset;
  offset += stored_bytes(chunk.end - chunk.begin);
  if (chunk.begin != chunk.end) begun_[chunk.queue] = true;
  chunks_.push_back(chunk);
  chunk.begin = chunk.end;
  chunk.lost_flags = 0;
  chunk.tsc = 0;
}

// The reference of a chunk is the time of its last record, else the next known time of its queue, else
// kTscMax.
void BtsWriter::set_references() {
  std::vector<std::uint64_t> next(queues_.size(), trace::kTscMax);
  for (std::size_t i = chunks_.size(); i-- > 0;) {
    AuxChunk& chunk = chunks_[i];
    if (chunk.tsc != 0) next[chunk.queue] = chunk.tsc;
    chunk.reference = next[chunk.queue];
  }
}

// In a kernel trace each AUX record breaks the path of branches (see bts_streams()). A time is written only
// where the path is broken anyway: branches matter more than times.
bool BtsWriter::may_report(RecordReader& reader, std::size_t stream, std::size_t number) const {
  return !kernel_ || number >= count_of(bundle_.streams[stream]) ||
         (reader.at(stream, number).flags & trace::RECORD_FIRST) != 0;
}

// Writes an AUX record for each branch record with a known time, and for each loss.
bool BtsWriter::write_aux_records(Records& records) const {
  RecordReader reader(bundle_);
  for (const AuxChunk& chunk : chunks_) {
    if (!is_to_go_on()) return false;
    const Queue& queue = queues_[chunk.queue];
    const std::uint64_t chunk_end = chunk.offset + stored_bytes(chunk.end - chunk.begin);
    std::uint64_t reported = chunk.offset;
    const auto report = [&](std::uint64_t end, std::uint64_t tsc, std::uint64_t flags) {
      records.aux({queue.pid, queue.tid, kNoId, tsc}, reported, end - reported, flags);
      reported = end;
    };
    for (std::size_t i = chunk.begin; i + 1 < chunk.end; ++i) {
      const std::uint64_t tsc = reader.at(chunk.stream, i).tsc;
      if (tsc != 0 && may_report(reader, chunk.stream, i + 1))
        report(chunk.offset + (i + 1 - chunk.begin) * kBtsRecordBytes, tsc, 0);
    }
    if (chunk.lost_flags != 0 || (chunk.tsc != 0 && may_report(reader, chunk.stream, chunk.end)))
      report(chunk_end, chunk.tsc, chunk.lost_flags);
  }
  return true;
}

bool BtsWriter::write(Output& out) {
  RecordReader reader(bundle_);
  for (const AuxChunk& chunk : chunks_) {
    if (chunk.begin == chunk.end) continue;
    begin_chunk(out, chunk.queue, queues_[chunk.queue], chunk.offset, stored_bytes(chunk.end - chunk.begin),
                chunk.reference);
    for (std::size_t at = chunk.begin; at < chunk.end; at += kStepRecords) {
      if (!is_to_go_on()) return false;
      put_records(out, reader, chunk.stream, at, std::min(at + kStepRecords, chunk.end));
      if (out.failed()) return true;
    }
    out.put(std::array<std::uint8_t, kBtsRecordBytes>{});
  }
  return true;
}

void note_dropped_fields(const trace::TraceBundle& bundle, std::vector<trace::Warning>& notes) {
  std::uint32_t flags = 0;
  bool cycles = false;
  RecordReader reader(bundle);
  for (std::size_t number = 0; number < bundle.streams.size(); ++number) {
    for (std::size_t i = 0; i < count_of(bundle.streams[number]); ++i) {
      const BranchRecord record = reader.at(number, i);
      flags |= record.flags;
      cycles = cycles || record.cycles != 0;
    }
  }
  std::string what;
  const auto add = [&what](bool is, const char* text) {
    if (is) what += (what.empty() ? "" : ", ") + std::string(text);
  };
  add(cycles, "cycles between branches");
  add((flags & (trace::RECORD_IN_TX | trace::RECORD_ABORT)) != 0, "transactions");
  add((flags & trace::RECORD_CODE32) != 0, "that code is 32-bit code");
  if (!what.empty()) notes.push_back(warn(trace::WarningCode::EXPORT_BTS_FIELDS, what));
}

}  // namespace ptkit::formats::perf
