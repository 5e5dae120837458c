// Source lines and inlined functions of a bundle's code, from the debug information of its files.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dwarf/debug_info.h"
#include "image/image.h"
#include "image/segments.h"
#include "symbol/symbols.h"
#include "trace/bundle.h"

namespace ptkit::symbol {

struct SourceFrame {
  std::string function;  // demangled; empty: not known
  std::string file;      // empty: not known
  std::uint32_t line = 0;
};

// Lazy: looks for a file's debug information at the first lookup in it. Thread-safe. Texts of a SourceLine
// live as long as this object.
class SourceLines {
 public:
  explicit SourceLines(std::shared_ptr<const trace::TraceBundle> bundle);
  ~SourceLines();

  // The line of an address that a region of a file has; see file_at().
  [[nodiscard]] dwarf::SourceLine line_at(const image::Provenance& where, std::uint64_t address) const;
  // The functions at an address, the innermost one first. If DWARF has no name of the outermost one, it gets
  // the one in `symbols`.
  [[nodiscard]] std::vector<SourceFrame> frames_at(const image::Image& image, const image::CodeView& view,
                                                   const Symbols& symbols, std::uint64_t address) const;

 private:
  struct Module;
  [[nodiscard]] const Module* module_of(const image::Provenance& where) const;
  [[nodiscard]] std::optional<std::uint64_t> linked_address(const Module& module,
                                                            const image::Provenance& where,
                                                            std::uint64_t address) const;

  std::shared_ptr<const trace::TraceBundle> bundle_;
  std::unique_ptr<Module[]> modules_;
};

}  // namespace ptkit::symbol
