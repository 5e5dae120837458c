#include "capture/perf_store.h"

#include <algorithm>
#include <utility>

#include "formats/branch_records.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kRecordBytes = formats::record_bytes(formats::DsLayout::BITS64);
// Linux goes on to the next piece of memory where less than a page is left, and skips a record at most on
// either side.
constexpr std::uint64_t kMostPadding = 4096 + 2 * kRecordBytes;
constexpr std::int32_t kNobody = -1;

bool same_owner(const AuxNote& a, const AuxNote& b) { return a.pid == b.pid && a.tid == b.tid; }

}  // namespace

std::uint64_t PerfStore::used_bytes(std::uint64_t bytes) noexcept { return bytes - bytes % kRecordBytes; }

bool PerfStore::is_padding(std::uint64_t bytes) noexcept { return bytes <= kMostPadding; }

BranchPiece PerfStore::owned(const AuxNote& note) {
  BranchPiece out{note.tsc, note.pid, note.tid, {}};
  if (of_threads_) return out;
  const auto one = ran_.only_one_until(note.tsc);
  out.pid = one ? static_cast<std::int32_t>(one->pid) : kNobody;
  out.tid = one ? static_cast<std::int32_t>(one->tid) : kNobody;
  return out;
}

// The last record is no younger than the note. In the kernel, what empties the buffer runs between two notes
// and is not stored; user code goes on as if nothing had been.
void PerfStore::fill(BranchPiece& piece, base::Bytes bytes) {
  formats::append_stored(bytes, first_ || kernel_, piece.records);
  if (piece.records.empty()) return;
  first_ = false;
  piece.records.back().tsc = piece.tsc;
  predicts_ = predicts_ || std::any_of(piece.records.begin(), piece.records.end(), [](const auto& record) {
                return (record.flags & trace::RECORD_PREDICTED) != 0;
              });
  if (!predicts_) return;
  for (trace::BranchRecord& record : piece.records) record.flags |= trace::RECORD_PREDICTION_KNOWN;
}

BranchPiece PerfStore::piece(const AuxNote& note, base::Bytes bytes) {
  BranchPiece out = owned(note);
  fill(out, bytes);
  return out;
}

// Of several threads of one process the process is known.
void PerfStore::keep(const AuxNote& note) {
  ran_.pass(note.tsc);
  if (!last_) common_ = note;
  if (note.tid != common_.tid) common_.tid = kNobody;
  if (note.pid != common_.pid) common_.pid = common_.tid = kNobody;
  last_ = note;
  place_before_ = std::exchange(place_, note.begin);
}

void PerfStore::forget(std::int32_t pid, std::uint64_t before_tsc) {
  if (!last_) return;
  for (AuxNote* const note : {&common_, &*last_}) {
    if (note->pid == pid && note->tsc < before_tsc) note->pid = note->tid = kNobody;
  }
}

std::uint64_t PerfStore::bytes_of_last() const {
  return place_before_ ? (*place_ + ring_bytes_ - *place_before_ % ring_bytes_) % ring_bytes_ : ring_bytes_;
}

std::vector<BranchPiece> PerfStore::pieces(base::Bytes fresh) {
  std::vector<BranchPiece> out;
  first_ = true;
  if (!last_) keep({.begin = place_.value_or(0), .pid = kNobody, .tid = kNobody});
  const AuxNote last = *std::exchange(last_, std::nullopt);
  const auto sure =
      same_owner(common_, last) ? fresh.size() : std::min<std::uint64_t>(bytes_of_last(), fresh.size());
  if (sure != fresh.size()) {
    common_.tsc = last.tsc;
    out.push_back(owned(common_));
    fill(out.back(), fresh.first(fresh.size() - sure));
  }
  out.push_back(owned(last));
  fill(out.back(), fresh.last(sure));
  return out;
}

}  // namespace ptkit::capture
