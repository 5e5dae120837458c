#include "base/huge_pages.h"

namespace ptkit::base {

// Windows takes no advice: large pages need SeLockMemoryPrivilege, and are locked.
void prefer_huge_pages(void* /*memory*/, std::size_t /*bytes*/) noexcept {}

}  // namespace ptkit::base
