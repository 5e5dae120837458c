// Translates options to the kernel driver's configuration, and checks them against driver and processor.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "capture/common/record_options.h"
#include "ptkit/ptkit_abi.h"
#include "trace/bundle.h"
#include "trace_unit/msr/capabilities.h"

namespace ptkit::capture {

// The capabilities by CPUID, as the driver reports them.
[[nodiscard]] trace_unit::msr::Capabilities capabilities_of(const ptkit_query& query) noexcept;

// The configuration of one session, without target, cpu, process and ranges: the caller sets these. Fails if
// an option needs what the processor or the driver does not have: the message names the option and the
// remedy. `warnings` gets one for each feature that the recording does without.
[[nodiscard]] base::Result<ptkit_config> driver_config(const RecordOptions& options, const ptkit_query& query,
                                                       std::vector<trace::Warning>& warnings);

// The error of PTKIT_CONFIGURE: `error` is the errno, `config.refused` the offset of the invalid field.
[[nodiscard]] base::Failure config_error(int error, const ptkit_config& config);

// The configuration for the bundle.
[[nodiscard]] trace::Configuration recorded_configuration(const ptkit_config& config,
                                                          const ptkit_query& query);

}  // namespace ptkit::capture
