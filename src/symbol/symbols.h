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

#include "trace/bundle.h"

namespace ptkit::symbol {

struct Symbol {
  std::string_view name;      // demangled
  std::string_view raw_name;  // as in the file
  std::uint64_t address = 0;  // run-time address of its first byte
  std::uint64_t size = 0;     // bytes; if the file has no size, up to the next symbol
  std::int32_t file = -1;
  trace::SpaceId space = trace::kAnySpace;  // where the file is mapped
};

// Lazy: reads a file's symbol table at the first lookup in it. Thread-safe. The names of a Symbol live as
// long as its Symbols object.
class Symbols {
 public:
  explicit Symbols(std::shared_ptr<const trace::TraceBundle> bundle);
  ~Symbols();

  // The symbol that covers the address; a symbol of size 0 reaches to the next one. Of those of the file that
  // is mapped there (also beneath a page dump) and of lists, the one that begins nearest; of two, the list's.
  [[nodiscard]] std::optional<Symbol> find(trace::SpaceId space, std::uint64_t tsc,
                                           std::uint64_t address) const;
  // All symbols with the raw name, demangled name or demangled name without arguments `name`, once for each
  // address and space.
  [[nodiscard]] std::vector<Symbol> lookup(std::string_view name) const;
  // The same for all symbols with a name that a pattern of fnmatch(3) matches.
  [[nodiscard]] std::vector<Symbol> matching(const std::string& pattern) const;
  // The module without code (trace::NameRange) at an address, and the address less the module's begin.
  struct Module {
    std::int32_t file = -1;
    std::uint64_t rva = 0;
  };
  [[nodiscard]] std::optional<Module> module_at(trace::SpaceId space, std::uint64_t address) const;
  // The space, if it alone sees some list of symbols at the address; else kAnySpace.
  [[nodiscard]] trace::SpaceId space_of_lists(trace::SpaceId space, std::uint64_t address) const;
  // Whether some file of the trace can import functions by slots: a PE file.
  [[nodiscard]] bool has_imports() const;
  // The function of the import slot that the indirect branch at the address reads; empty: it is no such
  // branch. Valid as long as this object.
  [[nodiscard]] std::string_view import_at(trace::SpaceId space, std::uint64_t tsc,
                                           std::uint64_t address) const;
  // Up to `limit` names similar to a name that does not exist, for error messages.
  [[nodiscard]] std::vector<std::string> similar(std::string_view name, std::size_t limit) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Demangles names of C++ and Rust (both schemes). Returns other names unchanged.
[[nodiscard]] std::string demangle(std::string_view raw_name);

}  // namespace ptkit::symbol
