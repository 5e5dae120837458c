// Time and memory that libdw is going to spend on abbreviations, which list the attributes of entries.
// Internal to src/code/source/dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "code/source/budget.h"

namespace ptkit::code::dwarf {

// To find an attribute of an entry, libdw reads all attributes in its abbreviation, and to find this, it
// keeps all abbreviations before in memory, for each unit anew. A few bytes of a hostile file refer to a
// million of them. So this has to be called before libdw reads any entry. `section`: .debug_abbrev. `steps`
// and `memory` are what may be spent on it. Returns the bytes of the longest abbreviation; nullopt: they are
// too many, or others than compilers make.
[[nodiscard]] std::optional<std::uint64_t> longest_abbreviation(Dwarf& dwarf, base::Bytes section,
                                                                code::source::Budget& steps,
                                                                code::source::Budget& memory);

}  // namespace ptkit::code::dwarf
