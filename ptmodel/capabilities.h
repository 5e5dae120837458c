// What CPUID says of the processor: as the model of the registers has it.
#pragma once

#include "trace_unit/msr/capabilities.h"

namespace ptkit::ptmodel {

using trace_unit::msr::Capabilities;

}  // namespace ptkit::ptmodel
