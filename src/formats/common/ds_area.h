// A dump of a debug store (DS) save area with its BTS buffer after it (Intel SDM vol. 3, "BTS and DS Save
// Area"). The area says where the buffer is in memory, and which record is the next one to write.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "trace/branch_records.h"

namespace ptkit::formats {

struct DsDump {
  base::Bytes buffer;                    // the BTS buffer
  std::optional<std::uint64_t> index{};  // the record that would be written next; nullopt: there is no area
};

// Returns the BTS buffer of a dump, which is all of it if it does not begin with a DS area. Returns nullopt
// if the dump begins with one, and the buffer is not in it.
[[nodiscard]] std::optional<DsDump> find_bts_buffer(base::Bytes dump, trace::DsLayout layout) noexcept;

}  // namespace ptkit::formats
