// Lists of symbols that other tools write. python/ptkit/symbol_lists reads those that are text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "trace/bundle.h"

namespace ptkit::formats {

// Addresses from here on are those of kernels.
inline constexpr std::uint64_t kKernelAddresses = std::uint64_t{1} << 63U;

// A module that a list says was loaded (WinDbg's lm).
struct ListedModule {
  std::string name;  // "nt", or the file's name or path where the list has it
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// A segment of a map. Where the map does not say where it lies, `begin` is an estimate.
struct ListedSegment {
  std::string name;  // ".text"
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

struct SymbolList {
  std::string kind;                           // "output of nm"
  std::vector<trace::SymbolEntry> symbols{};  // `file_offset` is the address; as in the list
  std::vector<ListedModule> modules{};
  bool at_run_time = false;  // addresses are those of a running system or process
  std::optional<std::uint64_t>
      linked_base{};        // the module's address in the list; not known: see symbol_placement.h
  std::string module{};     // name of the module; may be empty
  std::string pdb{};        // GUID and age of its PDB, as ImageFile::build_id has them
  bool only_by_id = false;  // it is used for no module with another id
  std::vector<ListedSegment> segments{};    // with estimated begins; empty: addresses are exact
  std::int64_t pid = trace::kNoId;          // the only process that has them
  std::optional<trace::Warning> problem{};  // why a PDB has no symbols
};

// Names of a PDB; see `problem` if there are none. A file at the path is read once for all its uses.
[[nodiscard]] SymbolList read_pdb_list(const std::string& path, base::Bytes contents);

}  // namespace ptkit::formats
