// Which processor this is (CPUID).
#pragma once

#include <string>

#include "trace/bundle.h"

namespace ptkit::capture {

[[nodiscard]] trace::Cpu this_processor() noexcept;
[[nodiscard]] std::string processor_name();

}  // namespace ptkit::capture
