// Branch records as processors and kernels write them, made into those of a bundle.
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "trace/branch_record.h"
#include "trace/buffer.h"

namespace ptkit::formats {

// Records of a debug store area (Intel SDM vol. 3, "BTS and DS Save Area"): from, to and flags, each of this
// many bytes.
enum class DsLayout : std::uint8_t {
  BITS32 = 4,  // 12 bytes, by 32-bit systems: the code is 32-bit code
  BITS64 = 8,  // 24 bytes
};
[[nodiscard]] constexpr std::size_t record_bytes(DsLayout layout) noexcept {
  return 3 * static_cast<std::size_t>(layout);
}

// Appends the whole records of `bytes`, oldest first as they are there; returns how many bytes are left at
// the end. Prediction is not known where the processor says nothing of it: call settle_prediction() when all
// records of one processor are there.
std::size_t append_ds_records(base::Bytes bytes, DsLayout layout, std::vector<trace::BranchRecord>& out);

// Bit 4 of a DS record says that the branch was predicted; processors that do not know leave it clear. So a
// clear bit tells something only if another record has it set.
void settle_prediction(std::vector<trace::BranchRecord>& records) noexcept;

// All of a buffer that a processor wrote: prediction is settled, and what it had no more branches for (empty
// records at the end) is left out.
struct DsRecords {
  std::vector<trace::BranchRecord> records;
  std::size_t empty = 0;  // records at the end
  std::size_t left = 0;   // bytes of a cut record behind them
};
[[nodiscard]] DsRecords read_ds_buffer(base::Bytes bytes, DsLayout layout);

// Appends what Linux took out of such a buffer, without the zeros with which it fills what no record fits
// into. `first`: what came before them is not known.
void append_stored(base::Bytes bytes, bool first, std::vector<trace::BranchRecord>& out);

// An entry of a branch stack of the Linux kernel (perf_branch_entry): from, to and flags, 8 bytes each.
inline constexpr std::size_t kBranchEntryBytes = 24;

// Appends a branch stack, which has the newest branch first; empty entries are left out. `tsc` is the time
// of the sample, 0: not known: the newest branch is not later. The oldest gets RECORD_FIRST; each of them,
// if the stack does not have every taken branch (`whole`).
void append_branch_stack(base::Bytes entries, std::uint64_t tsc, bool whole,
                         std::vector<trace::BranchRecord>& out);

// Whether perf_event_attr::branch_sample_type leaves no branch out that was taken.
[[nodiscard]] bool has_every_branch(std::uint64_t branch_type) noexcept;

// The data of a stream of kind BRANCH_RECORDS.
[[nodiscard]] trace::TraceBuffer to_buffer(std::vector<trace::BranchRecord> records);

}  // namespace ptkit::formats
