// Processors of Windows by group.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "capture/common/errors.h"
#include "capture/windows/requests.h"

namespace ptkit::capture {

using Affinity = std::array<std::uint64_t, PTKIT_MOST_GROUPS>;

// The masks of processors that are counted through all groups. `sizes`: active processors of each group.
[[nodiscard]] inline base::Result<Affinity> affinity_of(std::span<const std::uint32_t> cpus,
                                                        std::span<const std::uint32_t> sizes) {
  constexpr std::uint32_t kGroupBits = 64;
  Affinity masks{};
  for (const std::uint32_t cpu : cpus) {
    std::uint32_t number = cpu;
    std::size_t group = 0;
    while (group < sizes.size() && number >= sizes[group]) number -= sizes[group++];
    if (group >= std::min(sizes.size(), masks.size()) || number >= kGroupBits) {
      std::uint32_t all = 0;
      for (const std::uint32_t size : sizes) all += size;
      return invalid_option("-C: expected processors below " + std::to_string(all) + ", found " +
                            std::to_string(cpu));
    }
    masks[group] |= std::uint64_t{1} << number;
  }
  return masks;
}

}  // namespace ptkit::capture
