// Parses the driver's sideband records (struct ptkit_record) in a mapped ring.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "capture/linux/sideband/system_record.h"

namespace ptkit::capture {

struct DriverRecords {
  std::vector<SystemRecord> records;
  std::uint64_t read_to = 0;    // position where the next call continues
  std::uint64_t unknown = 0;    // records of unknown types
  std::uint64_t bad_bytes = 0;  // malformed, and all that followed: skipped
};

// Parses the records at positions [from, to), which count bytes from the beginning and wrap at the ring's
// size. Malformed bytes never lead to reads outside the ring.
[[nodiscard]] DriverRecords read_records(base::Bytes ring, std::uint64_t from, std::uint64_t to);

}  // namespace ptkit::capture
