// Finds symbols by address and by name: the symbol tables of the bundle's files and lists of symbols,
// demangled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "code/image/files/imports.h"
#include "trace/bundle.h"

namespace ptkit::code::bounds {
class UnwindTable;
}

namespace ptkit::code::symbol {

class AnonMemory;

struct Symbol {
  std::string_view name;      // demangled
  std::string_view raw_name;  // as in the file
  std::uint64_t address = 0;  // run-time address of its first byte
  std::uint64_t size = 0;     // bytes; if the file has no size, up to the next symbol
  std::int32_t file = -1;
  trace::SpaceId space = trace::kAnySpace;  // where the file is mapped
};

class DebugModules;

// Lazy: reads a file's symbol table at the first lookup in it. Thread-safe. The names of a Symbol live as
// long as its Symbols object.
class Symbols {
 public:
  // With `debug`, names from debug files, too.
  explicit Symbols(std::shared_ptr<const trace::TraceBundle> bundle,
                   std::shared_ptr<const DebugModules> debug = nullptr);
  ~Symbols();

  // The symbol that covers the address; a symbol of size 0 reaches to the next one. Of those of the file that
  // is mapped there (also beneath a page dump) and of lists, the one that begins nearest; of two, the list's.
  [[nodiscard]] std::optional<Symbol> find(trace::SpaceId space, std::uint64_t tsc,
                                           std::uint64_t address) const;
  // Also gives an address up to which the symbol is the same: `address`, or above it.
  [[nodiscard]] std::optional<Symbol> find(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address,
                                           std::uint64_t& last) const;
  // All symbols of a name, once for each address and space: those with the raw or demangled name; if no code
  // of these is known, those with the short name, or the demangled one without arguments; then those with
  // short names that end with it. `files`: only theirs, if not empty.
  [[nodiscard]] std::vector<Symbol> lookup(std::string_view name,
                                           const std::vector<std::int32_t>& files = {}) const;
  // All symbols with a name that a pattern of fnmatch(3) matches, once for each address and space. Without
  // `with_names`, they have no names, and most need not be demangled.
  [[nodiscard]] std::vector<Symbol> matching(const std::string& pattern, bool with_names = true) const;
  // The module without code (trace::NameRange) at an address, and the address less the module's begin. Of JIT
  // code, the file that names it, and the offset there.
  struct Module {
    std::int32_t file = -1;
    std::uint64_t rva = 0;
  };
  [[nodiscard]] std::optional<Module> module_at(trace::SpaceId space, std::uint64_t tsc,
                                                std::uint64_t address) const;
  // Memory that has code of no file.
  [[nodiscard]] const AnonMemory& anon_memory() const;
  // Bounds and landing pads of the functions of a file. Null: there is no such file. Valid as long as this
  // object.
  [[nodiscard]] const bounds::UnwindTable* unwind_of(std::int32_t file) const;
  // A number that differs between spaces and times that see different lists of symbols at the address; 0: no
  // list there is of one space alone.
  [[nodiscard]] std::uint32_t lists_at(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address) const;
  // Whether some file of the trace can import functions by slots.
  [[nodiscard]] bool has_imports() const;
  // The function of the import slot that the indirect branch at the address reads; without a name: it is no
  // such branch. Valid as long as this object.
  [[nodiscard]] code::image::Import import_at(trace::SpaceId space, std::uint64_t tsc,
                                              std::uint64_t address) const;
  // A hash of all names, and of the bounds of functions: frames of call stacks are the same where it and the
  // code are.
  [[nodiscard]] std::uint64_t identity() const;
  // Up to `limit` names similar to a name that does not exist, for error messages.
  [[nodiscard]] std::vector<std::string> similar(std::string_view name, std::size_t limit) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::code::symbol
