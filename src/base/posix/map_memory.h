// mmap() that also works in builds with AddressSanitizer.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace ptkit::base {

// Calls ::mmap() without an address. AddressSanitizer keeps the shadow of large allocations after it unmaps
// them. A new mapping at the same address then looks like memory after an allocation, so the shadow is
// cleared.
[[nodiscard]] void* map_memory(std::size_t bytes, int protection, int flags, int file,
                               off_t offset = 0) noexcept;

}  // namespace ptkit::base
