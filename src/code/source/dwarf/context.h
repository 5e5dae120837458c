// State that the units of one file share. Internal to src/code/source/dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "code/source/budget.h"
#include "code/source/strings.h"

namespace ptkit::code::dwarf {

// Name and line that inlined calls have from their function.
struct FunctionName {
  std::uint32_t name = code::source::kNone;  // number of a string
  std::uint32_t line = 0;                    // of its declaration
};
// A unit that was split from its skeleton, which says where its addresses count from.
struct SplitUnit {
  std::uint64_t base = 0;
  bool has_old_lists = false;  // of addresses: .debug_ranges
  base::Bytes lists;           // otherwise .debug_rnglists
};
inline constexpr std::size_t kBeforeLists =
    16;  // bytes before the first list in .debug_ranges of split units

struct Context {
  Context(code::source::Budget steps, code::source::Budget& memory_left) noexcept
      : budget(steps), memory(memory_left) {}

  code::source::Budget budget;
  code::source::Budget& memory;  // bytes that libdw may take
  code::source::Strings strings;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> code;  // [first, last] of executable segments
  base::Bytes line_programs;                                  // .debug_line
  std::vector<base::Bytes> string_sections;                   // .debug_line_str, .debug_str
  std::unordered_map<const void*, FunctionName> names;        // of functions, by the address of their DIE
  std::uint32_t nodes = 0;                                    // functions and inlined calls that have numbers
  bool has_deep_calls = false;                                // some are more than kMostLevels deep
  std::unordered_map<const Dwarf_CU*, SplitUnit> split_units;

  // Linkers leave debug information of code that they drop: at address 0, or at the end of the address space.
  [[nodiscard]] bool is_code(std::uint64_t address) const noexcept {
    for (const auto& [first, last] : code) {
      if (address >= first && address <= last) return true;
    }
    return false;
  }
  [[nodiscard]] std::uint64_t longest_section_string();
  // Where the ranges of a DIE begin in their section, and the address that they count from; 0: libdw knows.
  [[nodiscard]] std::ptrdiff_t list_of(Dwarf_Die& die, Dwarf_Addr& base) const;

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
  for (std::ptrdiff_t at = context.list_of(die, base);
       (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
    if (!context.budget.take()) return;
    if (begin < end && context.is_code(begin)) visit(std::uint64_t{begin}, std::uint64_t{end - 1});
  }
}

}  // namespace ptkit::code::dwarf
