#include "formats/perf_streams.h"

#include <algorithm>

#include "formats/perf_overlap.h"
#include "formats/piecewise.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::uint64_t kPadding = 8;  // a piece is padded with zeros to a multiple of it
// PERF_AUX_FLAG_*
constexpr std::uint64_t kTruncated = 1;
constexpr std::uint64_t kPartial = 4;

}  // namespace

bool Streams::add(const Record& auxtrace, trace::TraceBuffer bytes) {
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
  if (bytes.size() != 0) queue.pieces.push_back({std::move(bytes), begin});
  return true;
}

void Streams::add_sample(trace::TraceBuffer bytes, const Trailer& who) {
  const std::int64_t tid = who.cpu == trace::kNoId ? who.tid : trace::kNoId;
  Queue& queue = samples_[{who.cpu, tid}];
  queue.cpu = who.cpu;
  queue.tid = tid;
  if (tid != trace::kNoId) queue.pid = who.pid;
  queue.pieces.push_back({std::move(bytes), 0});
}

bool Streams::note(const Record& aux, const Trailer& who) {
  Fields fields(aux.body);
  Note note;
  note.begin = fields.u64();
  note.end = note.begin + fields.u64();
  note.flags = fields.u64();
  if (!fields.ok()) return false;
  notes_of_cpu_[who.cpu].push_back(note);
  notes_of_tid_[who.tid].push_back(note);
  return true;
}

const Streams::Notes& Streams::notes_of(const Queue& queue) const {
  static const Notes kNone;
  const auto& all = queue.cpu != trace::kNoId ? notes_of_cpu_ : notes_of_tid_;
  const auto found = all.find(queue.cpu != trace::kNoId ? queue.cpu : queue.tid);
  return found == all.end() ? kNone : found->second;
}

// Where a piece ends is said by the next one's begin, and by the kernel's notes; its own size may be padded.
void Streams::join(Queue& queue, const Notes& notes) {
  std::vector<std::uint64_t> ends;
  for (const Note& note : notes) ends.push_back(note.end);
  std::ranges::sort(ends);
  for (std::size_t i = 0; i < queue.pieces.size(); ++i) {
    Piece& piece = queue.pieces[i];
    const std::uint64_t padded = piece.begin + piece.bytes.size();
    const auto within = [&](std::uint64_t end) {
      return end <= padded && end + kPadding > padded && end > piece.begin;
    };
    const auto end = std::ranges::upper_bound(ends, padded);
    const bool last = i + 1 == queue.pieces.size();
    std::uint64_t real = padded;
    if (end != ends.begin() && within(*std::prev(end))) real = *std::prev(end);
    if (!last && within(queue.pieces[i + 1].begin)) real = queue.pieces[i + 1].begin;
    piece.bytes = piece.bytes.slice(0, static_cast<std::size_t>(real - piece.begin));
    if (last || queue.pieces[i + 1].begin == real) continue;
    Piece& next = queue.pieces[i + 1];
    next.lost = base::Status::RING_WRAPPED;
    next.lost_bytes = next.begin > real ? next.begin - real : 0;
  }
}

// Offsets of copies say nothing; their contents show how they go on.
void Streams::join_copies(Queue& queue) {
  trace::TraceBuffer older;
  for (std::size_t i = 0; i < queue.pieces.size(); ++i) {
    Piece& piece = queue.pieces[i];
    trace::TraceBuffer whole = piece.bytes;
    if (i == 0) {
      older = std::move(whole);
      continue;
    }
    if (const auto overlap = find_overlap(older.bytes(), whole.bytes())) {
      piece.bytes = whole.slice(overlap->repeated, whole.size() - overlap->repeated);
      trace::TraceBuffer& before = queue.pieces[i - 1].bytes;
      before = before.slice(0, before.size() - std::min(before.size(), overlap->padding));
    } else {
      piece.lost = base::Status::RING_WRAPPED;
    }
    older = std::move(whole);
  }
}

void Streams::add_losses(const Queue& queue, const Notes& notes, std::vector<trace::KnownLoss>& losses) {
  std::vector<std::uint64_t> places;
  for (const Note& note : notes) {
    // What is missing is missing behind what was written, or somewhere in it.
    if ((note.flags & (kTruncated | kPartial)) != 0)
      places.push_back((note.flags & kTruncated) != 0 ? note.end : note.begin);
  }
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::uint64_t at = 0;
  for (const Piece& piece : queue.pieces) {
    if (piece.lost != base::Status::OK) losses.push_back({at, piece.lost, piece.lost_bytes});
    const std::uint64_t behind = piece.bytes.size() + (&piece == &queue.pieces.back() ? 1 : 0);
    for (auto place = std::ranges::lower_bound(places, piece.begin);
         place != places.end() && *place - piece.begin < behind; ++place) {
      losses.push_back({at + (*place - piece.begin), base::Status::BUFFER_FULL, 0});
    }
    at += piece.bytes.size();
  }
  std::ranges::stable_sort(losses, {}, &trace::KnownLoss::offset);
}

base::Result<trace::Stream> Streams::stream_of(Queue& queue, const Notes& notes) {
  trace::Stream stream;
  stream.cpu = queue.cpu;
  stream.pid = queue.pid;
  // perf names a thread with a CPU, too, where it opened the event for one and its children.
  if (queue.cpu == trace::kNoId) stream.tid = queue.tid;
  stream.name =
      queue.cpu != trace::kNoId ? "cpu " + std::to_string(queue.cpu) : "thread " + std::to_string(queue.tid);
  add_losses(queue, notes, stream.losses);
  std::vector<trace::TraceBuffer> parts;
  for (Piece& piece : queue.pieces) parts.push_back(std::move(piece.bytes));
  auto data = join_parts(std::move(parts));
  if (!data.ok()) return data.failure();
  stream.data = std::move(data.value());
  return stream;
}

base::Result<std::vector<trace::Stream>> Streams::make(bool snapshots) {
  std::vector<trace::Stream> streams;
  std::vector<std::pair<Queue*, bool>> all;
  for (auto& [number, queue] : queues_) all.emplace_back(&queue, snapshots);
  for (auto& [owner, queue] : samples_) all.emplace_back(&queue, true);
  for (const auto& [queue, copies] : all) {
    const Notes none;
    const Notes& notes = copies ? none : notes_of(*queue);
    if (copies) {
      join_copies(*queue);
    } else {
      join(*queue, notes);
    }
    auto stream = stream_of(*queue, notes);
    if (!stream.ok()) return stream.failure();
    streams.push_back(std::move(stream.value()));
  }
  return streams;
}

}  // namespace ptkit::formats::perf
