// The processor's capabilities by CPUID, for the model of the registers.
#pragma once

#include "trace_unit/msr/capabilities.h"

namespace ptkit::ptmodel {

using trace_unit::msr::Capabilities;

}  // namespace ptkit::ptmodel
