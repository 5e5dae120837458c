// Rows of libipt's suite that differ on purpose, each with its reason. At most 8 of 308.
#pragma once

#include <array>
#include <string_view>

namespace ptkit::golden {

struct AllowedDifference {
  std::string_view test;
  std::string_view tool;     // "ptdump" or "ptxed"
  std::string_view decoder;  // "insn", "block", or empty for both
  std::string_view reason;
};

inline constexpr auto kAllowedDifferences = std::to_array<AllowedDifference>({
    {"bad_cpu", "ptxed", "", "libipt refuses an unknown CPU; ptkit warns and applies the superset of errata"},
    {"ptxed-resync-nomap-tip_pgd", "ptxed", "",
     "libipt goes on at a TIP that may have been deferred over bits that were dropped; ptkit waits for a "
     "safer one"},
});

}  // namespace ptkit::golden
