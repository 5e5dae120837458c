// Names for addresses: ELF symbol tables (.symtab, .dynsym) of the bundle's files, demangled.
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
  std::uint64_t size = 0;     // bytes; one that the file does not say counts to the next symbol
  std::int32_t file = -1;
  trace::SpaceId space = trace::kAnySpace;  // where the file is mapped
};

// Lazy: a file's table is read when an address in it is first asked for. Thread-safe. The names of a Symbol
// live as long as the Symbols that gave it.
class Symbols {
 public:
  explicit Symbols(std::shared_ptr<const trace::TraceBundle> bundle);
  ~Symbols();

  // The symbol that covers the address; a symbol of size 0 reaches to the next one.
  [[nodiscard]] std::optional<Symbol> find(trace::SpaceId space, std::uint64_t tsc,
                                           std::uint64_t address) const;
  // [address, end) in every space of every symbol whose demangled or raw name is `name` (or whose demangled
  // name without its arguments is).
  [[nodiscard]] std::vector<Symbol> lookup(std::string_view name) const;
  // Names that are near to one that does not exist, for error messages (at most `limit`).
  [[nodiscard]] std::vector<std::string> similar(std::string_view name, std::size_t limit) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

[[nodiscard]] std::string demangle(
    std::string_view raw_name);  // C++ and Rust (legacy); the input if it is neither

}  // namespace ptkit::symbol
