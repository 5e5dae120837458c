#include "code/source/dwarf/small_names.h"

#include <lzma.h>

#include <algorithm>

#include "code/image/elf/elf.h"
#include "code/image/elf/elf_file.h"

namespace ptkit::code::dwarf {
namespace {

constexpr std::uint64_t kDecoderMemory = std::uint64_t{64} << 20U;
constexpr std::size_t kMostBytes = std::size_t{128} << 20U;
constexpr std::size_t kMostRatio = 64;  // symbol tables shrink to a fifth

// Empty if the bytes are no xz file, or a much larger one than a symbol table's.
std::vector<std::uint8_t> unpacked(base::Bytes packed) {
  const std::size_t most = std::min(kMostBytes, packed.size() * kMostRatio);
  std::vector<std::uint8_t> out(most);
  std::uint64_t memory = kDecoderMemory;
  std::size_t read = 0;
  std::size_t written = 0;
  const lzma_ret result = lzma_stream_buffer_decode(&memory, 0, nullptr, packed.data(), &read, packed.size(),
                                                    out.data(), &written, out.size());
  out.resize(result == LZMA_OK ? written : 0);
  return out;
}

}  // namespace

std::vector<trace::SymbolEntry> small_names(base::Bytes file) {
  const auto elf = code::image::ElfFile::open(file);
  if (!elf.ok()) return {};
  for (const code::image::ElfFile::Section& section : elf.value().sections()) {
    if (section.name != ".gnu_debugdata") continue;
    const std::vector<std::uint8_t> inner = unpacked(elf.value().contents(section));
    return code::image::elf_debug_symbols(inner);
  }
  return {};
}

}  // namespace ptkit::code::dwarf
