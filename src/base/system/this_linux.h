// Facts that a recording of Linux may share with this machine. None on other systems.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace ptkit::base {

// Empty: this is no Linux.
[[nodiscard]] std::string linux_host_name();
// FileIdentity::device of a device that the kernel names by two numbers.
[[nodiscard]] std::uint64_t linux_device(std::uint32_t major, std::uint32_t minor) noexcept;
// Processors that the system may use, online or not. 0: not known.
[[nodiscard]] std::uint32_t linux_cpus() noexcept;
// The ELF image that the kernel maps into this process. Empty: there is none.
[[nodiscard]] Bytes linux_vdso() noexcept;

}  // namespace ptkit::base
