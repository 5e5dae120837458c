// A dump of a BTS buffer that was used as a ring: where it is if the debug store (DS) save area is before it
// (Intel SDM vol. 3, "BTS and DS Save Area"), and the order of its records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "trace/branch_records.h"

namespace ptkit::formats {

struct DsDump {
  base::Bytes buffer;                    // the BTS buffer
  std::optional<std::uint64_t> index{};  // the record that would be written next; nullopt: there is no area
};

// Returns the BTS buffer of a dump, which is all of it if it does not begin with a DS area. Returns nullopt
// if the dump begins with one, and the buffer is not in it.
[[nodiscard]] std::optional<DsDump> find_bts_buffer(base::Bytes dump, trace::DsLayout layout) noexcept;

struct RingSeam {
  std::size_t oldest = 0;  // index of the oldest record
  bool certain = false;    // otherwise the records do not tell
};

// Looks for the one index in a buffer at which a branch cannot have followed the record before it: execution
// between two branches is straight, so a branch is at the target of the one before it or above, and not
// far above. That index is certain if records of user code and of kernel code are there: then every
// change of level and thread is a record, too, and nothing but the seam breaks the order.
[[nodiscard]] RingSeam find_seam(std::span<const trace::BranchRecord> records, trace::DsLayout layout);

// Moves the oldest record to the begin. `oldest` is at most the number of records.
void begin_with(std::vector<trace::BranchRecord>& records, std::size_t oldest);
// For the record at the BTS index, that of the next one to write. Records that were never
// written have to be at the end. Returns a failure if the buffer has no such record.
[[nodiscard]] std::optional<base::Failure> begin_at_index(trace::DsRecords& all, std::uint64_t index);

}  // namespace ptkit::formats
