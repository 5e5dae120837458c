#include "base/system/thread_data.h"

namespace ptkit::base {

void allocate_data_with_threads() noexcept {}  // Windows allocates it when a thread starts

}  // namespace ptkit::base
