#include "formats/ptk/layout.h"

#include "base/cpu/target.h"
#include "base/fields.h"

#if PT_SIMD_X86
#include <immintrin.h>
#endif

namespace ptkit::formats::ptk {

namespace {

// CRC-32C (Castagnoli), reflected.
constexpr std::uint32_t kCrcPolynomial = 0x82f63b78;

// Slicing-by-8: table k maps a byte that is followed by k bytes to its contribution to the CRC.
constexpr std::size_t kCrcStep = 8;
using CrcTables = std::array<std::array<std::uint32_t, 256>, kCrcStep>;

constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? kCrcPolynomial : 0U);
    tables[0][i] = value;
  }
  for (std::size_t k = 1; k < kCrcStep; ++k) {
    for (std::size_t i = 0; i < 256; ++i) {
      const std::uint32_t before = tables[k - 1][i];
      tables[k][i] = (before >> 8U) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr CrcTables kCrc = make_crc_tables();
constexpr std::size_t kHeaderCheckAt = kChunkHeaderBytes - 4;

std::uint32_t load_u32(const std::uint8_t* from) {
  return static_cast<std::uint32_t>(base::load_le<4>(from));
}

#if PT_SIMD_X86
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(base::Bytes bytes) noexcept {
  std::uint64_t value = ~std::uint32_t{0};
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    value = _mm_crc32_u64(value, base::load_le<8>(bytes.data()));
  auto rest = static_cast<std::uint32_t>(value);
  for (const std::uint8_t byte : bytes) rest = _mm_crc32_u8(rest, byte);
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c(base::Bytes bytes) noexcept {
#if PT_SIMD_X86
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_instruction(bytes);
#endif
  return crc32c_by_table(bytes);
}

std::uint32_t crc32c_by_table(base::Bytes bytes) noexcept {
  std::uint64_t value = ~std::uint32_t{0};
  for (; bytes.size() >= kCrcStep; bytes = bytes.subspan(kCrcStep)) {
    const std::uint64_t word = base::load_le<8>(bytes.data()) ^ value;
    value = 0;
    for (std::size_t i = 0; i < kCrcStep; ++i) value ^= kCrc[kCrcStep - 1 - i][(word >> (8 * i)) & 0xffU];
  }
  for (const std::uint8_t byte : bytes) value = (value >> 8U) ^ kCrc[0][(value ^ byte) & 0xffU];
  return static_cast<std::uint32_t>(~value);
}

void append_header(std::vector<std::uint8_t>& out, const ChunkHeader& header) {
  const std::size_t begin = out.size();
  base::append_le(out, kChunkMark);
  base::append_le(out, header.type);
  base::append_le(out, header.flags);
  base::append_le(out, header.id);
  base::append_le(out, header.position);
  base::append_le(out, header.stored_size);
  base::append_le(out, header.plain_size);
  base::append_le(out, header.payload_check);
  base::append_le(out, crc32c(base::Bytes(out).subspan(begin, kHeaderCheckAt)));
}

bool parse_header(base::Bytes bytes, ChunkHeader& out) noexcept {
  const std::uint8_t* at = bytes.data();
  if (load_u32(at) != kChunkMark || load_u32(at + kHeaderCheckAt) != crc32c(bytes.first(kHeaderCheckAt)))
    return false;
  out.type = load_u32(at + 4);
  out.flags = load_u32(at + 8);
  out.id = load_u32(at + 12);
  out.position = base::load_le<8>(at + 16);
  out.stored_size = base::load_le<8>(at + 24);
  out.plain_size = base::load_le<8>(at + 32);
  out.payload_check = load_u32(at + 40);
  return true;
}

void append_index_entry(std::vector<std::uint8_t>& out, const IndexEntry& entry) {
  base::append_le(out, entry.header.type);
  base::append_le(out, entry.header.flags);
  base::append_le(out, entry.header.id);
  base::append_le(out, entry.header.payload_check);
  base::append_le(out, entry.header.position);
  base::append_le(out, entry.header.stored_size);
  base::append_le(out, entry.header.plain_size);
  base::append_le(out, entry.offset);
}

IndexEntry parse_index_entry(base::Bytes bytes) noexcept {
  const std::uint8_t* at = bytes.data();
  IndexEntry entry;
  entry.header.type = load_u32(at);
  entry.header.flags = load_u32(at + 4);
  entry.header.id = load_u32(at + 8);
  entry.header.payload_check = load_u32(at + 12);
  entry.header.position = base::load_le<8>(at + 16);
  entry.header.stored_size = base::load_le<8>(at + 24);
  entry.header.plain_size = base::load_le<8>(at + 32);
  entry.offset = base::load_le<8>(at + 40);
  return entry;
}

std::string type_name(std::uint32_t type) {
  std::string name;
  for (unsigned i = 0; i < 4; ++i) {
    const auto c = static_cast<char>((type >> (8U * i)) & 0xffU);
    name += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return name;
}

}  // namespace ptkit::formats::ptk
