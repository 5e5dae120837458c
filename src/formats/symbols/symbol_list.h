// Lists of symbols that other tools write, and how their symbols and modules get to their addresses in a
// bundle. python/ptkit/symbol_lists reads those that are text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
      linked_base{};                        // the module's address in the list; not known: see add_symbols()
  std::string module{};                     // name of the module; may be empty
  std::string pdb{};                        // GUID and age of its PDB, as ImageFile::build_id has them
  bool only_by_id = false;                  // it is used for no module with another id
  std::vector<ListedSegment> segments{};    // with estimated begins; empty: addresses are exact
  std::int64_t pid = trace::kNoId;          // the only process that has them
  std::optional<trace::Warning> problem{};  // why a PDB has no symbols
};

// Names of a PDB; see `problem` if there are none. A file at the path is read once for all its uses.
[[nodiscard]] SymbolList read_pdb_list(const std::string& path, base::Bytes contents);

// Adds the modules of a list: images that are added later, and lists, find their addresses by these names.
void add_modules(trace::TraceBundle& bundle, const SymbolList& list);

// Adds the symbols of a list.
//
// With a base, addresses of the list less its own base (that of its module, where the list or the image of
// the module says it; else 0, or what the lowest address suggests) are added to it, for the spaces that have
// the list's module there, or else for all spaces; with a CR3, for the spaces that have it. Without
// one, addresses of a running system stay as they are, and others go wherever the trace has the list's
// module: by the id of its PDB, by the name that the list has, or by the name of its file. A list of no
// module stays as it is if the trace has code at its addresses, or if it is of a kernel. BAD_CONFIG: it is
// not known where to put it. A warning says if no symbol lies at code of the trace.
[[nodiscard]] std::optional<base::Failure> add_symbols(trace::TraceBundle& bundle, const std::string& path,
                                                       SymbolList list, std::optional<std::uint64_t> base,
                                                       std::optional<std::uint64_t> cr3 = std::nullopt);

}  // namespace ptkit::formats
