// Finds the chunks of a .ptk file by the index, or by scanning the file if the index is missing or damaged.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memory_left.h"
#include "base/status.h"
#include "formats/ptk/layout.h"
#include "trace/warning.h"

namespace ptkit::formats::ptk {

struct ChunkList {
  std::vector<IndexEntry> entries;       // in file order
  std::vector<trace::Warning> warnings;  // without the path
  bool indexed = false;                  // an INDEX chunk was found: the writer finished
};

// Checks magic and version, then lists the chunks. BAD_FILE: not a bundle. UNSUPPORTED: another major
// version.
[[nodiscard]] base::Result<ChunkList> list_chunks(const std::string& path, base::Bytes file);

// Returns the payload of one chunk, checked and unpacked. BAD_FILE gives the reason.
[[nodiscard]] base::Result<std::vector<std::uint8_t>> read_chunk(base::Bytes file, const IndexEntry& entry);

// Limits of unpacked sizes. kMostPlainPerFileByte counts all chunks but DATA, and applies above
// kPlainBytesOfSmallFile.
inline constexpr std::uint64_t kMostPlainPerFileByte = 1000;
inline constexpr std::uint64_t kMostTracePerFileByte = 100;  // applies to DATA that does not fit into memory
inline constexpr std::uint64_t kPlainBytesOfSmallFile = std::uint64_t{64} << 20U;
inline constexpr std::uint64_t kAlwaysFree = std::uint64_t{16} << 20U;

// Refuses chunks (all but DATA) that unpack to more than a bundle of this size can have, or to more than the
// free memory. DATA is unpacked part by part while it is decoded, so that it is refused only if it exceeds
// both limits. `free` (see base::memory_left()) costs as much as opening a small bundle. It is called only if
// more than kAlwaysFree bytes are needed.
[[nodiscard]] std::optional<base::Failure> check_sizes(const std::string& path, std::uint64_t file_bytes,
                                                       std::span<const IndexEntry> entries,
                                                       const std::function<base::MemoryBound()>& free);

// Describes what is wrong with a chunk, as far as the stored bytes show without unpacking. Empty: no fault.
[[nodiscard]] std::string find_fault(const ChunkHeader& header, base::Bytes stored);
// Returns "the META chunk at byte 72 is cut off".
[[nodiscard]] std::string describe_fault(const IndexEntry& entry, const std::string& fault);
// Unpacks a chunk without a fault into `plain`, which has header.plain_size bytes. False: unpacking failed.
[[nodiscard]] bool unpack(const ChunkHeader& header, base::Bytes stored,
                          std::span<std::uint8_t> plain) noexcept;

}  // namespace ptkit::formats::ptk
