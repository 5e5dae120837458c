// The symbols of one file, by file offset. Internal to src/code/symbol.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "code/bounds/table.h"
#include "trace/bundle.h"

namespace ptkit::code::symbol {

class Table {
 public:
  // Reads `contents`; if empty, uses `symbols` and `unwind`. Functions of which only the bounds are known get
  // the names "libc.so.6!0x26110": the module and the RVA of their first byte.
  explicit Table(const trace::ImageFile& file);
  explicit Table(std::vector<trace::SymbolEntry> entries);

  struct Extent {
    std::size_t index = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    // Whether it extends to the end of the address space, as nothing ends it.
    [[nodiscard]] bool is_open() const noexcept { return size == ~offset; }
  };
  // The symbol at a file offset: the innermost symbol with a size, or else the label before it.
  [[nodiscard]] std::optional<Extent> find(std::uint64_t offset) const noexcept;
  // The offset behind the last one for which find() is sure to give the same `extent`, which is that of
  // `offset`.
  [[nodiscard]] std::uint64_t end_of_same(const Extent& extent, std::uint64_t offset) const noexcept;
  // The extent of a symbol. Without a size, it extends to the end of its function, or else to the next
  // symbol, the end of its section if that is known, or the end of the address space.
  [[nodiscard]] Extent extent(std::size_t index) const noexcept;
  // Forms of a function's name: its raw or demangled name, or that of an IFUNC for the functions that it
  // chooses from; these, or the name without arguments, or the short one; or what the short one ends with.
  enum class Form : std::uint8_t { EXACT, SHORT, LAST_PART };
  // Indices of the symbols of a name.
  [[nodiscard]] std::vector<std::size_t> named(std::string_view name, Form form) const;
  // Indices of the symbols with a name that a pattern of fnmatch(3) matches.
  [[nodiscard]] std::vector<std::size_t> matching(const std::string& pattern) const;

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  // Whether the file says where a symbol ends: by its size, or by its function's.
  [[nodiscard]] bool has_bounds(std::size_t index) const noexcept {
    return entries_[index].size != 0 || functions_.function_at(entries_[index].file_offset).has_value();
  }
  // Whether the name is a symbol's.
  [[nodiscard]] bool has_name(std::size_t index) const noexcept { return !entries_[index].name.empty(); }
  [[nodiscard]] std::uint64_t offset(std::size_t index) const noexcept { return entries_[index].file_offset; }
  [[nodiscard]] bool has_size(std::size_t index) const noexcept { return entries_[index].size != 0; }
  [[nodiscard]] std::string_view raw_name(std::size_t index) const {
    return has_name(index) ? std::string_view(entries_[index].name) : name(index);
  }
  [[nodiscard]] std::string_view name(std::size_t index) const;  // demangled at the first call
  [[nodiscard]] const bounds::UnwindTable& unwind() const noexcept { return functions_; }

 private:
  void arrange();
  void take_section_ends();
  void add_functions();
  [[nodiscard]] std::string generated_name(std::uint64_t offset) const;

  std::string module_;  // the file's name without folders
  bounds::UnwindTable functions_;
  // Sorted by offset; of equal offsets, the best name first. Functions without a symbol have no name.
  std::vector<trace::SymbolEntry> entries_;
  std::vector<std::uint64_t> section_ends_;  // sorted
  std::vector<std::uint64_t> reach_;         // maximum end of all symbols up to and including this one
  mutable std::mutex mutex_;                 // guards names_
  mutable std::vector<std::unique_ptr<const std::string>> names_;
};

// A demangled name without arguments and what follows them, without an ABI tag before them, and without the
// return type that templates' names have: "void ns::f<int>(int)" gives "ns::f<int>".
[[nodiscard]] std::string_view without_arguments(std::string_view name) noexcept;

}  // namespace ptkit::code::symbol
