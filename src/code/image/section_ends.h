// Where sections end, among the symbols of a file. Internal to src/code/image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::code::image {

struct SectionBytes {
  std::uint64_t file_offset = 0;
  std::uint64_t size = 0;  // bytes in the file
};

// Symbols without a size end with their section, at the latest: adds an entry without a name for the end of
// each section that has such symbols. `symbols` are sorted, and stay so.
inline void add_section_ends(std::vector<trace::SymbolEntry>& symbols,
                             const std::vector<SectionBytes>& sections, std::size_t file_bytes) {
  std::vector<std::uint64_t> labels;
  for (const trace::SymbolEntry& symbol : symbols) {
    if (symbol.size == 0) labels.push_back(symbol.file_offset);
  }
  const auto count = static_cast<std::ptrdiff_t>(symbols.size());
  for (const SectionBytes& section : sections) {
    const std::uint64_t end = section.file_offset + section.size;
    const auto label = std::ranges::lower_bound(labels, section.file_offset);
    if (label != labels.end() && *label < end && end < file_bytes) symbols.push_back({{}, end, 0});
  }
  std::ranges::sort(symbols.begin() + count, symbols.end(), {}, &trace::SymbolEntry::file_offset);
  std::ranges::inplace_merge(symbols, symbols.begin() + count, {}, &trace::SymbolEntry::file_offset);
}

}  // namespace ptkit::code::image
