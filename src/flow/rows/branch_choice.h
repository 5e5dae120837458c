// Selection of branches by kind, and by taken or not taken.
#pragma once

#include <cstdint>

#include "flow/rows/rows.h"

namespace ptkit::flow {

struct BranchChoice {
  std::uint32_t kinds = ~std::uint32_t{0};  // bits by BranchKind
  bool taken = true;                        // branches with the flag TAKEN
  bool not_taken = true;                    // branches without the flag TAKEN

  [[nodiscard]] bool has(BranchKind kind) const noexcept {
    return (kinds >> static_cast<unsigned>(kind) & 1U) != 0;
  }
  [[nodiscard]] bool has(BranchKind kind, std::uint8_t flags) const noexcept {
    return has(kind) && ((flags & TAKEN) != 0 ? taken : not_taken);
  }
  [[nodiscard]] bool both_ways() const noexcept { return taken && not_taken; }
  friend bool operator==(const BranchChoice&, const BranchChoice&) = default;
};

}  // namespace ptkit::flow
