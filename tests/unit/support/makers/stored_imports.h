// Import slots as bundles store them (code::image::Imports), so that tests need no file that imports
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace ptkit::test {

struct StoredImport {
  std::uint64_t rva = 0;
  std::uint32_t module = 0;  // 1: the first one; 0: none
  std::string name;
};

// Of a 64-bit file with a segment of code that has the RVA 0x1000 and begins at 0x200 in the file.
inline std::vector<std::uint8_t> stored_imports(const std::vector<std::string>& modules,
                                                const std::vector<StoredImport>& slots) {
  std::vector<std::uint8_t> out;
  const auto text = [&](const std::string& one) { out.insert(out.end(), one.begin(), one.end()); };
  for (const std::size_t number : {std::size_t{1}, std::size_t{1}, modules.size(), slots.size()})
    base::append_le(out, static_cast<std::uint32_t>(number));
  // Linked address, table of 32-bit code; offset, size and RVA of the segment.
  for (const std::uint64_t number : {0x40'0000U, 0U, 0x200U, 0x1000U, 0x1000U}) base::append_le(out, number);
  for (const std::string& module : modules) {
    base::append_le(out, static_cast<std::uint32_t>(module.size()));
    text(module);
  }
  for (const StoredImport& slot : slots) {
    base::append_le(out, slot.rva);
    base::append_le(out, slot.module);
    base::append_le(out, static_cast<std::uint32_t>(slot.name.size()));
    text(slot.name);
  }
  return out;
}

}  // namespace ptkit::test
