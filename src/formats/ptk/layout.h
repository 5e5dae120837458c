// The layout of .ptk bundles, for reader and writer. docs/bundle-format.md describes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace ptkit::formats::ptk {

// As in PNG, a transfer that changes line ends or strips bit 7 damages the magic.
inline constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'P', 'T', 'K', '\r', '\n', 0x1a, '\n'};
inline constexpr std::uint16_t kMajor = 1;            // a reader refuses other majors
inline constexpr std::uint16_t kMinor = 12;           // new chunk types and members of JSON objects raise it
inline constexpr std::size_t kFileHeaderBytes = 16;   // magic, major u16, minor u16, zero u32
inline constexpr std::size_t kChunkHeaderBytes = 48;  // see ChunkHeader
inline constexpr std::size_t kTrailerBytes = 16;      // kTrailerMagic, file offset of the INDEX chunk u64
inline constexpr std::array<std::uint8_t, 8> kTrailerMagic{'P', 'T', 'K', 'I', 'N', 'D', 'E', 'X'};
inline constexpr std::uint64_t kMaxPlainBytes = std::uint64_t{64} << 20U;  // of one chunk, unpacked

constexpr std::uint32_t fourcc(const char (&name)[5]) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(name[i])) << (8U * i);
  return value;
}

inline constexpr std::uint32_t kChunkMark = fourcc("PTKC");

enum class ChunkType : std::uint32_t {
  META = fourcc("META"),      // JSON object; later ones replace members of earlier ones
  STREAM = fourcc("STRM"),    // JSON object: id, name, cpu, pid, tid, space
  SPACE = fourcc("SPAC"),     // JSON object: id, pid, cr3 (absent: unknown)
  FILE = fourcc("FILE"),      // JSON object: id, path, build_id
  DATA = fourcc("DATA"),      // trace bytes of stream `id`, from stream offset `position` on
  SIDEBAND = fourcc("SIDE"),  // JSON array of records
  CODE = fourcc("CODE"),      // code records, see CodeRecord
  SYMBOLS = fourcc("SYMB"),   // names of file `id`, see append_symbol
  UNWIND = fourcc("UNWD"),    // functions and landing pads of file `id`: code::bounds::UnwindTable
  IMPORTS = fourcc("IMPT"),   // import slots of file `id`: code::image::Imports
  DEBUG = fourcc("DBUG"),     // code::image::debug_sections() of file `id`, from byte `position` on
  INDEX = fourcc("INDX"),     // chunk headers of the whole file, without marks and checks
};

enum ChunkFlag : std::uint32_t {
  ZSTD = 1,  // the payload is one zstd frame
};

// On disk: mark u32, type u32, flags u32, id u32, position u64, stored size u64, plain size u64, payload
// check u32 (CRC-32C of the stored bytes), header check u32 (CRC-32C of the 44 bytes before it). The payload
// follows, padded with zeros to 8 bytes.
struct ChunkHeader {
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint32_t id = 0;
  std::uint64_t position = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t plain_size = 0;
  std::uint32_t payload_check = 0;
};

// An index entry: type, flags, id, payload check (u32 each), position, stored size, plain size, file offset
// of the header (u64 each).
inline constexpr std::size_t kIndexEntryBytes = 48;
struct IndexEntry {
  ChunkHeader header;
  std::uint64_t offset = 0;
};

// Inside a CODE chunk, one after the other: address u64, tsc_from u64, tsc_to u64, file offset u64, size u64,
// file i32, space u32, flags u32, zero u32; then `size` bytes if CODE_PRESENT.
inline constexpr std::size_t kCodeRecordBytes = 56;
enum CodeFlag : std::uint32_t {
  CODE_PRESENT = 1,  // off: mapped here, but the bytes were not saved
  CODE_SHARED = 2,   // the file's bytes: if not present, other shared records of the file supply them
  CODE_NAMES = 4,    // a trace::NameRange; never present
  CODE_MODULE = 8,   // of CODE_NAMES: trace::NameRange::is_module
  CODE_END = 16,     // mappings that begin at these addresses of the space end at tsc_from; never present
};

// Inside a SYMBOLS chunk, one after the other: file offset u64, size u64, length of the name u32, name.
inline constexpr std::size_t kSymbolRecordBytes = 20;

[[nodiscard]] std::uint32_t crc32c(base::Bytes bytes) noexcept;
// For processors without SSE4.2.
[[nodiscard]] std::uint32_t crc32c_by_table(base::Bytes bytes) noexcept;

void append_header(std::vector<std::uint8_t>& out, const ChunkHeader& header);
// False if the mark or the check is wrong. `bytes` has at least kChunkHeaderBytes.
[[nodiscard]] bool parse_header(base::Bytes bytes, ChunkHeader& out) noexcept;
void append_index_entry(std::vector<std::uint8_t>& out, const IndexEntry& entry);
[[nodiscard]] IndexEntry parse_index_entry(base::Bytes bytes) noexcept;  // kIndexEntryBytes

[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + 7) & ~std::uint64_t{7};
}

[[nodiscard]] std::string type_name(std::uint32_t type);  // "META"; unprintable characters as '?'

}  // namespace ptkit::formats::ptk
