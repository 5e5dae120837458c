// A taken branch, as recorded by Branch Trace Store (BTS) or last branch records (LBR).
#pragma once

#include <cstdint>

namespace ptkit::trace {

enum BranchRecordFlag : std::uint32_t {
#define PT_RECORD_FLAG(name, value) RECORD_##name = value,
#include "trace/kinds.def"
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
