// Source lines and inlined functions of a bundle's code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "code/image/image.h"
#include "code/source/source_info.h"
#include "code/symbol/debug_modules.h"
#include "code/symbol/symbols.h"

namespace ptkit::code::symbol {

struct SourceFrame {
  std::string function;  // demangled; empty: not known
  std::string file;      // empty: not known
  std::uint32_t line = 0;
};

// Thread-safe. Texts of a SourceLine live as long as this object.
class SourceLines {
 public:
  explicit SourceLines(std::shared_ptr<const DebugModules> modules) : modules_(std::move(modules)) {}

  // The name of the function of an inlined call at an address: of the `level`-th one from the outside. Empty:
  // not known.
  [[nodiscard]] std::string_view inlined_at(const code::image::Provenance& where, std::uint64_t address,
                                            std::uint32_t level) const;
  // The number of inlined calls that an address is in.
  [[nodiscard]] std::uint32_t levels_at(const code::image::Provenance& where, std::uint64_t address) const;
  // The functions at an address, the innermost one first. If the debug information has no name of the
  // outermost one, it gets the one in `symbols`.
  [[nodiscard]] std::vector<SourceFrame> frames_at(const code::image::Image& image,
                                                   const code::image::CodeView& view, const Symbols& symbols,
                                                   std::uint64_t address) const;

 private:
  friend class LineFinder;
  std::shared_ptr<const DebugModules> modules_;
};

// Lines of many addresses. It is faster where they ascend, as neighbours have neighbouring lines.
class LineFinder {
 public:
  // `lines` must outlive it.
  explicit LineFinder(const SourceLines& lines) : modules_(*lines.modules_) {}

  // The line of an address that a region of a file has; see file_at().
  [[nodiscard]] source::SourceLine line_at(const code::image::Provenance& where, std::uint64_t address);
  // Where the function of an address is declared, if that is in the file of its line; else its line.
  [[nodiscard]] source::SourceLine declaration_at(const code::image::Provenance& where,
                                                  std::uint64_t address);

 private:
  const DebugModules& modules_;
  std::int32_t file_ = -1;                      // that `cursor_` is for
  std::unique_ptr<source::LineCursor> cursor_;  // null: it has no lines
};

}  // namespace ptkit::code::symbol
