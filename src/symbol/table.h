// The symbols of one file, by file offset. Internal to src/symbol.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::symbol {

class Table {
 public:
  explicit Table(const trace::ImageFile& file);  // reads `contents`; if empty, uses `symbols`

  struct Extent {
    std::size_t index = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  // The symbol at a file offset: the innermost symbol with a size, or else the label before it.
  [[nodiscard]] std::optional<Extent> find(std::uint64_t offset) const noexcept;
  // The extent of a symbol. Without a size, it extends to the next symbol or the end of the address space.
  [[nodiscard]] Extent extent(std::size_t index) const noexcept;
  // Indices of the symbols with the raw name, demangled name or demangled name without arguments `name`.
  [[nodiscard]] std::vector<std::size_t> named(std::string_view name) const;

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool has_size(std::size_t index) const noexcept { return entries_[index].size != 0; }
  [[nodiscard]] std::string_view raw_name(std::size_t index) const noexcept { return entries_[index].name; }
  [[nodiscard]] std::string_view name(std::size_t index) const;  // demangled at the first call

 private:
  std::vector<trace::SymbolEntry> entries_;  // sorted by offset; of equal offsets, the best name first
  std::vector<std::uint64_t> reach_;         // maximum end of all symbols up to and including this one
  mutable std::mutex mutex_;                 // guards names_
  mutable std::vector<std::unique_ptr<const std::string>> names_;
};

// A demangled name without arguments and what follows them, without an ABI tag before them, and without the
// return type that templates' names have: "void ns::f<int>(int)" gives "ns::f<int>".
[[nodiscard]] std::string_view without_arguments(std::string_view name) noexcept;

}  // namespace ptkit::symbol
