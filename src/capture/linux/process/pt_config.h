// The packet generator's configuration for recorders in software, and the bundle's configuration for it.
#pragma once

#include <cstdint>
#include <string>

#include "capture/common/record_options.h"
#include "capture/linux/process/tsc_clock.h"
#include "trace/bundle.h"
#include "trace_unit/generator/config.h"

namespace ptkit::capture {

[[nodiscard]] trace_unit::generator::GeneratorConfig generator_config(const RecordOptions& options);
// The configuration as MSR values, with this processor and the clock as measured so far.
[[nodiscard]] trace::Configuration configuration(const RecordOptions& options,
                                                 const TscCalibration& calibration);
[[nodiscard]] std::int64_t real_time_ns();  // CLOCK_REALTIME
[[nodiscard]] std::string machine();        // description of kernel and processor

}  // namespace ptkit::capture
