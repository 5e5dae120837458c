#include "formats/perf_write_branches.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fields.h"
#include "formats/perf_branches.h"

namespace ptkit::formats::perf {

namespace {

using trace::BranchRecord;
using trace::kNoId;

constexpr std::size_t kMostRecords = std::size_t{1} << 18U;   // of a piece
constexpr std::size_t kLeastRecords = std::size_t{1} << 12U;  // that end where a time is known
constexpr std::size_t kStepRecords = std::size_t{1} << 15U;   // between looks for whether to go on
constexpr std::uint64_t kPredicted = 1U << 4U;                // of the third word
constexpr std::uint64_t kApart = 64;                          // offsets of a thread's buffers

// perf leaves out the last record of a buffer, so an empty one follows: neither perf nor ptkit shows those.
std::uint64_t stored_bytes(std::size_t records) {
  return records == 0 ? 0 : (records + 1) * kStoreRecordBytes;
}

std::size_t count_of(const trace::Stream& stream) { return stream.data.size() / sizeof(BranchRecord); }

}  // namespace

// Records of streams for somebody who goes through them forwards.
class RecordReader {
 public:
  explicit RecordReader(const trace::TraceBundle& bundle) : passage_(bundle) {}

  [[nodiscard]] BranchRecord at(std::size_t stream, std::size_t number) {
    if (stream != stream_ || number < first_ || number - first_ >= block_.size() / sizeof(BranchRecord)) {
      block_ = passage_.part(stream, number * sizeof(BranchRecord),
                             (number + kStepRecords) * sizeof(BranchRecord));
      stream_ = stream;
      first_ = number;
    }
    BranchRecord record;
    std::memcpy(&record, block_.data() + (number - first_) * sizeof record, sizeof record);
    return record;
  }

 private:
  Passage passage_;
  std::size_t stream_ = 0;
  std::size_t first_ = 0;  // record of the block
  base::Bytes block_;
};

namespace {

void put_records(Output& out, RecordReader& reader, std::size_t stream, std::size_t begin, std::size_t end) {
  std::vector<std::uint8_t> stored;
  stored.reserve((end - begin) * kStoreRecordBytes);
  for (std::size_t i = begin; i < end; ++i) {
    const BranchRecord record = reader.at(stream, i);
    base::append_le(stored, record.from_ip);
    base::append_le(stored, record.to_ip);
    base::append_le(stored, (record.flags & trace::RECORD_PREDICTED) != 0 ? kPredicted : 0);
  }
  out.put(stored);
}

}  // namespace

BranchTrace::BranchTrace(const trace::TraceBundle& bundle, const std::vector<Queue>& queues, bool kernel,
                         GoOn go_on)
    : WrittenTrace(bundle, std::move(go_on)), kernel_(kernel) {
  RecordReader reader(bundle);
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) cut_stream(i, queues[i], reader);
  set_references();
}

std::size_t BranchTrace::queue_of(std::size_t stream, const Queue& owner) {
  const auto [found, added] = numbers_.try_emplace({stream, owner.tid}, queues_.size());
  if (added) {
    queues_.push_back(owner);
    begun_.push_back(false);
    offsets_[owner.tid] += kApart;
  }
  return found->second;
}

// Records are one thread's from one place of the stream to another.
void BranchTrace::cut_stream(std::size_t number, const Queue& rest, RecordReader& reader) {
  const trace::Stream& stream = bundle_.streams[number];
  const std::size_t count = count_of(stream);
  std::size_t begin = 0;
  Queue owner = rest;
  for (const trace::Switch& one : stream.switches) {
    const std::size_t at = std::clamp<std::size_t>(one.offset / sizeof(BranchRecord), begin, count);
    cut_run(number, owner, begin, at, reader);
    begin = at;
    owner = one.tid == kNoId ? rest : Queue{kNoId, one.pid != kNoId ? one.pid : one.tid, one.tid};
  }
  cut_run(number, owner, begin, count, reader);
}

void BranchTrace::cut_run(std::size_t number, const Queue& owner, std::size_t begin, std::size_t end,
                          RecordReader& reader) {
  const trace::Stream& stream = bundle_.streams[number];
  if (begin == end) return;
  const bool is_last = end == count_of(stream);
  Piece piece{.stream = number, .queue = queue_of(number, owner), .begin = begin, .end = begin};
  const auto place_of = [](const trace::KnownLoss& one) { return one.offset / sizeof(BranchRecord); };
  auto loss = std::ranges::lower_bound(stream.losses, begin, {}, place_of);
  bool is_told = !begun_[piece.queue];  // that what came before is not known
  for (; piece.end < end || is_last; ++piece.end) {
    for (; loss != stream.losses.end() && (place_of(*loss) <= piece.end || piece.end == end); ++loss) {
      lose(piece, lost_flags(*loss), loss->lost_bytes);
      is_told = true;
    }
    if (piece.end == end) break;
    const BranchRecord record = reader.at(number, piece.end);
    if ((record.flags & trace::RECORD_FIRST) != 0 && !is_told) lose(piece, kAuxTruncated, 0);
    is_told = false;
    const std::size_t size = piece.end - piece.begin;
    if (size >= kMostRecords || (size >= kLeastRecords && piece.tsc != 0)) add(piece);
    piece.tsc = record.tsc;
  }
  add(piece);
}

// Something is missing behind the piece; if it is known how much, the offsets tell.
void BranchTrace::lose(Piece& piece, std::uint64_t flags, std::uint64_t bytes) {
  piece.lost_flags = flags;
  add(piece);
  if (bytes >= kStoreRecordBytes && begun_[piece.queue]) offsets_[queues_[piece.queue].tid] += bytes;
}

// Goes on behind it.
void BranchTrace::add(Piece& piece) {
  if (piece.begin == piece.end && piece.lost_flags == 0) return;
  std::uint64_t& offset = offsets_[queues_[piece.queue].tid];
  piece.offset = offset;
  offset += stored_bytes(piece.end - piece.begin);
  if (piece.begin != piece.end) begun_[piece.queue] = true;
  pieces_.push_back(piece);
  piece.begin = piece.end;
  piece.lost_flags = 0;
  piece.tsc = 0;
}

// When the last record of a piece was taken, or else the next one whose time is known; or at the end.
void BranchTrace::set_references() {
  std::vector<std::uint64_t> next(queues_.size(), trace::kTscMax);
  for (std::size_t i = pieces_.size(); i-- > 0;) {
    Piece& piece = pieces_[i];
    if (piece.tsc != 0) next[piece.queue] = piece.tsc;
    piece.reference = next[piece.queue];
  }
}

// With the kernel each note says that what comes next does not go on there: branches are worth more than
// times.
bool BranchTrace::may_tell(RecordReader& reader, std::size_t stream, std::size_t number) const {
  return !kernel_ || number >= count_of(bundle_.streams[stream]) ||
         (reader.at(stream, number).flags & trace::RECORD_FIRST) != 0;
}

// A note for each record whose time is known, and for each loss.
bool BranchTrace::write_notes(Records& records) const {
  RecordReader reader(bundle_);
  for (const Piece& piece : pieces_) {
    if (!is_to_go_on()) return false;
    const Queue& queue = queues_[piece.queue];
    const std::uint64_t behind = piece.offset + stored_bytes(piece.end - piece.begin);
    std::uint64_t told = piece.offset;
    const auto tell = [&](std::uint64_t end, std::uint64_t tsc, std::uint64_t flags) {
      records.aux({queue.pid, queue.tid, kNoId, tsc}, told, end - told, flags);
      told = end;
    };
    for (std::size_t i = piece.begin; i + 1 < piece.end; ++i) {
      const std::uint64_t tsc = reader.at(piece.stream, i).tsc;
      if (tsc != 0 && may_tell(reader, piece.stream, i + 1))
        tell(piece.offset + (i + 1 - piece.begin) * kStoreRecordBytes, tsc, 0);
    }
    if (piece.lost_flags != 0 || (piece.tsc != 0 && may_tell(reader, piece.stream, piece.end)))
      tell(behind, piece.tsc, piece.lost_flags);
  }
  return true;
}

bool BranchTrace::write(Output& out) {
  RecordReader reader(bundle_);
  for (const Piece& piece : pieces_) {
    if (piece.begin == piece.end) continue;
    begin_piece(out, piece.queue, queues_[piece.queue], piece.offset, stored_bytes(piece.end - piece.begin),
                piece.reference);
    for (std::size_t at = piece.begin; at < piece.end; at += kStepRecords) {
      if (!is_to_go_on()) return false;
      put_records(out, reader, piece.stream, at, std::min(at + kStepRecords, piece.end));
      if (out.failed()) return true;
    }
    out.put(std::array<std::uint8_t, kStoreRecordBytes>{});
  }
  return true;
}

void note_branch_records(const trace::TraceBundle& bundle, std::vector<std::string>& notes) {
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
  if (!what.empty()) notes.push_back("Branch Trace Store has no place for: " + what + ".");
}

}  // namespace ptkit::formats::perf
