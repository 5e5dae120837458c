// State of PacketGenerator; included by its two .cpp files only.
#pragma once

#include "trace_unit/generator/generator.h"
#include "trace_unit/generator/packet_generator.h"

namespace ptkit::trace_unit::generator {

struct PacketGenerator::State : Generator {
  using Generator::Generator;
};

}  // namespace ptkit::trace_unit::generator
