// What options mean for a trace unit, whoever programs it. What is not there is refused by the option's name.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "capture/record_options.h"
#include "rtit/capabilities.h"
#include "rtit/config.h"

namespace ptkit::capture {

// What no processor can do.
[[nodiscard]] std::optional<base::Failure> check_hardware(const RecordOptions& options);
// What records of branches do not have: packets, and what belongs to them.
[[nodiscard]] std::optional<base::Failure> check_branches(const RecordOptions& options);
// The option that asks for what breaks a rule of the registers, and how to do without.
[[nodiscard]] base::Failure explained(const rtit::Violation& violation, const rtit::Capabilities& can);
// Whether there are MTC packets, and the field MTCFreq.
[[nodiscard]] bool has_mtc(const RecordOptions& options, const rtit::Capabilities& can) noexcept;
[[nodiscard]] std::uint8_t mtc_frequency(const RecordOptions& options,
                                         const rtit::Capabilities& can) noexcept;
// The field PSBFreq.
[[nodiscard]] std::uint8_t psb_frequency(const RecordOptions& options,
                                         const rtit::Capabilities& can) noexcept;

}  // namespace ptkit::capture
