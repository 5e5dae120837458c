// Translates options to fields of IA32_RTIT_CTL, for both back ends (driver and perf). A failure names the
// option that needs a feature which the trace unit lacks.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "capture/common/record_options.h"
#include "trace_unit/msr/capabilities.h"
#include "trace_unit/msr/config.h"

namespace ptkit::capture {

// Options of packets, which recordings of branches (BTS, LBR) do not have.
[[nodiscard]] std::optional<base::Failure> check_branches(const RecordOptions& options);
// Names the option that violates a rule of the registers, and the remedy.
[[nodiscard]] base::Failure explained(const trace_unit::msr::Violation& violation,
                                      const trace_unit::msr::Capabilities& can);
// IA32_RTIT_CTL.MTCEn and MTCFreq.
[[nodiscard]] bool has_mtc(const RecordOptions& options, const trace_unit::msr::Capabilities& can) noexcept;
[[nodiscard]] std::uint8_t mtc_frequency(const RecordOptions& options,
                                         const trace_unit::msr::Capabilities& can) noexcept;
// IA32_RTIT_CTL.PSBFreq.
[[nodiscard]] std::uint8_t psb_frequency(const RecordOptions& options,
                                         const trace_unit::msr::Capabilities& can) noexcept;

}  // namespace ptkit::capture
