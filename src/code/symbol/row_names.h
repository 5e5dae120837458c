// Symbolizes the addresses of many rows, each in its row's address space and time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "code/image/image.h"
#include "code/symbol/load_addresses.h"
#include "code/symbol/row_views.h"
#include "code/symbol/source_lines.h"
#include "code/symbol/symbols.h"

namespace ptkit::code::symbol {

inline constexpr std::int32_t kNoName = -1;

// Output arrays, one element per row.
struct RowCodes {
  std::span<std::int32_t> codes;     // kNoName: no name
  std::span<std::uint64_t> offsets;  // from the begin of the symbol or file; empty: not requested
};

// Where nothing is mapped, names come from lists of symbols. Otherwise a row's name comes from the code of
// its address space at the begin of its time interval. If nothing is mapped at the address then, from the
// code at the end of the interval. Rows without times are named by the last code at the address. Rows of
// unknown time are decoded with the code at the begin of the recording, so that code takes precedence over
// later code. Codes are indices in the returned names, which are distinct and live as long as `symbols`.
[[nodiscard]] std::vector<std::string_view> name_symbols(const Symbols& symbols,
                                                         const code::image::Image& image,
                                                         const RowAddresses& rows, RowCodes out);
// Names the functions of the import slots that rows' branches read: of branches, `rows` has the addresses
// they come from. Offsets are 0.
[[nodiscard]] std::vector<std::string_view> name_imports(const Symbols& symbols,
                                                         const code::image::Image& image,
                                                         const RowAddresses& rows, RowCodes out);
// Names the modules that have these functions.
[[nodiscard]] std::vector<std::string_view> name_import_modules(const Symbols& symbols,
                                                                const code::image::Image& image,
                                                                const RowAddresses& rows, RowCodes out);
// Names the source files of rows' lines, which are in the offsets. Line 0: code that belongs to no line.
// `declared`: the lines on which the functions of the rows are declared, where that is known.
[[nodiscard]] std::vector<std::string_view> name_lines(const SourceLines& lines,
                                                       const code::image::Image& image,
                                                       const RowAddresses& rows, RowCodes out,
                                                       bool declared = false);
// Names the functions of rows' inlined calls: of the `levels`-th one from the outside at the address.
[[nodiscard]] std::vector<std::string> name_inlined(const SourceLines& lines, const code::image::Image& image,
                                                    const RowAddresses& rows,
                                                    std::span<const std::uint8_t> levels, RowCodes out);
// How many inlined calls each row's address is in: the level of the innermost one.
void find_inline_levels(const SourceLines& lines, const code::image::Image& image, const RowAddresses& rows,
                        std::span<std::uint8_t> levels);
// The functions at the address of the first row; see SourceLines::frames_at().
[[nodiscard]] std::vector<SourceFrame> frames_of(const SourceLines& lines, const Symbols& symbols,
                                                 const code::image::Image& image, const RowAddresses& rows);
// The module of code at an address, and the offset there. `number`: index in TraceBundle::files; after those,
// of a module of AnonMemory; kNoName: none. `offset`: the RVA.
struct ModuleOffset {
  std::int32_t number = kNoName;
  std::uint64_t offset = 0;
};
// Whether that is the number of a file.
[[nodiscard]] inline bool is_file(const code::image::Image& image, std::int32_t number) noexcept {
  return number >= 0 && static_cast<std::size_t>(number) < image.bundle().files.size();
}
// `where` is file_at() of the address in the view. With `loads` null, offsets are those in the file. Modules
// without code (trace::NameRange) and memory have RVAs only.
[[nodiscard]] ModuleOffset module_of(const Symbols& symbols, const code::image::Image& image,
                                     const LoadAddresses* loads, const code::image::CodeView& view,
                                     const code::image::Provenance& where, std::uint64_t ip);
// Indices of the code regions that have rows' code; kNoName: none.
void find_regions(const code::image::Image& image, const RowAddresses& rows, RowCodes out);
// As module_of() for rows: codes are numbers of modules.
void name_files(const Symbols& symbols, const code::image::Image& image, const LoadAddresses* loads,
                const RowAddresses& rows, RowCodes out);

}  // namespace ptkit::code::symbol
