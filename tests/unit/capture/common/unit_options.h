// Sets the options of trace units alone (those that only perf or the driver have) to their defaults.
#pragma once

#include "capture/common/record_options.h"

namespace ptkit::capture::test {

inline void reset_unit_options(RecordOptions& options) {
  const RecordOptions plain;
#define PTKIT_OPTION(name, kind, type, preset, least, most, unit, back_ends, ...) \
  if (((back_ends) & ~kUnits) == 0) options.name = plain.name;
#include "capture/common/record_options.def"
}

}  // namespace ptkit::capture::test
