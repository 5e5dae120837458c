// The headers of a PDB: its id, the sections and modules (object files) of the program, and the streams that
// have names and types. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "code/source/pdb/msf.h"

namespace ptkit::code::pdb {

struct Section {
  std::uint32_t address = 0;  // RVA
  std::uint32_t size = 0;
  bool executable = false;
};

struct Sections {
  std::vector<Section> all;

  // The RVA of code, by the section's number, from 1 on; nullopt: it is no code.
  [[nodiscard]] std::optional<std::uint32_t> code_address(std::uint32_t section,
                                                          std::uint32_t offset) const noexcept {
    if (section == 0 || section > all.size()) return std::nullopt;
    const Section& found = all[section - 1];
    if (!found.executable || offset >= found.size || offset > UINT32_MAX - found.address) return std::nullopt;
    return found.address + offset;
  }
};

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
