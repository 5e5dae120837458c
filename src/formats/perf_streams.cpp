#include "formats/perf_streams.h"

#include <algorithm>

#include "formats/perf_overlap.h"
#include "formats/piecewise.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::uint64_t kPadding = 8;  // perf pads a piece with zeros to a multiple of it
constexpr std::uint64_t kHoles = kAuxPartial | kAuxCollision;

trace::TraceBuffer whole_records(const trace::TraceBuffer& bytes, std::size_t size, std::size_t unit) {
  return bytes.slice(0, size - size % unit);
}

// Whether what a piece has from `begin` on can be padding; perf's own is always taken for that.
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
  if (bytes.size() != 0) queue.pieces.push_back({std::move(bytes), begin, ++order_});
  return true;
}

void Streams::add_sample(trace::TraceBuffer bytes, const Trailer& who) {
  const std::int64_t tid = who.cpu == trace::kNoId ? who.tid : trace::kNoId;
  Queue& queue = samples_[{who.cpu, tid}];
  queue.cpu = who.cpu;
  queue.tid = tid;
  if (tid != trace::kNoId) queue.pid = who.pid;
  queue.pieces.push_back({std::move(bytes), 0, ++order_});
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
  for (Notes* notes : {&notes_of_cpu_[who.cpu], &notes_of_tid_[who.tid]}) {
    notes->all.push_back(note);
    if ((note.flags & kAuxOverwrite) != 0)
      notes->of_rings.push_back({note.begin, note.end - note.begin, ++order_, (note.flags & kHoles) != 0});
  }
  return true;
}

Streams::Notes& Streams::notes_of(const Queue& queue) {
  return queue.cpu != trace::kNoId ? notes_of_cpu_[queue.cpu] : notes_of_tid_[queue.tid];
}

void Streams::Notes::settle() {
  for (const Note& note : all) {
    // What is missing behind a full buffer is missing behind what was written, other gaps are somewhere in
    // it.
    const bool ring = (note.flags & kAuxOverwrite) != 0;
    if ((note.flags & kAuxTruncated) != 0)
      losses.emplace(note.end, ring ? base::Status::RING_WRAPPED : base::Status::BUFFER_FULL);
    if ((note.flags & kHoles) != 0) losses.emplace(note.begin, base::Status::NOT_TRACED);
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
    if (note != notes.all.begin()) {
      const std::uint64_t end = std::prev(note)->end;
      if (within(end, kMostLossPadding) && is_padding(piece.bytes, end - piece.begin)) real = end;
    }
    if (!last && within(queue.pieces[i + 1].begin, kPadding)) real = queue.pieces[i + 1].begin;
    piece.bytes = whole_records(piece.bytes, static_cast<std::size_t>(real - piece.begin), unit);
    // Of records that are never cut, perf leaves out what does not fit where the ring ends.
    if (last || queue.pieces[i + 1].begin - real < unit) continue;
    Piece& next = queue.pieces[i + 1];
    next.lost = base::Status::RING_WRAPPED;
    next.lost_bytes = next.begin > real ? next.begin - real : 0;
  }
}

// What the kernel told since the copy before. `padded`: where the copy ends, as it says itself; nothing if it
// does not.
void Streams::find_holes(Piece& piece, std::optional<std::uint64_t> padded, Notes& notes, bool lost) {
  std::uint64_t ring_bytes = 0;
  bool any = false;
  for (; notes.taken < notes.of_rings.size(); ++notes.taken) {
    const RingNote& note = notes.of_rings[notes.taken];
    if (note.order > piece.order) break;
    if (!notes.holes) notes.holes.emplace(std::max<std::uint64_t>(note.ring_bytes, 1));
    notes.holes->take(note.place, note.hole);
    ring_bytes = note.ring_bytes;
    any = any || note.hole;
  }
  if (!any) return;
  if (!padded || ring_bytes == 0) {
    piece.holes = {0};
    return;
  }
  const std::uint64_t behind = (*padded - notes.holes->place()) % ring_bytes;
  const std::uint64_t padding = behind < kPadding ? std::min<std::uint64_t>(behind, piece.bytes.size()) : 0;
  const base::Bytes fresh = piece.bytes.bytes();
  piece.holes = notes.holes->places(fresh.first(fresh.size() - static_cast<std::size_t>(padding)),
                                    *padded - padding, lost);
}

// Offsets of copies do not say how they go on; their contents show it.
void Streams::join_copies(Queue& queue, Notes& notes, const AuxForm& form) {
  trace::TraceBuffer older;
  for (std::size_t i = 0; i < queue.pieces.size(); ++i) {
    Piece& piece = queue.pieces[i];
    const std::uint64_t padded = piece.begin + piece.bytes.size();
    piece.bytes = whole_records(piece.bytes, piece.bytes.size(), form.unit);
    trace::TraceBuffer whole = piece.bytes;
    const auto overlap = i == 0 ? std::nullopt : find_overlap(older.bytes(), whole.bytes());
    if (overlap && overlap->repeated % form.unit == 0) {
      piece.bytes = whole.slice(overlap->repeated, whole.size() - overlap->repeated);
      trace::TraceBuffer& before = queue.pieces[i - 1].bytes;
      before = before.slice(0, before.size() - std::min(before.size(), overlap->padding));
    } else if (i != 0) {
      piece.lost = base::Status::RING_WRAPPED;
    }
    const bool known = form.copies && form.unit == 1;
    find_holes(piece, known ? std::optional(padded) : std::nullopt, notes, !overlap);
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
    for (const std::uint64_t hole : piece.holes)
      losses.push_back({at + std::min<std::uint64_t>(hole, piece.bytes.size()), base::Status::NOT_TRACED, 0});
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
      join_copies(*queue, notes_of(*queue), form);
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
