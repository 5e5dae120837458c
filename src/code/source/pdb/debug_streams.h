// The headers of a PDB: its id, the sections and modules (object files) of the program, and the streams that
// have names and types. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "code/source/pdb/msf.h"
#include "code/source/pdb/sections.h"

namespace ptkit::code::pdb {

// An object file: its stream has symbols from offset 0 on, and source lines.
struct Module {
  std::uint32_t stream = 0;
  std::uint32_t symbol_bytes = 0;  // with the signature before them
  std::uint32_t line_begin = 0;
  std::uint32_t line_end = 0;
};

struct DebugStreams {
  static constexpr std::uint32_t kNoStream = UINT32_MAX;

  std::string id;  // as pdb_id() has it; empty: not known
  bool is_32_bit = false;
  std::uint32_t strings = kNoStream;  // "/names": paths of source files
  std::uint32_t publics = kNoStream;  // the index of public symbols
  std::uint32_t records = kNoStream;  // these symbols
  Sections sections;
  std::vector<Module> modules;  // those with symbols
  std::string problem;          // why sections and modules are not known; empty: they are
};

[[nodiscard]] DebugStreams read_debug_streams(const MsfFile& file);

}  // namespace ptkit::code::pdb
