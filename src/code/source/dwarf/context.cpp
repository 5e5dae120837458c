#include "code/source/dwarf/context.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>

namespace ptkit::code::dwarf {

std::uint64_t longest_string(base::Bytes strings) noexcept {
  std::uint64_t longest = 0;
  while (!strings.empty()) {
    const void* const end = std::memchr(strings.data(), 0, strings.size());
    const std::size_t size =
        end == nullptr ? strings.size()
                       : static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) - strings.data());
    longest = std::max<std::uint64_t>(longest, size);
    strings = strings.subspan(std::min(size + 1, strings.size()));
  }
  return longest;
}

std::uint64_t Context::longest_section_string() {
  if (!longest_string_) {
    longest_string_ = 0;
    for (const base::Bytes section : string_sections)
      longest_string_ = std::max(*longest_string_, longest_string(section));
  }
  return *longest_string_;
}

std::ptrdiff_t Context::list_of(Dwarf_Die& die, Dwarf_Addr& base) const {
  const auto found = split_units.empty() ? split_units.end() : split_units.find(die.cu);
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (found == split_units.end() || dwarf_formudata(dwarf_attr(&die, DW_AT_ranges, &attribute), &value) != 0)
    return 0;
  const SplitUnit& unit = found->second;
  if (unit.has_old_lists) {
    base = unit.base;
    return static_cast<std::ptrdiff_t>(kBeforeLists + value);
  }
  // A number of a list: offsets of lists follow the header. DWARF 5, section 7.28.
  constexpr std::uint64_t kHeader = 12;
  constexpr std::uint64_t kOffset = 4;
  if (unit.base == 0 || attribute.form != DW_FORM_rnglistx || unit.lists.size() < kHeader ||
      value >= (unit.lists.size() - kHeader) / kOffset)
    return 0;
  base = unit.base;
  const std::uint64_t offset = base::load_le<kOffset>(unit.lists.data() + kHeader + value * kOffset);
  return static_cast<std::ptrdiff_t>(kHeader + offset);
}

}  // namespace ptkit::code::dwarf
