// Selection of branches by kind, and by taken or not taken.
#pragma once

#include <cstdint>

#include "flow/rows/rows.h"

namespace ptkit::code::image {
class CodeView;
}

namespace ptkit::flow {

// Selects direct jumps by their ends. Thread-safe, and the same for the same branch of the same view.
class JumpTest {
 public:
  virtual ~JumpTest() = default;
  [[nodiscard]] virtual bool has(const code::image::CodeView& view, std::uint64_t from,
                                 std::uint64_t to) const = 0;
};

struct BranchChoice {
  std::uint32_t kinds = ~std::uint32_t{0};  // bits by BranchKind
  bool taken = true;                        // branches with the flag TAKEN
  bool not_taken = true;                    // branches without the flag TAKEN
  // Rows in bulk: also these direct jumps, taken ones of other kinds. It outlives all decoded code.
  const JumpTest* jumps = nullptr;

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
