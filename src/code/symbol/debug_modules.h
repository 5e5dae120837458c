// Debug information of a bundle's files: their own, and that of separate debug files on this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "code/source/dwarf/debug_info.h"
#include "code/source/dwarf/files/shared_files.h"
#include "code/symbol/load_addresses.h"
#include "code/symbol/table.h"
#include "trace/bundle.h"
#include "trace/warning.h"

namespace ptkit::code::symbol {

// Lazy: looks for the debug files of a file at the first lookup in it. Thread-safe.
class DebugModules {
 public:
  // `folders`: with debug files, beside those that have the programs.
  DebugModules(std::shared_ptr<const trace::TraceBundle> bundle, dwarf::Folders folders);
  ~DebugModules();

  // The names of functions of a file that only debug files have, by the address that it was linked for. Null:
  // none.
  [[nodiscard]] const Table* names_of(std::int32_t file) const;
  // Whether names_of() are those of a PDB, which has all functions of its module, and labels of functions
  // alone.
  [[nodiscard]] bool has_pdb(std::int32_t file) const;
  // Lines of the file; null: none.
  [[nodiscard]] const source::SourceInfo* lines_of(std::int32_t file) const;
  // The address that the file of a code region was linked for; nullopt: not known.
  [[nodiscard]] std::optional<std::uint64_t> linked_address(std::int32_t region, std::uint64_t address) const;
  // Problems with debug files that were used since the last call. Each problem is reported once.
  [[nodiscard]] std::vector<trace::Warning> take_problems() const;

 private:
  struct Module;
  struct Watched {  // debug information that may turn out to be too much, or to lack a part
    const dwarf::DebugInfo* info = nullptr;
    std::string path;
    bool is_cut = false;  // what was said
    bool lacks_split = false;
  };
  [[nodiscard]] Module* module_of(std::int32_t file) const;
  void find_files(Module& module, const trace::ImageFile& file) const;
  [[nodiscard]] std::vector<trace::SymbolEntry> names_in_pdb(const Module& module) const;
  void find_lines(Module& module, const std::string& path) const;
  void report(trace::Warning problem) const;

  std::shared_ptr<const trace::TraceBundle> bundle_;
  LoadAddresses loads_;
  dwarf::Folders folders_;
  std::unique_ptr<Module[]> modules_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<trace::Warning> problems_;
  mutable std::vector<Watched> watched_;
};

}  // namespace ptkit::code::symbol
