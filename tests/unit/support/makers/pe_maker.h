// A small PE file: .text with code, .rdata with directories, .bss without bytes, and COFF symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "unit/support/makers/elf_maker.h"

namespace ptkit::test {

inline constexpr std::uint32_t kTextOffset = 0x400;
inline constexpr std::uint32_t kDataOffset = 0x600;
inline constexpr std::uint32_t kTextAddress = 0x1000;
inline constexpr std::uint32_t kDataAddress = 0x2000;
inline constexpr std::uint64_t kPeBase = 0x1'4000'0000;

inline void put(ByteVector& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  if (bytes.size() < at + size) bytes.resize(at + size);
  for (std::size_t i = 0; i < size; ++i, value >>= 8U) bytes[at + i] = static_cast<std::uint8_t>(value);
}

inline void put(ByteVector& bytes, std::size_t at, const std::string& text) {
  if (bytes.size() < at + text.size()) bytes.resize(at + text.size());
  std::copy(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

inline void put_section(ByteVector& bytes, std::size_t row, const char* name, std::uint32_t size,
                        std::uint32_t address, std::uint32_t file_size, std::uint32_t offset) {
  put(bytes, row, name);
  put(bytes, row + 8, size, 4);
  put(bytes, row + 12, address, 4);
  put(bytes, row + 16, file_size, 4);
  put(bytes, row + 20, offset, 4);
}

// A data directory: its number and its offset in the data section.
inline void put_directory(ByteVector& bytes, std::size_t directories, unsigned number, std::uint32_t at,
                          std::uint32_t size) {
  put(bytes, directories + number * 8, kDataAddress + at, 4);
  put(bytes, directories + number * 8 + 4, size, 4);
}

// A file that exports `first` (after a forwarded export), with the sizes of two functions, a PDB, and a COFF
// symbol.
inline ByteVector small_pe(bool wide = true) {
  constexpr std::size_t kHeader = 0x80;
  constexpr std::size_t kOptional = kHeader + 24;
  ByteVector bytes(0x800, 0);
  put(bytes, 0, "MZ");
  put(bytes, 0x3c, kHeader, 4);
  put(bytes, kHeader, "PE");
  put(bytes, kHeader + 4, wide ? 0x8664 : 0x14c, 2);
  put(bytes, kHeader + 6, 3, 2);
  put(bytes, kHeader + 12, 0x800, 4);  // symbols
  put(bytes, kHeader + 16, 3, 4);
  const std::size_t optional_size = wide ? 240 : 224;
  put(bytes, kHeader + 20, optional_size, 2);
  put(bytes, kOptional, wide ? 0x20b : 0x10b, 2);
  put(bytes, kOptional + (wide ? 24 : 28), wide ? kPeBase : 0x400000, wide ? 8 : 4);
  put(bytes, kOptional + 56, 0x5000, 4);
  put(bytes, kOptional + 60, 0x400, 4);
  const std::size_t directories = kOptional + (wide ? 112 : 96);
  put(bytes, directories - 4, 16, 4);
  const std::size_t sections = kOptional + optional_size;
  put_section(bytes, sections, ".text", 0x180, kTextAddress, 0x200, kTextOffset);
  put_section(bytes, sections + 40, ".rdata", 0x1000, kDataAddress, 0x200, kDataOffset);
  put_section(bytes, sections + 80, ".bss", 0x1000, 0x4000, 0, 0);
  put(bytes, sections + 36, 0x6000'0020, 4);  // code: execute, read
  bytes[kTextOffset] = 0xc3;

  put_directory(bytes, directories, 0, 0, 0x80);
  const auto at = [](std::uint32_t offset) { return kDataOffset + offset; };
  put(bytes, at(20), 2, 4);  // functions
  put(bytes, at(24), 2, 4);  // names
  put(bytes, at(28), kDataAddress + 40, 4);
  put(bytes, at(32), kDataAddress + 48, 4);
  put(bytes, at(36), kDataAddress + 56, 4);
  put(bytes, at(40), kDataAddress + 0x60, 4);  // inside of the directory: forwarded
  put(bytes, at(44), kTextAddress + 0x10, 4);
  put(bytes, at(48), kDataAddress + 0x60, 4);
  put(bytes, at(52), kDataAddress + 0x70, 4);
  put(bytes, at(56), 0, 2);
  put(bytes, at(58), 1, 2);
  put(bytes, at(0x60), "OTHER.elsewhere");
  put(bytes, at(0x70), "first");

  put_directory(bytes, directories, 3, 0x80, 24);
  put(bytes, at(0x80), kTextAddress + 0x10, 4);
  put(bytes, at(0x84), kTextAddress + 0x30, 4);
  put(bytes, at(0x8c), kTextAddress + 0x40, 4);
  put(bytes, at(0x90), kTextAddress + 0x48, 4);

  put_directory(bytes, directories, 6, 0xa0, 28);
  put(bytes, at(0xa0 + 12), 2, 4);
  put(bytes, at(0xa0 + 16), 30, 4);
  put(bytes, at(0xa0 + 24), at(0xc0), 4);
  put(bytes, at(0xc0), "RSDS");
  put(bytes, at(0xc4), 0x3f2504e0, 4);
  put(bytes, at(0xc8), 0x4f89, 2);
  put(bytes, at(0xca), 0x11d3, 2);
  put(bytes, at(0xcc), 0x01332ce805030c9a, 8);
  put(bytes, at(0xd4), 0x1a, 4);

  const std::size_t symbols = 0x800;  // a function with an auxiliary row, and a datum
  put(bytes, symbols, 0, 4);
  put(bytes, symbols + 4, 4, 4);
  put(bytes, symbols + 8, 0x40, 4);
  put(bytes, symbols + 12, 1, 2);
  put(bytes, symbols + 14, 0x20, 2);
  put(bytes, symbols + 17, 1, 1);
  put(bytes, symbols + 36, "datum");
  put(bytes, symbols + 36 + 12, 1, 2);
  put(bytes, symbols + 36 + 17, 0, 1);
  put(bytes, symbols + 54, 4 + 20, 4);
  put(bytes, symbols + 58, std::string("a_long_name_of_coff") + '\0');
  return bytes;
}

// Rows of the exception directory of small_pe(): the bounds of a function, and where its UNWIND_INFO is.
inline void put_function(ByteVector& bytes, std::uint32_t row, std::uint32_t begin, std::uint32_t end,
                         std::uint32_t unwind_info = 0) {
  const std::size_t at = kDataOffset + 0x80 + row * 12;
  put(bytes, at, begin, 4);
  put(bytes, at + 4, end, 4);
  put(bytes, at + 8, unwind_info, 4);
  put_directory(bytes, 0x98 + 112, 3, 0x80, (row + 1) * 12);
}

// UNWIND_INFO of code that continues the function that begins at `parent`; returns its address. `at` is an
// offset in the data section.
inline std::uint32_t put_chained(ByteVector& bytes, std::uint32_t at, std::uint32_t parent,
                                 unsigned codes = 0) {
  put(bytes, kDataOffset + at, 0x21, 1);  // version 1, UNW_FLAG_CHAININFO
  put(bytes, kDataOffset + at + 2, codes, 1);
  put(bytes, kDataOffset + at + 4 + (codes + 1) / 2 * 4, parent, 4);
  return kDataAddress + at;
}

// Adds imports: a function by name in the slot at RVA 0x2150, and WS2_32's ordinal 23 in the one behind it.
// `number` is that of the directory: 1, or 13 for imports that are loaded late.
inline void put_imports(ByteVector& bytes, bool wide, unsigned number = 1) {
  const auto at = [](std::uint32_t offset) { return kDataOffset + offset; };
  const std::size_t width = wide ? 8 : 4;
  put_directory(bytes, 0x98 + (wide ? 112U : 96U), number, 0x100, 40);
  if (number == 1) {
    put(bytes, at(0x100), kDataAddress + 0x130, 4);  // names
    put(bytes, at(0x10c), kDataAddress + 0x180, 4);  // DLL
    put(bytes, at(0x110), kDataAddress + 0x150, 4);  // slots
  } else {
    put(bytes, at(0x100), 1, 4);
    put(bytes, at(0x104), kDataAddress + 0x180, 4);
    put(bytes, at(0x10c), kDataAddress + 0x150, 4);
    put(bytes, at(0x110), kDataAddress + 0x130, 4);
  }
  put(bytes, at(0x130), kDataAddress + 0x190, width);
  put(bytes, at(0x130) + width, std::uint64_t{1} << (8 * width - 1) | 23, width);
  put(bytes, at(0x180), "WS2_32.dll");
  put(bytes, at(0x192), "ExpInterlockedPopEntrySList");
}

}  // namespace ptkit::test
