// Processors of Windows by group.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "capture/windows/requests.h"

namespace ptkit::capture {

using Affinity = std::array<std::uint64_t, PTKIT_MOST_GROUPS>;

// The masks of processors that are counted through all groups. `sizes`: active processors of each group.
[[nodiscard]] base::Result<Affinity> affinity_of(std::span<const std::uint32_t> cpus,
                                                 std::span<const std::uint32_t> sizes);

}  // namespace ptkit::capture
