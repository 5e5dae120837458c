// What a recording of Linux may share with this machine. On other systems nothing.
#pragma once

#include <string>

#include "base/bytes.h"

namespace ptkit::base {

// Empty: this is no Linux.
[[nodiscard]] std::string linux_host_name();
// The ELF image that the kernel maps into this process. Empty: there is none.
[[nodiscard]] Bytes linux_vdso() noexcept;

}  // namespace ptkit::base
