// The processor's vendor, family, model and name (CPUID).
#pragma once

#include <cstdint>
#include <string>

#include "trace/bundle.h"

namespace ptkit::capture {

[[nodiscard]] trace::Cpu this_processor() noexcept;
// A processor of this machine's vendor, with EAX of CPUID leaf 1.
[[nodiscard]] trace::Cpu processor_of(std::uint32_t signature) noexcept;
[[nodiscard]] std::string processor_name();

}  // namespace ptkit::capture
