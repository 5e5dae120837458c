// Copies for tables that are larger than the caches.
#pragma once

#include <cstddef>

namespace ptkit::tables::columns {

// As std::memcpy(). The copy goes to memory, past the caches: a store that goes to the caches reads its line
// before. For copies that nothing reads soon.
void copy_past_cache(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace ptkit::tables::columns
