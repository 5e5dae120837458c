#include "base/system/this_linux.h"

namespace ptkit::base {

std::string linux_host_name() { return {}; }

Bytes linux_vdso() noexcept { return {}; }

}  // namespace ptkit::base
