#include "base/system/this_linux.h"

namespace ptkit::base {

std::string linux_host_name() { return {}; }

std::uint64_t linux_device(std::uint32_t /*major*/, std::uint32_t /*minor*/) noexcept { return 0; }

std::uint32_t linux_cpus() noexcept { return 0; }

Bytes linux_vdso() noexcept { return {}; }

}  // namespace ptkit::base
