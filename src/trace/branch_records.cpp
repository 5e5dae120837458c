#include "trace/branch_records.h"

#include <algorithm>
#include <bit>
#include <memory>

namespace ptkit::trace {

namespace {

static_assert(std::endian::native == std::endian::little, "streams hold records in memory order");

constexpr std::uint64_t kDsPredicted = 1U << 4U;
constexpr std::uint32_t kKnownPredicted = RECORD_PREDICTED | RECORD_PREDICTION_KNOWN;

bool is_empty(const BranchRecord& record) noexcept { return record.from_ip == 0 && record.to_ip == 0; }

template <unsigned BYTES>
void append_ds(base::Bytes bytes, std::vector<BranchRecord>& out) {
  for (std::size_t at = 0; bytes.size() - at >= std::size_t{3} * BYTES; at += std::size_t{3} * BYTES) {
    const std::uint8_t* from = bytes.data() + at;
    BranchRecord record;
    record.from_ip = base::load_le<BYTES>(from);
    record.to_ip = base::load_le<BYTES>(from + BYTES);
    const std::uint64_t flags = base::load_le<BYTES>(from + std::size_t{2} * BYTES);
    if ((flags & kDsPredicted) != 0) record.flags = kKnownPredicted;
    if (BYTES == 4) record.flags |= RECORD_CODE32;
    out.push_back(record);
  }
}

// Bits of perf_branch_entry's third word (uapi/linux/perf_event.h).
constexpr std::uint64_t kMispredicted = 1;
constexpr std::uint64_t kPredicted = 2;
constexpr std::uint64_t kInTx = 4;
constexpr std::uint64_t kAbort = 8;
constexpr unsigned kCyclesShift = 4;
constexpr std::uint64_t kCyclesMask = 0xffff;
// PERF_SAMPLE_BRANCH_*
constexpr std::uint64_t kAny = 1U << 3U;
constexpr std::uint64_t kInTransactions = 1U << 8U;
constexpr std::uint64_t kOutsideTransactions = 1U << 9U;

std::uint32_t flags_of_entry(std::uint64_t word) noexcept {
  std::uint32_t flags = 0;
  if ((word & (kMispredicted | kPredicted)) != 0) flags |= RECORD_PREDICTION_KNOWN;
  if ((word & kPredicted) != 0) flags |= RECORD_PREDICTED;
  if ((word & kInTx) != 0) flags |= RECORD_IN_TX;
  if ((word & kAbort) != 0) flags |= RECORD_ABORT;
  return flags;
}

}  // namespace

std::size_t append_ds_records(base::Bytes bytes, DsLayout layout, std::vector<BranchRecord>& out) {
  if (layout == DsLayout::BITS32) {
    append_ds<4>(bytes, out);
  } else {
    append_ds<8>(bytes, out);
  }
  return bytes.size() % record_bytes(layout);
}

void infer_prediction_known(std::vector<BranchRecord>& records) noexcept {
  PredictionInference().apply(records);
}

void PredictionInference::apply(std::vector<BranchRecord>& records) noexcept {
  known_ = known_ || std::any_of(records.begin(), records.end(), [](const BranchRecord& record) {
             return (record.flags & RECORD_PREDICTED) != 0;
           });
  if (!known_) return;
  for (BranchRecord& record : records) record.flags |= RECORD_PREDICTION_KNOWN;
}

DsRecords read_ds_buffer(base::Bytes bytes, DsLayout layout) {
  DsRecords out;
  out.records.reserve(bytes.size() / record_bytes(layout));
  out.left = append_ds_records(bytes, layout, out.records);
  while (!out.records.empty() && is_empty(out.records.back())) {
    out.records.pop_back();
    ++out.empty;
  }
  infer_prediction_known(out.records);
  return out;
}

void append_bts_aux(base::Bytes bytes, bool first, std::vector<BranchRecord>& out) {
  const std::size_t had = out.size();
  append_ds<8>(bytes, out);
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(had), out.end(), is_empty), out.end());
  if (first && out.size() != had) out[had].flags |= RECORD_FIRST;
}

void append_branch_stack(base::Bytes entries, std::uint64_t tsc, bool whole, std::vector<BranchRecord>& out) {
  const std::size_t first = out.size();
  for (std::size_t at = entries.size() / kBranchEntryBytes * kBranchEntryBytes; at != 0;) {
    at -= kBranchEntryBytes;
    const std::uint8_t* entry = entries.data() + at;
    const std::uint64_t word = base::load_le<8>(entry + 16);
    BranchRecord record;
    record.from_ip = base::load_le<8>(entry);
    record.to_ip = base::load_le<8>(entry + 8);
    if (is_empty(record)) continue;
    record.flags = flags_of_entry(word) | (whole ? 0U : std::uint32_t{RECORD_FIRST});
    record.cycles = static_cast<std::uint32_t>(word >> kCyclesShift & kCyclesMask);
    out.push_back(record);
  }
  if (out.size() == first) return;
  out[first].flags |= RECORD_FIRST;
  out.back().tsc = tsc;
}

bool newest_is_copy(const std::vector<BranchRecord>& records, std::size_t first) noexcept {
  if (records.size() < first + 2) return false;
  const BranchRecord& newest = records.back();
  const BranchRecord& before = records[records.size() - 2];
  return newest.from_ip == before.from_ip && newest.to_ip == before.to_ip;
}

bool is_lbr_depth(std::size_t records) noexcept { return records == 8 || records == 16 || records == 32; }

bool has_every_branch(std::uint64_t branch_type) noexcept {
  const bool one_side = ((branch_type & kInTransactions) != 0) != ((branch_type & kOutsideTransactions) != 0);
  return (branch_type & kAny) != 0 && !one_side;
}

TraceBuffer to_buffer(std::vector<BranchRecord> records) {
  const auto owner = std::make_shared<const std::vector<BranchRecord>>(std::move(records));
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(owner->data()),
                          owner->size() * sizeof(BranchRecord));
  return {bytes, owner};
}

}  // namespace ptkit::trace
