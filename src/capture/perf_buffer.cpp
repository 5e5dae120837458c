#include "capture/perf_buffer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kHoles = PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION;
// With less room than that the kernel begins nothing, and need not say so: some records of intel_bts.
constexpr std::uint64_t kLeastRoom = 96;

base::Failure impossible(int cpu, const char* what) {
  return {base::Status::UNSUPPORTED, 0,
          "processor " + std::to_string(cpu) + ": perf's " + what + " has impossible positions"};
}

perf_event_mmap_page& page_of(std::span<std::uint8_t> memory) {
  return *reinterpret_cast<perf_event_mmap_page*>(memory.data());
}

template <typename T>
std::uint64_t* counter(T& member) {  // the kernel's __u64 is another type of the same width
  static_assert(sizeof member == sizeof(std::uint64_t));
  return reinterpret_cast<std::uint64_t*>(&member);
}

}  // namespace

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
  // Who may not write says that the kernel may overwrite what nobody has read.
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

void PerfBuffer::has_stored(bool of_threads, bool kernel) {
  const std::uint64_t used = PerfStore::used_bytes(trace_.size());
  store_.emplace(of_threads, kernel, used);
  copies_ = RingCopies(used);
  holes_ = formats::RingHoles(used);
}

void PerfBuffer::interrupt() {
  if (store_) store_->interrupt();
}

void PerfBuffer::forget(std::int32_t pid, std::uint64_t before_tsc) {
  if (store_) store_->forget(pid, before_tsc);
}

PerfTold PerfBuffer::read_records() {
  PerfTold told;
  const std::uint64_t head = records_.head();
  const std::uint64_t tail = records_.tail();
  if (!records_.holds(head)) {
    ++told.bad;
  } else if (head != tail) {
    const std::vector<std::uint8_t> bytes = records_.copy(tail, head);
    // The kernel shows whole records only: what is left over is none.
    if (reader_->take(bytes, told) != bytes.size()) ++told.bad;
  }
  records_.release(head);
  return told;
}

void PerfBuffer::count(const AuxNote& note) {
  if ((note.flags & PERF_AUX_FLAG_TRUNCATED) != 0) ++counts_.stops;
  if ((note.flags & PERF_AUX_FLAG_PARTIAL) != 0) ++counts_.gaps;
  if ((note.flags & PERF_AUX_FLAG_COLLISION) != 0) ++counts_.collisions;
}

// What the kernel tells of lies behind what it told of before, and fits.
bool PerfBuffer::can_be(const AuxNote& note) const noexcept {
  const std::uint64_t at = note.begin - trace_.tail();
  return note.begin >= told_to_ && at <= trace_.size() && note.bytes <= trace_.size() - at;
}

// It tells of all trace: what it seems not to have told of has lost its notes. Each of them may have told of
// a gap before its piece, or of a full buffer behind it.
void PerfBuffer::tell_up_to(std::uint64_t place) {
  if (place <= told_to_) return;
  losses_.push_back({told_to_, base::Status::BUFFER_FULL});
  losses_.push_back({place, base::Status::BUFFER_FULL});
  may_stand_ = true;
  told_to_ = place;
}

// There is no room left, and no note says so: who comes next is not traced, without a word.
bool PerfBuffer::fills_up(std::uint64_t head) const {
  if (ring_ || trace_.size() - (head - trace_.tail()) > kLeastRoom) return false;
  const bool said = std::any_of(losses_.begin(), losses_.end(), [&](const Loss& loss) {
    return loss.place == head && loss.cause == base::Status::BUFFER_FULL;
  });
  return !said && std::none_of(notes_.begin(), notes_.end(), [](const AuxNote& note) {
    return (note.flags & PERF_AUX_FLAG_TRUNCATED) != 0;
  });
}

// A thread that comes while there is no room is not traced, and Linux disables its event when it leaves after
// the next time that it is. Events of whole processors are always there.
void PerfBuffer::find_latecomers(const PerfTold& told, bool fills_up) {
  if (tid_ < 0) return;
  if (fills_up) no_room_since_ = last_note_;
  for (const AuxNote& note : told.notes) {
    if ((note.flags & PERF_AUX_FLAG_TRUNCATED) != 0) no_room_since_ = note.tsc;
  }
  if (!no_room_since_) return;
  for (const SystemRecord& record : told.records) {
    const bool comes = record.kind == SystemRecord::Kind::SWITCH && record.tsc > *no_room_since_;
    if (comes && record.tid > 0) latecomers_.insert(record.tid);
  }
}

// Gives the room back. Records that were lost may have told that there was none.
void PerfBuffer::finish(std::uint64_t head, const PerfTold& told, bool fills_up) {
  if (fills_up) ++counts_.stops;
  found_.moved = head != trace_.tail();
  trace_.release(head);
  may_stand_ = may_stand_ || fills_up || told.lost != 0 ||
               std::any_of(told.notes.begin(), told.notes.end(),
                           [](const AuxNote& note) { return (note.flags & PERF_AUX_FLAG_TRUNCATED) != 0; });
  find_latecomers(told, fills_up);
  found_.full = may_stand_ && losses_.empty() && notes_.empty();
  found_.was_full = found_.was_full || found_.full;
  // Somebody may have come until now: the next call sees that.
  if (!may_stand_) no_room_since_.reset();
  if (found_.full) may_stand_ = false;
}

// The place of a ring's note is the one that is written next.
void PerfBuffer::note_place(const AuxNote& note) { holes_.take(note.begin, (note.flags & kHoles) != 0); }

// What is missing after a full buffer is missing behind what was written; other gaps are somewhere within.
void PerfBuffer::note(const AuxNote& note) {
  if (!can_be(note)) {
    ++counts_.bad_records;
    return;
  }
  tell_up_to(note.begin);
  told_to_ = note.begin + note.bytes;
  last_note_ = note.tsc;
  if ((note.flags & PERF_AUX_FLAG_TRUNCATED) != 0 || latecomers_.erase(note.tid) != 0)
    losses_.push_back({note.begin + note.bytes, base::Status::BUFFER_FULL});
  if ((note.flags & kHoles) != 0) losses_.push_back({note.begin, base::Status::NOT_TRACED});
}

void PerfBuffer::give(BundleOutput& output, std::uint64_t from, std::uint64_t to) {
  counts_.bytes += to - from;
  const auto write = [&](std::uint64_t begin, std::uint64_t end) {
    const PerfRing::Pieces pieces = trace_.pieces(begin, end);
    if (!pieces.first.empty()) output.data(stream_, pieces.first);
    if (!pieces.second.empty()) output.data(stream_, pieces.second);
  };
  std::stable_sort(losses_.begin(), losses_.end(),
                   [](const Loss& a, const Loss& b) { return a.place < b.place; });
  auto loss = losses_.begin();
  for (; loss != losses_.end() && loss->place <= to; ++loss) {
    const std::uint64_t place = std::max(loss->place, from);
    write(from, place);
    output.loss(stream_, 0, loss->cause);
    from = place;
  }
  losses_.erase(losses_.begin(), loss);
  write(from, to);
}

// ---- branch records

void PerfBuffer::give_piece(BundleOutput& output, const BranchPiece& piece,
                            std::vector<SystemRecord>& records) {
  if (piece.records.empty()) return;
  SystemRecord owner;
  owner.kind = SystemRecord::Kind::SWITCH;
  owner.tsc = piece.tsc;
  owner.pid = piece.pid;
  owner.tid = piece.tid;
  owner.place = counts_.bytes;
  records.push_back(std::move(owner));
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(piece.records.data()),
                          piece.records.size() * sizeof(trace::BranchRecord));
  output.data(stream_, bytes);
  counts_.bytes += bytes.size();
}

void PerfBuffer::lose(BundleOutput& output, base::Status cause) {
  output.loss(stream_, 0, cause);
  may_stand_ = may_stand_ || cause == base::Status::BUFFER_FULL;
  store_->interrupt();
}

void PerfBuffer::give_note(BundleOutput& output, const AuxNote& note, std::vector<SystemRecord>& records) {
  if ((note.flags & kHoles) != 0) lose(output, base::Status::NOT_TRACED);
  const std::vector<std::uint8_t> bytes = trace_.copy(note.begin, note.begin + note.bytes);
  give_piece(output, store_->piece(note, bytes), records);
  if ((note.flags & PERF_AUX_FLAG_TRUNCATED) != 0) lose(output, base::Status::BUFFER_FULL);
}

// Only what notes are about: Linux leaves some bytes free between, and may leave there what it had before.
void PerfBuffer::give_stored(BundleOutput& output, std::uint64_t head, std::vector<SystemRecord>& records) {
  std::uint64_t at = trace_.tail();
  auto note = notes_.begin();
  for (; note != notes_.end() && note->begin <= head && note->bytes <= head - note->begin; ++note) {
    if (note->begin < at) {
      ++counts_.bad_records;
      continue;
    }
    if (!PerfStore::is_padding(note->begin - at)) lose(output, base::Status::BUFFER_FULL);
    give_note(output, *note, records);
    at = note->begin + note->bytes;
  }
  if (!PerfStore::is_padding(head - at)) lose(output, base::Status::BUFFER_FULL);
  notes_.erase(notes_.begin(), note);
}

std::optional<base::Failure> PerfBuffer::drain_stored(BundleOutput& output, std::uint64_t head,
                                                      const PerfTold& told,
                                                      std::vector<SystemRecord>& records) {
  for (const auto& one : told.running) store_->ran(one);
  if (ring_) {
    for (const AuxNote& one : told.notes) {
      store_->keep(one);
      note_place(one);
    }
    return {};
  }
  // One that was lost may have been about so little that it looks like what Linux leaves free.
  if (told.lost != 0) store_->interrupt();
  for (const AuxNote& note : told.notes) {
    if (note.bytes <= trace_.size())
      notes_.push_back(note);
    else
      ++counts_.bad_records;
  }
  if (!trace_.holds(head)) return impossible(cpu_, "buffer of trace");
  const bool full = fills_up(head);
  give_stored(output, head, records);
  if (full) lose(output, base::Status::BUFFER_FULL);
  finish(head, told, full);
  return {};
}

// ---- all of it

std::optional<base::Failure> PerfBuffer::drain_trace(BundleOutput& output, std::uint64_t head,
                                                     const PerfTold& told) {
  if (ring_) {
    for (const AuxNote& one : told.notes) note_place(one);
    return {};
  }
  if (!trace_.holds(head)) return impossible(cpu_, "buffer of trace");
  for (const AuxNote& one : told.notes) note(one);
  tell_up_to(head);  // their notes had come before
  const bool full = fills_up(head);
  if (full) losses_.push_back({head, base::Status::BUFFER_FULL});
  give(output, trace_.tail(), head);
  finish(head, told, full);
  return {};
}

std::optional<base::Failure> PerfBuffer::drain(BundleOutput& output, std::vector<SystemRecord>& records,
                                               std::vector<PerfHit>& hits) {
  // The kernel writes the record of a piece of trace before it shows the piece.
  const std::uint64_t head = memory_.empty() ? 0 : trace_.head();
  PerfTold told = read_records();
  counts_.lost_records += told.lost;
  counts_.held_back += told.held_back;
  counts_.bad_records += told.bad;
  for (const auto& [type, count] : told.unknown) counts_.unknown[type] += count;
  for (const AuxNote& one : told.notes) count(one);
  hits.insert(hits.end(), told.hits.begin(), told.hits.end());
  for (const BranchPiece& stack : told.stacks) give_piece(output, stack, records);
  std::optional<base::Failure> failure;
  if (!memory_.empty())
    failure = store_ ? drain_stored(output, head, told, records) : drain_trace(output, head, told);
  std::move(told.records.begin(), told.records.end(), std::back_inserter(records));
  return failure;
}

void PerfBuffer::collect(BundleOutput& output, std::vector<SystemRecord>& records) {
  if (!ring_) return;
  const base::Bytes used =
      base::Bytes(memory_).first(store_ ? PerfStore::used_bytes(memory_.size()) : memory_.size());
  const std::uint64_t position = trace_.head() % used.size();
  const std::vector<std::uint8_t> newest = unrolled(used, position, lapped_);
  const RingCopies::Fresh fresh = copies_.take(newest, lapped_, position);
  if (fresh.lost) output.loss(stream_, 0, base::Status::RING_WRAPPED);
  const std::vector<std::uint64_t> holes = holes_.places(fresh.bytes, position, fresh.lost);
  if (store_) {
    if (!holes.empty()) lose(output, base::Status::NOT_TRACED);
    for (const BranchPiece& piece : store_->pieces(fresh.bytes)) give_piece(output, piece, records);
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
