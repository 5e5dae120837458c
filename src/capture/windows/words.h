// Words for what the driver gives as numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "capture/windows/requests.h"

namespace ptkit::capture {

struct Words {
  std::uint64_t code = 0;
  const char* words = "";
};

// What driver and processor can do: PTKIT_FEATURE_*.
[[nodiscard]] std::span<const Words> feature_words() noexcept;
// What a Windows is like: PTKIT_SYSTEM_*.
[[nodiscard]] std::span<const Words> system_words() noexcept;
// Why a trace unit cannot be used, or stopped (PTKIT_REASON_*), and what to do about it.
[[nodiscard]] const char* reason_text(std::uint32_t reason) noexcept;
// Whether a recording can be expected to work: a line for `doctor`.
[[nodiscard]] std::string recording_text(const ptkit_windows_query& query);
// The options that set a field of struct ptkit_windows_config, by its offset.
[[nodiscard]] const char* field_text(std::uint32_t offset) noexcept;

}  // namespace ptkit::capture
