// Bounds of functions as bundles store them (code::bounds::UnwindTable), so that tests need no ELF file.
#pragma once

#include <utility>
#include <vector>

#include "code/bounds/cursor.h"

namespace ptkit::test {

// Functions [begin, end) of a file. Its byte 0 has the RVA `rva`.
inline std::vector<std::uint8_t> stored_functions(
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& functions, std::uint64_t rva = 0) {
  std::vector<std::uint8_t> out;
  // Version; a segment from 0 on with its size and RVA; no PLT.
  for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{1}, std::uint64_t{0},
                                     std::uint64_t{0x10'0000}, rva, std::uint64_t{0}})
    code::bounds::append_uleb(out, number);
  code::bounds::append_uleb(out, functions.size());
  std::uint64_t last = 0;
  for (const auto& [begin, end] : functions) {
    code::bounds::append_uleb(out, begin - last);
    code::bounds::append_uleb(out, end - begin);
    last = end;
  }
  out.insert(out.end(), {0, 0});  // no parts, no call sites
  return out;
}

}  // namespace ptkit::test
