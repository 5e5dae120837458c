// What the units of one file share. Internal to src/dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "dwarf/budget.h"
#include "dwarf/strings.h"

namespace ptkit::dwarf {

struct Context {
  explicit Context(std::uint64_t steps) noexcept : budget(steps) {}

  Budget budget;
  Strings strings;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> code;  // [first, last] of executable segments
  base::Bytes line_programs;                                  // .debug_line
  std::vector<base::Bytes> string_sections;                   // .debug_line_str, .debug_str
  std::unordered_map<const void*, std::uint32_t> names;       // of functions, by the address of their DIE

  // Linkers leave debug information of code that they drop: at address 0, or at the end of the address space.
  [[nodiscard]] bool is_code(std::uint64_t address) const noexcept {
    for (const auto& [first, last] : code) {
      if (address >= first && address <= last) return true;
    }
    return false;
  }
  [[nodiscard]] std::uint64_t longest_section_string();

 private:
  std::optional<std::uint64_t> longest_string_;
};

[[nodiscard]] std::uint64_t longest_string(base::Bytes strings) noexcept;

// Calls `visit` with the first and last address of each range of a DIE.
template <typename Visit>
void for_each_range(Dwarf_Die& die, Context& context, Visit&& visit) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
    if (!context.budget.take()) return;
    if (begin < end && context.is_code(begin)) visit(std::uint64_t{begin}, std::uint64_t{end - 1});
  }
}

}  // namespace ptkit::dwarf
