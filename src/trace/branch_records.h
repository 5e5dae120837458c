// Converts branch records of processors (BTS) and of the Linux kernel (branch stacks) into those of a bundle.
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "trace/branch_record.h"
#include "trace/buffer.h"

namespace ptkit::trace {

// A BTS record of a debug store area (Intel SDM vol. 3, "BTS and DS Save Area") is three words: branch-from
// address, branch-to address, flags. The value is the bytes of one word.
enum class DsLayout : std::uint8_t {
  BITS32 = 4,  // 12 bytes a record, written by 32-bit systems: the code is 32-bit code
  BITS64 = 8,  // 24 bytes a record
};
[[nodiscard]] constexpr std::size_t record_bytes(DsLayout layout) noexcept {
  return 3 * static_cast<std::size_t>(layout);
}

// Appends the complete records of `bytes`, oldest first as in memory. Returns the number of bytes of a cut
// record at the end. Call infer_prediction_known() after all records of one CPU are appended.
std::size_t append_ds_records(base::Bytes bytes, DsLayout layout, std::vector<BranchRecord>& out);

// Flag bit 4 of a BTS record says that the branch was predicted. Processors without that information leave
// the bit clear. A clear bit therefore means a misprediction only if another record has the bit set.
void infer_prediction_known(std::vector<BranchRecord>& records) noexcept;

// For records of one CPU that come in parts.
class PredictionInference {
 public:
  void apply(std::vector<BranchRecord>& records) noexcept;

 private:
  bool known_ = false;  // a record had the bit
};

// Reads a whole BTS buffer. infer_prediction_known() is applied. Empty records at the end, which the
// processor did not write, are left out.
struct DsRecords {
  std::vector<BranchRecord> records;
  std::size_t empty = 0;  // empty records at the end
  std::size_t left = 0;   // bytes of a cut record after these
};
[[nodiscard]] DsRecords read_ds_buffer(base::Bytes bytes, DsLayout layout);

// Appends the AUX data of Linux' intel_bts PMU: 64-bit BTS records, and zeros where the kernel padded a
// buffer. `first`: branches before these records are unknown.
void append_bts_aux(base::Bytes bytes, bool first, std::vector<BranchRecord>& out);

// Bytes of struct perf_branch_entry (uapi/linux/perf_event.h): from, to and flags, 8 bytes each.
inline constexpr std::size_t kBranchEntryBytes = 24;

// Appends a branch stack (PERF_SAMPLE_BRANCH_STACK, LBR) in execution order: the stack has the newest branch
// first. Empty entries are left out. `tsc` is the time of the sample (0: unknown); the newest branch is not
// later. The oldest record gets RECORD_FIRST. Unless `whole` (the stack has every taken branch), all get it.
void append_branch_stack(base::Bytes entries, std::uint64_t tsc, bool whole, std::vector<BranchRecord>& out);

// Returns true if the newest record of a stack that begins at `first` is a copy of the one before.
[[nodiscard]] bool newest_is_copy(const std::vector<BranchRecord>& records, std::size_t first) noexcept;
// Returns true if processors have that many last branch records (Intel SDM vol. 4, MSR_LASTBRANCH_n).
[[nodiscard]] bool is_lbr_depth(std::size_t records) noexcept;

// Returns true if perf_event_attr::branch_sample_type selects every taken branch.
[[nodiscard]] bool has_every_branch(std::uint64_t branch_type) noexcept;

// Returns the data of a stream of kind BRANCH_RECORDS.
[[nodiscard]] TraceBuffer to_buffer(std::vector<BranchRecord> records);

}  // namespace ptkit::trace
