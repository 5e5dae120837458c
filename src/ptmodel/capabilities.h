// What CPUID says of the processor: as the model of the registers has it.
#pragma once

#include "msr/capabilities.h"

namespace ptkit::ptmodel {

using msr::Capabilities;

}  // namespace ptkit::ptmodel
