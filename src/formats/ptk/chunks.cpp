#include "formats/ptk/chunks.h"

#include <zstd.h>

#include <algorithm>
#include <optional>

#include "formats/common/files.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::ptk {

using trace::WarningCode;

namespace {

std::optional<base::Failure> check_file_header(const std::string& path, base::Bytes file) {
  if (file.size() < kFileHeaderBytes || !std::equal(kMagic.begin(), kMagic.end(), file.begin())) {
    return bad_file(path, "expected a ptkit bundle, found " + describe(file));
  }
  const auto major = static_cast<unsigned>(base::load_le<2>(file.data() + 8));
  const auto minor = static_cast<unsigned>(base::load_le<2>(file.data() + 10));
  if (major == kMajor) return {};
  return base::Failure{
      base::Status::UNSUPPORTED, 8,
      path + ": the bundle has version " + std::to_string(major) + "." + std::to_string(minor) +
          " and this ptkit reads version " + std::to_string(unsigned{kMajor}) +
          ".x; open it with the ptkit that wrote it, or with a newer one (pip install -U ptkit)"};
}

// Returns the chunk header at `offset` if its mark and check are right.
std::optional<IndexEntry> header_at(base::Bytes file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < kChunkHeaderBytes) return {};
  IndexEntry entry;
  entry.offset = offset;
  if (!parse_header(file.subspan(offset), entry.header)) return {};
  return entry;
}

bool fits(base::Bytes file, const IndexEntry& entry) {
  return entry.header.stored_size <= file.size() - entry.offset - kChunkHeaderBytes;
}

std::optional<std::vector<IndexEntry>> from_index(base::Bytes file) {
  if (file.size() < kFileHeaderBytes + kTrailerBytes) return {};
  const base::Bytes trailer = file.last(kTrailerBytes);
  if (!std::equal(kTrailerMagic.begin(), kTrailerMagic.end(), trailer.begin())) return {};
  const auto index = header_at(file, base::load_le<8>(trailer.data() + 8));
  if (!index || index->header.type != static_cast<std::uint32_t>(ChunkType::INDEX)) return {};
  const auto payload = read_chunk(file, *index);
  if (!payload.ok() || payload.value().size() % kIndexEntryBytes != 0) return {};
  std::vector<IndexEntry> entries;
  std::uint64_t end = kFileHeaderBytes;
  for (base::Bytes rest = payload.value(); !rest.empty(); rest = rest.subspan(kIndexEntryBytes)) {
    const IndexEntry entry = parse_index_entry(rest);
    if (entry.offset < end || entry.offset > file.size() - kChunkHeaderBytes || !fits(file, entry)) return {};
    end = entry.offset + kChunkHeaderBytes + entry.header.stored_size;
    entries.push_back(entry);
  }
  return entries;
}

// Returns the offset of the first valid chunk header at or after `from`, or the file's size.
std::uint64_t next_header(base::Bytes file, std::uint64_t from) {
  for (std::uint64_t offset = from; offset + kChunkHeaderBytes <= file.size(); ++offset) {
    if (file[offset] == (kChunkMark & 0xffU) && header_at(file, offset)) return offset;
  }
  return file.size();
}

ChunkList walk(base::Bytes file) {
  ChunkList list;
  std::uint64_t offset = kFileHeaderBytes;
  while (offset < file.size()) {
    const auto entry = header_at(file, offset);
    if (!entry) {
      const std::uint64_t next = next_header(file, offset);
      list.warnings.push_back(warn(WarningCode::CHUNK_BYTES_SKIPPED, next - offset, offset));
      offset = next;
      continue;
    }
    if (entry->header.type == static_cast<std::uint32_t>(ChunkType::INDEX)) {
      // Only the trailer follows the INDEX chunk: the writer finished. The index or the trailer is damaged.
      list.warnings.push_back(warn(WarningCode::CHUNK_INDEX_DAMAGED));
      list.indexed = true;
      return list;
    }
    if (!fits(file, *entry)) {
      list.warnings.push_back(warn(WarningCode::CHUNK_CUT, type_name(entry->header.type), offset));
      // The damage may be in the size alone: valid chunks may follow.
      offset = next_header(file, offset + kChunkHeaderBytes);
      continue;
    }
    list.entries.push_back(*entry);
    offset += kChunkHeaderBytes + padded(entry->header.stored_size);
  }
  return list;
}

// Returns the approximate bytes of memory for each unpacked byte of a chunk with small records. 0: chunks of
// this type are not unpacked when a bundle is opened.
std::uint64_t memory_factor(ChunkType type) {
  switch (type) {
    case ChunkType::META:
    case ChunkType::STREAM:
    case ChunkType::SPACE:
    case ChunkType::FILE:
    case ChunkType::SIDEBAND:
      return 16;
    case ChunkType::CODE:
    case ChunkType::IMPORTS:
      return 4;
    case ChunkType::SYMBOLS:
      return 6;
    case ChunkType::UNWIND:
      return 8;
    case ChunkType::DEBUG:
      return 2;
    case ChunkType::DATA:
    case ChunkType::INDEX:
      break;
  }
  return 0;
}

// Trace that exceeds the memory is decoded in parts. Trace of a loop packs well. Only both together are
// refused.
std::optional<base::Failure> check_trace(const std::string& path, std::uint64_t file_bytes,
                                         std::uint64_t trace, const base::MemoryBound& free) {
  if (trace <= free.usable() || trace / kMostTracePerFileByte <= file_bytes) return {};
  return base::Failure{
      base::Status::UNSUPPORTED, 0,
      path + ": its trace unpacks to " + std::to_string(trace) + " bytes, more than " +
          std::to_string(kMostTracePerFileByte) + " times the " + std::to_string(file_bytes) +
          " bytes of the file, and " + std::to_string(free.usable()) + " are free (" +
          std::string(base::memory_limit_name(free.limit)) + "); open it where more memory is free"};
}

}  // namespace

base::Result<ChunkList> list_chunks(const std::string& path, base::Bytes file) {
  if (const auto failure = check_file_header(path, file)) return *failure;
  if (auto entries = from_index(file)) return ChunkList{std::move(*entries), {}, true};
  return walk(file);
}

std::optional<base::Failure> check_sizes(const std::string& path, std::uint64_t file_bytes,
                                         std::span<const IndexEntry> entries,
                                         const std::function<base::MemoryBound()>& memory) {
  std::uint64_t plain = 0;
  std::uint64_t needed = 0;
  std::uint64_t trace = 0;
  for (const IndexEntry& entry : entries) {
    if (entry.header.type == static_cast<std::uint32_t>(ChunkType::DATA))
      trace += std::min(entry.header.plain_size, kMaxPlainBytes);
    // Larger chunks and chunks of unknown types are skipped.
    const std::uint64_t factor = memory_factor(static_cast<ChunkType>(entry.header.type));
    if (factor == 0 || entry.header.plain_size > kMaxPlainBytes) continue;
    plain += entry.header.plain_size;
    needed += factor * entry.header.plain_size;
  }
  const base::MemoryBound free = needed + trace > kAlwaysFree ? memory() : base::MemoryBound{};
  if (auto failure = check_trace(path, file_bytes, trace, free)) return failure;
  const auto refuse = [&](base::Status status, const std::string& why) {
    return base::Failure{
        status, 0,
        path + ": its code, names and records unpack to " + std::to_string(plain) + " bytes" + why};
  };
  if (plain > kPlainBytesOfSmallFile && plain / kMostPlainPerFileByte > file_bytes) {
    return refuse(base::Status::BAD_FILE,
                  ", more than " + std::to_string(kMostPlainPerFileByte) + " times the " +
                      std::to_string(file_bytes) +
                      " bytes of the file; no recorder writes that: get the recording again");
  }
  if (needed > free.usable()) {
    return refuse(base::Status::UNSUPPORTED, ", which take " + std::to_string(needed) +
                                                 " bytes of memory, and " + std::to_string(free.usable()) +
                                                 " are free (" +
                                                 std::string(base::memory_limit_name(free.limit)) +
                                                 "); open it where more memory is free");
  }
  return {};
}

std::string find_fault(const ChunkHeader& header, base::Bytes stored) {
  if (stored.size() != header.stored_size) return "is cut off";
  if (crc32c(stored) != header.payload_check) return "is damaged (its checksum is wrong)";
  if ((header.flags & ~std::uint32_t{ZSTD}) != 0) return "has flags that are not known";
  if (header.plain_size > kMaxPlainBytes) {
    return "would unpack to " + std::to_string(header.plain_size) + " bytes; the limit is " +
           std::to_string(kMaxPlainBytes);
  }
  const bool packed = (header.flags & ZSTD) != 0;
  const std::uint64_t size = packed ? ZSTD_getFrameContentSize(stored.data(), stored.size()) : stored.size();
  return size == header.plain_size ? "" : "has two sizes";
}

std::string describe_fault(const IndexEntry& entry, const std::string& fault) {
  return "the " + type_name(entry.header.type) + " chunk at byte " + std::to_string(entry.offset) + " " +
         fault;
}

bool unpack(const ChunkHeader& header, base::Bytes stored, std::span<std::uint8_t> plain) noexcept {
  if ((header.flags & ZSTD) == 0) {
    std::copy(stored.begin(), stored.end(), plain.begin());
    return true;
  }
  const std::size_t size = ZSTD_decompress(plain.data(), plain.size(), stored.data(), stored.size());
  return ZSTD_isError(size) == 0 && size == plain.size();
}

base::Result<std::vector<std::uint8_t>> read_chunk(base::Bytes file, const IndexEntry& entry) {
  const ChunkHeader& header = entry.header;
  const auto failed = [&](const std::string& what) {
    return base::Failure{base::Status::BAD_FILE, entry.offset, describe_fault(entry, what)};
  };
  const base::Bytes rest = file.subspan(entry.offset + kChunkHeaderBytes);
  const base::Bytes stored = rest.first(std::min<std::size_t>(rest.size(), header.stored_size));
  if (const std::string fault = find_fault(header, stored); !fault.empty()) return failed(fault);
  std::vector<std::uint8_t> plain(header.plain_size);
  if (!unpack(header, stored, plain)) return failed("cannot be unpacked");
  return plain;
}

}  // namespace ptkit::formats::ptk
