// A taken branch, as recorded by Branch Trace Store (BTS) or last branch records (LBR).
#pragma once

#include <cstdint>

namespace ptkit::trace {

enum BranchRecordFlag : std::uint32_t {
  RECORD_PREDICTED = 1,  // meaningful with PREDICTION_KNOWN
  RECORD_PREDICTION_KNOWN = 2,
  RECORD_IN_TX = 4,
  RECORD_ABORT = 8,    // abort of a transaction
  RECORD_FIRST = 16,   // its predecessor is not known: the oldest record of a branch stack, or after a loss
  RECORD_CODE32 = 32,  // the code at to_ip is 32-bit code
  // The newest of a full branch stack with every taken branch, and a copy of the record before it: some
  // processors store it twice. It is no branch if the code does not lead from the record before to it.
  RECORD_MAY_REPEAT = 64,
};

// Streams of kind BRANCH_RECORDS are arrays of these, in the order of execution, little-endian.
struct BranchRecord {
  std::uint64_t from_ip = 0;  // IP of the branch; asynchronous: IP of the instruction that was not executed
  std::uint64_t to_ip = 0;
  // When the recorder read the record: the branch was not later, the next branch was not earlier. 0: not
  // known.
  std::uint64_t tsc = 0;
  std::uint32_t flags = 0;
  std::uint32_t cycles = 0;  // since the record before; 0: not known
};
static_assert(sizeof(BranchRecord) == 32);

// The number of the first record that begins at a stream offset or after it. Offsets of rows are such
// numbers.
[[nodiscard]] constexpr std::uint64_t record_number(std::uint64_t offset) noexcept {
  return offset / sizeof(BranchRecord) + (offset % sizeof(BranchRecord) != 0 ? 1 : 0);
}

}  // namespace ptkit::trace
