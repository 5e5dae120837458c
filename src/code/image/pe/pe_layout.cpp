// Names and numbers are from "PE Format" (Microsoft).
#include "code/image/pe/pe_layout.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "code/image/pe/pe_file.h"

namespace ptkit::code::image {
namespace {

bool is_name(std::string_view text) noexcept {
  const auto printable = [](char letter) { return letter > ' ' && letter < '\x7f'; };
  return !text.empty() && std::ranges::all_of(text, printable);
}

bool has_name_at(const PeFile& file, std::uint32_t address) {
  const auto offset = file.offset_of(address);
  return offset && is_name(file.text_at(*offset));
}

bool has_exports(const PeFile& file) {
  const base::Bytes table = file.at_address(file.directory(PeFile::kExports).address, 40);
  if (table.empty()) return false;
  const std::uint32_t functions = load_u32(table, 20);
  return functions != 0 && has_name_at(file, load_u32(table, 12)) &&
         !file.at_address(load_u32(table, 28), std::uint64_t{functions} * 4).empty();
}

bool has_imports(const PeFile& file) {
  const base::Bytes row = file.at_address(file.directory(PeFile::kImports).address, 20);
  return !row.empty() && load_u32(row, 16) != 0 && has_name_at(file, load_u32(row, 12));
}

bool is_unwind_info(const PeFile& file, std::uint32_t address) {
  const base::Bytes info = file.at_address(address & ~1U, 4);
  const unsigned version = info.empty() ? 0 : info[0] & 7U;
  return (address & 1U) != 0 ? !info.empty() : version == 1 || version == 2;
}

// RUNTIME_FUNCTIONs in order.
bool has_functions(const PeFile& file) {
  constexpr std::size_t kRow = 12;
  constexpr std::uint32_t kMost = 64 * kRow;
  const PeFile::Directory table = file.directory(PeFile::kFunctions);
  const base::Bytes rows = file.at_address(table.address, std::min(table.size, kMost));
  if (!file.is_64_bit() || rows.size() < kRow) return false;
  std::uint32_t end = 1;
  for (std::size_t at = 0; at + kRow <= rows.size(); at += kRow) {
    if (load_u32(rows, at) < end || load_u32(rows, at + 4) <= load_u32(rows, at)) return false;
    if (!is_unwind_info(file, load_u32(rows, at + 8))) return false;
    end = load_u32(rows, at + 4);
  }
  return end <= file.size();
}

bool has_relocations(const PeFile& file) {
  const PeFile::Directory table = file.directory(PeFile::kRelocations);
  const base::Bytes block = file.at_address(table.address, 8);
  if (block.empty()) return false;
  const std::uint32_t size = load_u32(block, 4);
  return load_u32(block, 0) % 0x1000 == 0 && load_u32(block, 0) != 0 && load_u32(block, 0) < file.size() &&
         size >= 8 && size % 2 == 0 && size <= table.size;
}

// A row for a PDB.
bool has_debug(const PeFile& file) {
  constexpr std::size_t kRow = 28;
  constexpr std::uint32_t kMost = 16 * kRow;
  constexpr std::uint32_t kPdbType = 2;  // CodeView
  const PeFile::Directory table = file.directory(PeFile::kDebug);
  const base::Bytes rows = file.at_address(table.address, std::min(table.size, kMost));
  for (std::size_t at = 0; at + kRow <= rows.size(); at += kRow) {
    const base::Bytes data = file.at_address(load_u32(rows, at + 20), 4);
    if (load_u32(rows, at + 12) == kPdbType && !data.empty() &&
        std::string_view(reinterpret_cast<const char*>(data.data()), 4) == "RSDS")
      return true;
  }
  return false;
}

// A root directory: its first entry is a directory, too.
bool has_resources(const PeFile& file) {
  constexpr std::uint32_t kIsDirectory = 0x8000'0000;
  constexpr std::uint64_t kMost = 4096;
  const PeFile::Directory table = file.directory(PeFile::kResources);
  const base::Bytes root = file.at_address(table.address, 24);
  if (root.empty() || load_u32(root, 0) != 0) return false;
  const std::uint64_t entries = base::load_le<2>(root.data() + 12) + base::load_le<2>(root.data() + 14);
  const std::uint32_t first = load_u32(root, 20);
  return entries != 0 && entries <= kMost && (first & kIsDirectory) != 0 &&
         (first ^ kIsDirectory) < table.size;
}

int valid_tables(const PeFile& file) {
  constexpr std::array kTables = {has_exports,   has_imports,     has_resources,
                                  has_functions, has_relocations, has_debug};
  return static_cast<int>(std::ranges::count_if(kTables, [&](const auto& has) { return has(file); }));
}

bool is_zero(base::Bytes bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

bool is_constant(base::Bytes bytes) noexcept {
  return std::ranges::all_of(bytes, [&](std::uint8_t byte) { return byte == bytes[0]; });
}

// Whether what lies at a section's PointerToRawData, before the first section in memory, is the zeros that
// fill the page of the headers, or a copy of what lies at the section's RVA (tools that map files leave it).
bool lies_at_rva(const PeFile& dump, const PeFile::Section& section, std::uint64_t first) {
  constexpr std::uint64_t kLeast = 16;
  const std::uint64_t end = std::min(section.pointer + std::uint64_t{section.raw_size}, first);
  if (section.pointer == section.address || section.pointer + kLeast > end) return false;
  const std::uint64_t size = std::min<std::uint64_t>(end - section.pointer, section.file_size);
  const base::Bytes at_pointer = dump.at(section.pointer, size);
  const base::Bytes at_rva = dump.at(section.address, size);
  if (at_pointer.empty() || at_rva.empty() || is_zero(at_rva)) return false;
  if (is_zero(at_pointer)) return true;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < at_rva.size(); ++i) equal += at_rva[i] == at_pointer[i] ? 1U : 0U;
  return !is_constant(at_rva) && equal >= at_rva.size() - at_rva.size() / 8;
}

bool sections_lie_at_rva(const PeFile& dump) {
  std::uint64_t first = ~std::uint64_t{0};
  for (const PeFile::Section& one : dump.sections()) first = std::min<std::uint64_t>(first, one.address);
  return std::ranges::any_of(dump.sections(), [&](const PeFile::Section& one) {
    return one.executable && lies_at_rva(dump, one, first);
  });
}

// Whether each section with bytes lies at its RVA in the file, too: memory has more bytes of it.
bool is_flat(const PeFile& dump) {
  return std::ranges::all_of(dump.sections(), [](const PeFile::Section& one) {
    return one.raw_size == 0 || one.pointer == one.address;
  });
}

struct Lengths {
  std::uint64_t of_file = 0;  // up to the end of the last section in the file
  bool is_of_memory = false;  // the bytes are as many as SizeOfImage, in pages
};

Lengths lengths_of(const PeFile& dump) {
  constexpr std::uint64_t kPage = 0x1000;
  Lengths found;
  for (const PeFile::Section& one : dump.sections())
    found.of_file = std::max(found.of_file, one.pointer + std::uint64_t{one.raw_size});
  found.is_of_memory = (dump.bytes().size() + kPage - 1) / kPage == (dump.size() + kPage - 1) / kPage;
  return found;
}

void put(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace

PeLayout layout_of(base::Bytes bytes) {
  const auto file = PeFile::open_part(bytes);
  const auto memory = PeFile::open(bytes, PeLayout::MEMORY);
  if (!file.ok() || !memory.ok()) return PeLayout::FILE;
  const PeFile& dump = memory.value();
  const Lengths length = lengths_of(dump);
  if (is_flat(dump))
    return length.is_of_memory && bytes.size() > length.of_file ? PeLayout::MEMORY : PeLayout::FILE;
  const int difference = valid_tables(dump) - valid_tables(file.value());
  if (difference != 0) return difference > 0 ? PeLayout::MEMORY : PeLayout::FILE;
  const bool is_whole_file = bytes.size() == length.of_file && !length.is_of_memory;
  return !is_whole_file && sections_lie_at_rva(dump) ? PeLayout::MEMORY : PeLayout::FILE;
}

std::vector<std::uint8_t> as_file(base::Bytes dump) {
  const auto read = PeFile::open(dump, PeLayout::MEMORY);
  if (!read.ok()) return {};
  const PeFile& file = read.value();
  std::vector<std::uint8_t> bytes(dump.begin(), dump.end());
  if (!is_flat(file)) {
    put(bytes, file.header_offset() + 12, 0);
    put(bytes, file.header_offset() + 16, 0);
  }
  put(bytes, file.header_offset() + 24 + 60, file.header_size());
  std::size_t row = file.section_table();
  for (const PeFile::Section& section : file.sections()) {
    if (section.file_size != 0) put(bytes, row + 8, section.file_size);
    put(bytes, row + 16, section.file_size);
    put(bytes, row + 20, section.file_size == 0 ? 0 : section.address);
    row += PeFile::kSectionBytes;
  }
  return bytes;
}

}  // namespace ptkit::code::image
