// Code and lines of an inlined call: the binary annotations of its symbol. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace ptkit::code::pdb {

// Code from `offset` in the function to the next row.
struct SiteRow {
  static constexpr std::uint32_t kOwnFile = UINT32_MAX;      // that of the inlined function
  static constexpr std::uint32_t kOutside = UINT32_MAX - 1;  // it is no code of the call
  std::uint32_t offset = 0;
  std::uint32_t file = kOwnFile;  // offset in the checksums of the module's files
  std::int32_t line = 0;          // from the line of the function's declaration
};

// The rows of a call in a function of `size` bytes, in order. False: the annotations are cut or not known.
[[nodiscard]] bool read_annotations(base::Bytes annotations, std::uint32_t size, std::vector<SiteRow>& rows);

}  // namespace ptkit::code::pdb
