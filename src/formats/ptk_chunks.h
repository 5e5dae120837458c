// The chunks of a .ptk file: found by its index, or by walking the file where the index is missing or
// damaged.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memory_left.h"
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

// All chunks but DATA together: so much for each byte of the file, and so much of any file.
inline constexpr std::uint64_t kMostPlainPerFileByte = 1000;
inline constexpr std::uint64_t kMostTracePerFileByte = 100;  // DATA that does not fit into memory
inline constexpr std::uint64_t kPlainBytesOfSmallFile = std::uint64_t{64} << 20U;

// Refuses chunks that unpack to more than a bundle of this size has, or than may be taken of memory: all but
// DATA, which is unpacked part by part while it is decoded, and is refused where it is both. `free`: see
// base::memory_left().
[[nodiscard]] std::optional<base::Failure> check_sizes(const std::string& path, std::uint64_t file_bytes,
                                                       std::span<const IndexEntry> entries,
                                                       const base::MemoryBound& free);

// What is wrong with a chunk of `stored` bytes, in words, as far as it shows without unpacking; empty:
// nothing.
[[nodiscard]] std::string find_fault(const ChunkHeader& header, base::Bytes stored);
// Fills `plain`, of the header's plain size, from what has no fault. False if it cannot be unpacked.
[[nodiscard]] bool unpack(const ChunkHeader& header, base::Bytes stored,
                          std::span<std::uint8_t> plain) noexcept;

}  // namespace ptkit::formats::ptk
