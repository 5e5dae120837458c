#include "formats/perf_streams.h"

#include <algorithm>

namespace ptkit::formats::perf {

namespace {

constexpr std::uint64_t kPadding = 8;  // a piece is padded with zeros to a multiple of it
// PERF_AUX_FLAG_*
constexpr std::uint64_t kTruncated = 1;
constexpr std::uint64_t kPartial = 4;
// A copy of a ring repeats an older one if so many bytes, the last ones of that, are found in it.
constexpr std::size_t kCommonBytes = 4096;

}  // namespace

bool Streams::add(const Record& auxtrace) {
  Fields fields(auxtrace.body);
  fields.skip(8);  // size
  const std::uint64_t begin = fields.u64();
  fields.skip(8);  // reference
  Queue& queue = queues_[fields.u32()];
  queue.tid = fields.id();
  queue.cpu = fields.id();
  if (!fields.ok()) return false;
  if (!auxtrace.payload.empty()) queue.pieces.push_back({auxtrace.payload, begin});
  return true;
}

bool Streams::note(const Record& aux, const Trailer& who) {
  Fields fields(aux.body);
  Note note{who.cpu, who.tid};
  note.begin = fields.u64();
  note.end = note.begin + fields.u64();
  note.flags = fields.u64();
  if (fields.ok()) notes_.push_back(note);
  return fields.ok();
}

std::vector<Streams::Note> Streams::notes_of(const Queue& queue) const {
  std::vector<Note> found;
  for (const Note& note : notes_) {
    if (queue.cpu != trace::kNoId ? note.cpu == queue.cpu : note.tid == queue.tid) found.push_back(note);
  }
  return found;
}

// Where a piece ends is said by the next one's begin, and by the kernel's notes; its own size may be padded.
void Streams::join(Queue& queue) const {
  std::vector<std::uint64_t> ends;
  for (const Note& note : notes_of(queue)) ends.push_back(note.end);
  std::ranges::sort(ends);
  for (std::size_t i = 0; i < queue.pieces.size(); ++i) {
    Piece& piece = queue.pieces[i];
    const std::uint64_t size = piece.bytes.size();
    const std::uint64_t padded = piece.begin + size;
    const auto within = [&](std::uint64_t end) {
      return end <= padded && end + kPadding > padded && end > piece.begin;
    };
    const auto end = std::ranges::upper_bound(ends, padded);
    const bool last = i + 1 == queue.pieces.size();
    std::uint64_t real = padded;
    if (end != ends.begin() && within(*std::prev(end))) real = *std::prev(end);
    if (!last && within(queue.pieces[i + 1].begin)) real = queue.pieces[i + 1].begin;
    piece.bytes = piece.bytes.first(static_cast<std::size_t>(real - piece.begin));
    if (last || queue.pieces[i + 1].begin == real) continue;
    Piece& next = queue.pieces[i + 1];
    next.lost = base::Status::RING_WRAPPED;
    next.lost_bytes = next.begin > real ? next.begin - real : 0;
  }
}

void Streams::join_snapshots(Queue& queue) {
  for (std::size_t i = 1; i < queue.pieces.size(); ++i) {
    const base::Bytes older = queue.pieces[i - 1].bytes;
    Piece& piece = queue.pieces[i];
    const base::Bytes common = older.last(std::min(older.size(), kCommonBytes));
    const auto found = std::search(piece.bytes.begin(), piece.bytes.end(), common.begin(), common.end());
    if (common.size() == kCommonBytes && found != piece.bytes.end()) {
      const auto repeated = static_cast<std::size_t>(found - piece.bytes.begin()) + common.size();
      piece.bytes = piece.bytes.subspan(repeated);
    } else {
      piece.lost = base::Status::RING_WRAPPED;
    }
  }
}

trace::Stream Streams::stream_of(const File& file, const Queue& queue, bool snapshots) const {
  trace::Stream stream;
  stream.cpu = queue.cpu;
  // perf names a thread with a CPU, too, where it opened the event for one and its children.
  if (queue.cpu == trace::kNoId) stream.tid = queue.tid;
  stream.name =
      queue.cpu != trace::kNoId ? "cpu " + std::to_string(queue.cpu) : "thread " + std::to_string(queue.tid);
  std::uint64_t size = 0;
  const std::vector<Note> notes = snapshots ? std::vector<Note>{} : notes_of(queue);
  for (const Piece& piece : queue.pieces) {
    if (piece.lost != base::Status::OK) stream.losses.push_back({size, piece.lost, piece.lost_bytes});
    for (const Note& note : notes) {
      if ((note.flags & (kTruncated | kPartial)) == 0) continue;
      // What is missing is missing behind what was written, or somewhere in it.
      const std::uint64_t at = (note.flags & kTruncated) != 0 ? note.end : note.begin;
      if (at - piece.begin < piece.bytes.size() + (&piece == &queue.pieces.back() ? 1 : 0))
        stream.losses.push_back({size + (at - piece.begin), base::Status::BUFFER_FULL, 0});
    }
    size += piece.bytes.size();
  }
  std::ranges::stable_sort(stream.losses, {}, &trace::KnownLoss::offset);
  if (queue.pieces.size() == 1) {
    stream.data = file.part(queue.pieces.front().bytes);
  } else {
    std::vector<std::uint8_t> bytes;
    bytes.reserve(size);
    for (const Piece& piece : queue.pieces) bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
    stream.data = trace::TraceBuffer::from_vector(std::move(bytes));
  }
  return stream;
}

std::vector<trace::Stream> Streams::make(const File& file, bool snapshots) {
  std::vector<trace::Stream> streams;
  for (auto& [number, queue] : queues_) {
    if (snapshots) {
      join_snapshots(queue);
    } else {
      join(queue);
    }
    streams.push_back(stream_of(file, queue, snapshots));
  }
  return streams;
}

}  // namespace ptkit::formats::perf
