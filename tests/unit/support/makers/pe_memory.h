// PE files as a loader lays them out in memory, and base relocations.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "unit/support/makers/pe_maker.h"

namespace ptkit::test {

inline std::uint32_t number_at(const ByteVector& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8U | bytes[at + i];
  return value;
}

// The memory of a file of small_pe(): headers, then sections at their RVAs, zeros between. `rest`: the bytes
// of the file stay behind the headers, as some tools leave them.
inline ByteVector mapped(const ByteVector& file, bool rest = false) {
  constexpr std::size_t kHeader = 0x80;
  ByteVector memory(number_at(file, kHeader + 24 + 56), 0);
  const std::size_t kept = rest ? kTextAddress : number_at(file, kHeader + 24 + 60);
  for (std::size_t i = 0; i < std::min({kept, file.size(), memory.size()}); ++i) memory[i] = file[i];
  const std::size_t sections = number_at(file, kHeader + 6) & 0xffffU;
  const std::size_t table = kHeader + 24 + (number_at(file, kHeader + 20) & 0xffffU);
  for (std::size_t row = table; row < table + 40 * sections; row += 40) {
    const std::size_t size = std::min(number_at(file, row + 8), number_at(file, row + 16));
    for (std::size_t i = 0; i < size; ++i)
      memory[number_at(file, row + 12) + i] = file[number_at(file, row + 20) + i];
  }
  return memory;
}

// Puts a table of relocations behind what small_pe() has in .rdata: entries (RVA, type) of one page.
inline void put_relocations(ByteVector& bytes, bool wide, std::uint32_t page,
                            const std::vector<std::uint16_t>& entries) {
  constexpr std::uint32_t kTable = 0x1c0;
  const auto size = static_cast<std::uint32_t>(8 + 2 * entries.size());
  put_directory(bytes, 0x98 + (wide ? 112U : 96U), 5, kTable, size);
  put(bytes, kDataOffset + kTable, page, 4);
  put(bytes, kDataOffset + kTable + 4, size, 4);
  for (std::size_t i = 0; i < entries.size(); ++i)
    put(bytes, kDataOffset + kTable + 8 + 2 * i, entries[i], 2);
}

}  // namespace ptkit::test
