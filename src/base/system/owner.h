// Owners of files, where a system has them.
#pragma once

#include <cstdint>
#include <optional>

namespace ptkit::base {

struct Owner {
  std::uint32_t user = 0;
  std::uint32_t group = 0;

  bool operator==(const Owner&) const = default;
};

// The user that called sudo (SUDO_UID, SUDO_GID) if this process runs as root; otherwise nullopt.
[[nodiscard]] std::optional<Owner> sudo_caller();

}  // namespace ptkit::base
