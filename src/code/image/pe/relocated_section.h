// A section of a PE file with its relocations applied. Internal to src/code/image.
#pragma once

#include <cstdint>
#include <memory>

#include "code/image/pe/pe_relocations.h"
#include "trace/buffer.h"

namespace ptkit::code::image {

// The bytes of a section at an RVA, moved by `delta`; copied at their first use. `file` keeps what the
// relocations refer to.
[[nodiscard]] trace::TraceBuffer relocated(const trace::TraceBuffer& section, const trace::TraceBuffer& file,
                                           std::shared_ptr<const PeRelocations> relocations,
                                           std::uint64_t delta, std::uint32_t rva);

}  // namespace ptkit::code::image
