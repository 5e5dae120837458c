// The records that the driver writes besides the trace, out of a mapped ring (struct ptkit_record).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace ptkit::capture {

// One record, whatever its type; what the type does not have is zero.
struct DriverRecord {
  std::uint16_t type = 0;  // PTKIT_RECORD_*
  std::uint32_t cpu = 0;
  std::uint64_t tsc = 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint64_t kernel_cr3 = 0;  // SWITCH, EXEC; 0: as before
  std::uint64_t user_cr3 = 0;
  std::int32_t parent_pid = 0;  // FORK
  std::int32_t parent_tid = 0;
  std::int32_t status = 0;    // EXIT
  std::uint64_t address = 0;  // MMAP, MODULE, MODULE_GONE
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t inode = 0;
  std::uint64_t count = 0;  // LOST
  std::string text;         // NAME, MMAP, MODULE
};

struct DriverRecords {
  std::vector<DriverRecord> records;
  std::uint64_t read_to = 0;    // bytes since the ring began: where the next call goes on
  std::uint64_t unknown = 0;    // records of types that are not known here
  std::uint64_t bad_bytes = 0;  // that were no records; all that followed them was left out
};

// Records in bytes [from, to) since the ring began; they lie there modulo its size. Whatever the ring holds,
// nothing outside of it is read.
[[nodiscard]] DriverRecords read_records(base::Bytes ring, std::uint64_t from, std::uint64_t to);

}  // namespace ptkit::capture
