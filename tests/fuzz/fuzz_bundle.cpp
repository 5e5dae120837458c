// Bundles with chunks of any content and right checksums: refused, or read and redacted without a
// crash. The mutator changes payloads and headers of chunks, which mutation of the file's bytes alone would
// only damage.
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "code/image/files/imports.h"
#include "code/symbol/symbols.h"
#include "formats/ptk/chunks.h"
#include "formats/ptk/writer.h"
#include "formats/registry.h"
#include "memory_file.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace ptkit;  // NOLINT(google-build-using-namespace)
using formats::ptk::ChunkHeader;
using formats::ptk::ChunkType;

constexpr std::size_t kLookBytes = std::size_t{1} << 20U;  // of each end of a stream
constexpr std::size_t kMostPayload = std::size_t{1} << 16U;

struct Chunk {
  ChunkHeader header;
  std::vector<std::uint8_t> stored;
};

std::vector<Chunk> chunks_of(base::Bytes file) {
  std::vector<Chunk> chunks;
  const auto list = formats::ptk::list_chunks("fuzz", file);
  if (!list.ok()) return chunks;
  for (const auto& entry : list.value().entries) {
    const base::Bytes stored = file.subspan(entry.offset + formats::ptk::kChunkHeaderBytes);
    const auto size = std::min<std::size_t>(stored.size(), entry.header.stored_size);
    chunks.push_back({entry.header, {stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(size)}});
  }
  return chunks;
}

std::vector<std::uint8_t> to_file(base::Bytes begin, const std::vector<Chunk>& chunks) {
  std::vector<std::uint8_t> file(begin.begin(), begin.begin() + formats::ptk::kFileHeaderBytes);
  for (const Chunk& chunk : chunks) {
    ChunkHeader header = chunk.header;
    header.stored_size = chunk.stored.size();
    header.payload_check = formats::ptk::crc32c(chunk.stored);
    formats::ptk::append_header(file, header);
    file.insert(file.end(), chunk.stored.begin(), chunk.stored.end());
    file.resize(formats::ptk::padded(file.size()));
  }
  return file;
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void change(std::vector<Chunk>& chunks) {
    const std::size_t at = below(chunks.size());
    switch (below(8)) {
      case 0:
        chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(at), chunks[below(chunks.size())]);
        return;
      case 1:
        if (chunks.size() > 1) chunks.erase(chunks.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      case 2:
        std::swap(chunks[at], chunks[below(chunks.size())]);
        return;
      case 3:
        return change_header(chunks[at].header);
      default:
        return change_payload(chunks[at]);
    }
  }

  std::size_t below(std::size_t limit) { return random_() % limit; }

 private:
  void change_header(ChunkHeader& header) {
    constexpr std::array kTypes{ChunkType::META,   ChunkType::STREAM,   ChunkType::SPACE, ChunkType::FILE,
                                ChunkType::DATA,   ChunkType::SIDEBAND, ChunkType::CODE,  ChunkType::SYMBOLS,
                                ChunkType::UNWIND, ChunkType::IMPORTS,  ChunkType::DEBUG};
    switch (below(4)) {
      case 0:
        header.id = below(2) == 0 ? static_cast<std::uint32_t>(below(4)) : header.id ^ 1U << below(32);
        return;
      case 1:
        header.position ^= std::uint64_t{1} << below(64);
        return;
      case 2:
        header.plain_size ^= std::uint64_t{1} << below(64);
        return;
      default:
        header.type = static_cast<std::uint32_t>(kTypes[below(kTypes.size())]);
    }
  }

  // What was packed is stored as it is, changed.
  void change_payload(Chunk& chunk) {
    std::vector<std::uint8_t> plain = chunk.stored;
    if ((chunk.header.flags & formats::ptk::ZSTD) != 0) {
      plain.resize(std::min<std::uint64_t>(chunk.header.plain_size, kMostPayload));
      const std::size_t size =
          ZSTD_decompress(plain.data(), plain.size(), chunk.stored.data(), chunk.stored.size());
      if (ZSTD_isError(size) != 0) plain = chunk.stored;
    }
    const std::size_t size = plain.size();
    plain.resize(size + 256);
    plain.resize(LLVMFuzzerMutate(plain.data(), size, plain.size()));
    chunk.stored = std::move(plain);
    chunk.header.flags = 0;
    chunk.header.plain_size = chunk.stored.size();
  }

  std::minstd_rand random_;
};

// What a bundle says of itself has to be within it.
void check(const trace::TraceBundle& bundle) {
  unsigned sum = 0;
  for (const trace::Stream& stream : bundle.streams) {
    const std::size_t size = stream.data.size();
    for (const std::uint8_t byte : stream.data.part(0, std::min(size, kLookBytes))) sum += byte;
    for (const std::uint8_t byte : stream.data.part(size - std::min(size, kLookBytes), size)) sum += byte;
    for (const trace::KnownLoss& loss : stream.losses) {
      if (loss.offset > size) std::abort();
    }
    if (stream.space != trace::kAnySpace && stream.space >= bundle.spaces.size()) std::abort();
  }
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.file >= static_cast<std::int32_t>(bundle.files.size())) std::abort();
    if (region.bytes.size() > region.size) std::abort();
    for (const std::uint8_t byte : region.bytes.bytes()) sum += byte;
  }
  for (const trace::ImageFile& file : bundle.files) {
    if (code::image::Imports::of(file).encode() != file.imports) std::abort();
  }
  const code::symbol::Symbols symbols(std::make_shared<const trace::TraceBundle>(bundle));
  for (const trace::CodeRegion& region : bundle.code)
    sum += symbols.import_at(region.space, region.tsc_from, region.address).module.size();
  static_cast<void>(*const_cast<volatile unsigned*>(&sum));
}

// A bundle that unpacks to little can be written again.
bool is_small(const trace::TraceBundle& bundle) {
  std::size_t size = 0;
  for (const trace::Stream& stream : bundle.streams) size += stream.data.size();
  for (const trace::CodeRegion& region : bundle.code) size += region.bytes.size();
  return size <= kLookBytes;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Mutator mutator(seed);
  std::vector<Chunk> chunks = chunks_of({data, size});
  if (chunks.empty() || mutator.below(32) == 0) return LLVMFuzzerMutate(data, size, max_size);
  do mutator.change(chunks);
  while (mutator.below(2) == 0);
  const std::vector<std::uint8_t> file = to_file({data, size}, chunks);
  if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(file.begin(), file.end(), data);
  return file.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const test::MemoryFile file;
  auto bytes = trace::TraceBuffer::from_vector({data, data + size});
  const auto bundle = formats::open_bytes("fuzz.ptk", bytes, {.format = "ptk"});
  if (!bundle.ok()) return 0;
  check(bundle.value());
  if (!is_small(bundle.value())) return 0;
  static_cast<void>(formats::save_ptk(bundle.value(), file.path(), {.redact = true}));
  return 0;
}
