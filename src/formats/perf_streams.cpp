#include "formats/perf_streams.h"

#include <algorithm>

#include "formats/perf_overlap.h"
#include "formats/piecewise.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::uint64_t kPadding = 8;  // perf pads a piece with zeros to a multiple of it
// ptkit, as it writes perf.data, puts an OVF there behind a loss.
constexpr std::uint64_t kMostPadding = 19;

trace::TraceBuffer whole_records(const trace::TraceBuffer& bytes, std::size_t size, std::size_t unit) {
  return bytes.slice(0, size - size % unit);
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
  note.who = who;
  if (!fields.ok()) return false;
  if ((note.flags & kAuxPartial) != 0) ++partial_;
  notes_of_cpu_[who.cpu].all.push_back(note);
  notes_of_tid_[who.tid].all.push_back(note);
  return true;
}

const Streams::Notes& Streams::notes_of(const Queue& queue) const {
  static const Notes kNone;
  const auto& all = queue.cpu != trace::kNoId ? notes_of_cpu_ : notes_of_tid_;
  const auto found = all.find(queue.cpu != trace::kNoId ? queue.cpu : queue.tid);
  return found == all.end() ? kNone : found->second;
}

void Streams::Notes::settle() {
  for (const Note& note : all) {
    // What is missing behind a full buffer is missing behind what was written, other gaps are somewhere in
    // it.
    const bool ring = (note.flags & kAuxOverwrite) != 0;
    if ((note.flags & kAuxTruncated) != 0)
      losses.emplace(note.end, ring ? base::Status::RING_WRAPPED : base::Status::BUFFER_FULL);
    if ((note.flags & (kAuxPartial | kAuxCollision)) != 0)
      losses.emplace(note.begin, base::Status::NOT_TRACED);
  }
  std::ranges::stable_sort(all, {}, &Note::end);
  const auto same = [](const Note& a, const Note& b) { return a.end == b.end; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
}

// Where a piece ends is said by the next one's begin, and by the kernel's notes; its own size may be padded.
void Streams::join(Queue& queue, const Notes& notes, std::size_t unit) {
  for (std::size_t i = 0; i < queue.pieces.size(); ++i) {
    Piece& piece = queue.pieces[i];
    const std::uint64_t padded = piece.begin + piece.bytes.size();
    const auto within = [&](std::uint64_t end, std::uint64_t padding) {
      return end <= padded && end + padding > padded && end > piece.begin;
    };
    const auto note = std::ranges::upper_bound(notes.all, padded, {}, &Note::end);
    const bool last = i + 1 == queue.pieces.size();
    std::uint64_t real = padded;
    if (note != notes.all.begin() && within(std::prev(note)->end, kMostPadding)) real = std::prev(note)->end;
    if (!last && within(queue.pieces[i + 1].begin, kPadding)) real = queue.pieces[i + 1].begin;
    piece.bytes = whole_records(piece.bytes, static_cast<std::size_t>(real - piece.begin), unit);
    // Of records that are never cut, perf leaves out what does not fit where the ring ends.
    if (last || queue.pieces[i + 1].begin - real < unit) continue;
    Piece& next = queue.pieces[i + 1];
    next.lost = base::Status::RING_WRAPPED;
    next.lost_bytes = next.begin > real ? next.begin - real : 0;
  }
}

// Offsets of copies say nothing; their contents show how they go on.
void Streams::join_copies(Queue& queue, std::size_t unit) {
  trace::TraceBuffer older;
  for (std::size_t i = 0; i < queue.pieces.size(); ++i) {
    Piece& piece = queue.pieces[i];
    piece.bytes = whole_records(piece.bytes, piece.bytes.size(), unit);
    trace::TraceBuffer whole = piece.bytes;
    if (i == 0) {
      older = std::move(whole);
      continue;
    }
    const auto overlap = find_overlap(older.bytes(), whole.bytes());
    if (overlap && overlap->repeated % unit == 0) {
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
  const auto& told = notes.losses;
  std::uint64_t at = 0;
  std::uint64_t end = 0;  // of the piece before
  for (const Piece& piece : queue.pieces) {
    if (piece.lost != base::Status::OK) {
      const auto why = told.lower_bound({end, base::Status::OK});
      const bool is_told = why != told.end() && why->first == end;
      losses.push_back({at, is_told ? why->second : piece.lost, piece.lost_bytes});
    }
    const std::uint64_t behind = piece.bytes.size() + (&piece == &queue.pieces.back() ? 1 : 0);
    for (auto place = told.lower_bound({piece.begin, base::Status::OK});
         place != told.end() && place->first - piece.begin < behind; ++place) {
      losses.push_back({at + (place->first - piece.begin), place->second, 0});
    }
    at += piece.bytes.size();
    end = piece.begin + piece.bytes.size();
  }
  std::ranges::stable_sort(losses, {}, &trace::KnownLoss::offset);
}

std::vector<Flush> Streams::flushes_of(const Queue& queue, const Notes& notes) {
  std::vector<Flush> flushes;
  std::uint64_t at = 0;
  for (const Piece& piece : queue.pieces) {
    for (auto note = std::ranges::upper_bound(notes.all, piece.begin, {}, &Note::end);
         note != notes.all.end() && note->end - piece.begin <= piece.bytes.size(); ++note) {
      flushes.push_back({at + (note->end - piece.begin), note->who.time, note->who.pid, note->who.tid});
    }
    at += piece.bytes.size();
  }
  return flushes;
}

base::Result<AuxStream> Streams::stream_of(Queue& queue, const Notes& notes, bool flushes, bool copies) {
  AuxStream out;
  trace::Stream& stream = out.stream;
  // perf names a thread with a CPU, too, where it opened the event for one and its children.
  stream = stream_named(queue.cpu, queue.cpu == trace::kNoId ? queue.tid : trace::kNoId);
  out.of_task = queue.tid != trace::kNoId;
  if (flushes) out.flushes = flushes_of(queue, notes);
  stream.pid = queue.pid;
  add_losses(queue, notes, stream.losses);
  std::vector<trace::TraceBuffer> parts;
  std::uint64_t at = 0;
  for (Piece& piece : queue.pieces) {
    if (copies) out.copies.push_back(at);
    at += piece.bytes.size();
    parts.push_back(std::move(piece.bytes));
  }
  auto data = join_parts(std::move(parts));
  if (!data.ok()) return data.failure();
  stream.data = std::move(data.value());
  return out;
}

base::Result<std::vector<AuxStream>> Streams::make(const AuxForm& form) {
  std::vector<AuxStream> streams;
  std::vector<std::pair<Queue*, bool>> all;
  for (auto& [number, queue] : queues_) all.emplace_back(&queue, form.copies);
  for (auto& [owner, queue] : samples_) all.emplace_back(&queue, true);
  for (auto& [cpu, notes] : notes_of_cpu_) notes.settle();
  for (auto& [tid, notes] : notes_of_tid_) notes.settle();
  const Notes none;
  for (const auto& [queue, copies] : all) {
    if (queue->pieces.empty()) continue;
    const Notes& notes = copies ? none : notes_of(*queue);
    if (copies) {
      join_copies(*queue, form.unit);
    } else {
      join(*queue, notes, form.unit);
    }
    auto stream = stream_of(*queue, notes, form.flushes, copies);
    if (!stream.ok()) return stream.failure();
    streams.push_back(std::move(stream.value()));
  }
  return streams;
}

}  // namespace ptkit::formats::perf
