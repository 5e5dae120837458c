// Descriptions of numbers: those that the driver reports, and counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "capture/windows/requests.h"

namespace ptkit::capture {

struct Description {
  std::uint64_t code = 0;
  const char* text = "";
};

// Abilities of driver and processor: PTKIT_FEATURE_*.
[[nodiscard]] std::span<const Description> feature_descriptions() noexcept;
// Properties of a Windows system: PTKIT_SYSTEM_*.
[[nodiscard]] std::span<const Description> system_descriptions() noexcept;
// Why a trace unit cannot be used, or stopped (PTKIT_REASON_*), and what to do about it.
[[nodiscard]] const char* reason_text(std::uint32_t reason) noexcept;
// Whether a recording can be expected to work: a line for `doctor`.
[[nodiscard]] std::string recording_text(const ptkit_windows_query& query);
// The options that set a field of struct ptkit_windows_config, by its offset.
[[nodiscard]] const char* field_text(std::uint32_t offset) noexcept;

// "1 event", "2 events".
[[nodiscard]] inline std::string counted(std::uint64_t count, const char* noun,
                                         const char* plural_ending = "s") {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : plural_ending);
}

}  // namespace ptkit::capture
