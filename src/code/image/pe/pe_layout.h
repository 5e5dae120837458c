// How the bytes of a PE file lie: as on disk, or as in memory, where dumps come from.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "code/image/placement.h"

namespace ptkit::code::image {

// The layout by contents: tables that the data directories name are valid in one of both, or sections begin
// with zeros in one of both. FILE where nothing decides.
[[nodiscard]] PeLayout layout_of(base::Bytes bytes);

// A copy of a dump as readers of files read it: its section table says where bytes lie in the dump. Symbols
// of COFF, which lie behind the sections of a file, are there only if memory is as the file is. Empty if the
// headers are no PE file's for x86.
[[nodiscard]] std::vector<std::uint8_t> as_file(base::Bytes dump);

}  // namespace ptkit::code::image
