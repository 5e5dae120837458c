// The order of bytes in a buffer of packets that was used as a ring.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "trace/buffer.h"

namespace ptkit::formats {

// Puts the bytes of a ring in the order in which they were written. `offset` is where the next byte would be
// written (IA32_RTIT_OUTPUT_MASK_PTRS[63:32] of a single range). A ring with zeros alone from there on has
// not wrapped: the zeros are left out. Returns a failure if the buffer has no such offset.
[[nodiscard]] std::optional<base::Failure> begin_at_offset(trace::TraceBuffer& ring, std::uint64_t offset);

}  // namespace ptkit::formats
