#include "capture/linux/perf/bts_buffer.h"

#include <algorithm>
#include <utility>

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kRecordBytes = trace::record_bytes(trace::DsLayout::BITS64);
// The kernel continues in the next physical buffer if less than a page is left, and skips at most
// one record on either side (arch/x86/events/intel/bts.c).
constexpr std::uint64_t kMostPadding = 4096 + 2 * kRecordBytes;
constexpr std::int32_t kUnknown = -1;

bool same_owner(const AuxRecord& a, const AuxRecord& b) { return a.pid == b.pid && a.tid == b.tid; }

}  // namespace

std::uint64_t BtsBuffer::used_bytes(std::uint64_t bytes) noexcept { return bytes - bytes % kRecordBytes; }

bool BtsBuffer::is_padding(std::uint64_t bytes) noexcept { return bytes <= kMostPadding; }

BranchChunk BtsBuffer::chunk_of_owner(const AuxRecord& aux) {
  BranchChunk out{aux.tsc, aux.pid, aux.tid, {}};
  if (per_thread_) return out;
  const auto one = running_.only_one_until(aux.tsc);
  out.pid = one ? static_cast<std::int32_t>(one->pid) : kUnknown;
  out.tid = one ? static_cast<std::int32_t>(one->tid) : kUnknown;
  return out;
}

// The last branch is not later than the AUX record. Between two AUX records the kernel drains the buffer, and
// its branches there are not recorded: a path of kernel code is interrupted, a path of user code is not.
void BtsBuffer::fill(BranchChunk& chunk, base::Bytes bytes) {
  trace::append_bts_aux(bytes, new_path_ || kernel_, chunk.records);
  if (chunk.records.empty()) return;
  new_path_ = false;
  chunk.records.back().tsc = chunk.tsc;
  predictions_.apply(chunk.records);
}

BranchChunk BtsBuffer::chunk(const AuxRecord& aux, base::Bytes bytes) {
  BranchChunk out = chunk_of_owner(aux);
  fill(out, bytes);
  return out;
}

// Several threads of one process: the process is still known.
void BtsBuffer::add_ring_record(const AuxRecord& aux) {
  running_.pass(aux.tsc);
  if (!last_) common_owner_ = aux;
  if (aux.tid != common_owner_.tid) common_owner_.tid = kUnknown;
  if (aux.pid != common_owner_.pid) common_owner_.pid = common_owner_.tid = kUnknown;
  last_ = aux;
  previous_position_ = std::exchange(position_, aux.begin);
}

void BtsBuffer::forget(std::int32_t pid, std::uint64_t before_tsc) {
  if (!last_) return;
  for (AuxRecord* const aux : {&common_owner_, &*last_}) {
    if (aux->pid == pid && aux->tsc < before_tsc) aux->pid = aux->tid = kUnknown;
  }
}

std::uint64_t BtsBuffer::bytes_of_last() const {
  return previous_position_ ? (*position_ + ring_bytes_ - *previous_position_ % ring_bytes_) % ring_bytes_
                            : ring_bytes_;
}

std::vector<BranchChunk> BtsBuffer::chunks_of_snapshot(base::Bytes fresh) {
  std::vector<BranchChunk> out;
  new_path_ = true;
  if (!last_) add_ring_record({.begin = position_.value_or(0), .pid = kUnknown, .tid = kUnknown});
  const AuxRecord last = *std::exchange(last_, std::nullopt);
  const auto certain =
      same_owner(common_owner_, last) ? fresh.size() : std::min<std::uint64_t>(bytes_of_last(), fresh.size());
  if (certain != fresh.size()) {
    common_owner_.tsc = last.tsc;
    out.push_back(chunk_of_owner(common_owner_));
    fill(out.back(), fresh.first(fresh.size() - certain));
  }
  out.push_back(chunk_of_owner(last));
  fill(out.back(), fresh.last(certain));
  return out;
}

}  // namespace ptkit::capture
