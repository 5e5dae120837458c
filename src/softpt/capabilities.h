// What CPUID says of the processor: as the model of the registers has it.
#pragma once

#include "rtit/capabilities.h"

namespace ptkit::softpt {

using rtit::Capabilities;

}  // namespace ptkit::softpt
