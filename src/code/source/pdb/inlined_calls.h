// Tables of inlined calls from what was read of them. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "code/source/pdb/dump/inline_reader.h"
#include "code/source/pdb/tables.h"

namespace ptkit::code::pdb {

// The number of the path of a file, by module and place in its checksums.
using FindFile = std::function<std::uint32_t(std::uint32_t, std::uint32_t)>;

// Adds the inlined calls to tables that have lines of functions. `classes`: numbers of names by type.
void add_inlined_calls(Tables& tables, const InlineReader& read, const FindFile& find_file,
                       const std::unordered_map<std::uint32_t, std::uint32_t>& classes);
// Makes all_lines of the other tables.
void unite_lines(Tables& tables);

}  // namespace ptkit::code::pdb
