// The records that the driver writes besides the trace, out of a mapped ring (struct ptkit_record).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "capture/system_record.h"

namespace ptkit::capture {

struct DriverRecords {
  std::vector<SystemRecord> records;
  std::uint64_t read_to = 0;    // bytes since the ring began: where the next call goes on
  std::uint64_t unknown = 0;    // records of types that are not known here
  std::uint64_t bad_bytes = 0;  // that were no records; all that followed them was left out
};

// Records in bytes [from, to) since the ring began; they lie there modulo its size. Whatever the ring holds,
// nothing outside of it is read.
[[nodiscard]] DriverRecords read_records(base::Bytes ring, std::uint64_t from, std::uint64_t to);

}  // namespace ptkit::capture
