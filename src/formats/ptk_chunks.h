// The chunks of a .ptk file: found by its index, or by walking the file where the index is missing or
// damaged.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/ptk_format.h"

namespace ptkit::formats::ptk {

struct ChunkList {
  std::vector<IndexEntry> entries;    // in file order
  std::vector<std::string> warnings;  // what is missing, without the path
  bool indexed = false;               // the index was found: the writer finished
};

// Checks magic and version, then lists the chunks. BAD_FILE or UNSUPPORTED if it is no bundle that can be
// read.
[[nodiscard]] base::Result<ChunkList> list_chunks(const std::string& path, base::Bytes file);

// The payload of one chunk, checked and unpacked. BAD_FILE with the reason.
[[nodiscard]] base::Result<std::vector<std::uint8_t>> read_chunk(base::Bytes file, const IndexEntry& entry);

// What is wrong with a chunk of `stored` bytes, in words, as far as it shows without unpacking; empty:
// nothing.
[[nodiscard]] std::string find_fault(const ChunkHeader& header, base::Bytes stored);
// Fills `plain`, of the header's plain size, from what has no fault. False if it cannot be unpacked.
[[nodiscard]] bool unpack(const ChunkHeader& header, base::Bytes stored,
                          std::span<std::uint8_t> plain) noexcept;

}  // namespace ptkit::formats::ptk
