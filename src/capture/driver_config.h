// Options as the kernel driver takes them, checked against what it and the processor can do.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "capture/record_options.h"
#include "ptkit/ptkit_ioctl.h"
#include "rtit/capabilities.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// What CPUID said to the driver.
[[nodiscard]] rtit::Capabilities capabilities_of(const ptkit_query& query) noexcept;

// One session's configuration; target, cpu, process and ranges are left for whoever knows them. Fails where
// something is asked for that is not there: the sentence names the option, and what can be done.
// `warnings` gets what is done without.
[[nodiscard]] base::Result<ptkit_config> driver_config(const RecordOptions& options, const ptkit_query& query,
                                                       std::vector<std::string>& warnings);

// How the driver refused a configuration, in words: `error` is the errno, `config.refused` names the field.
[[nodiscard]] base::Failure refusal(int error, const ptkit_config& config);

// What a bundle says of a recording with this configuration.
[[nodiscard]] trace::Configuration recorded_configuration(const ptkit_config& config,
                                                          const ptkit_query& query);

}  // namespace ptkit::capture
