// Dumps of PE images from memory: they are told from files, and read as these.
#include <gtest/gtest.h>

#include <random>

#include "code/image/files/code_file.h"
#include "code/image/files/segments.h"
#include "code/image/image.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_layout.h"
#include "code/symbol/symbols.h"
#include "unit/support/makers/pe_memory.h"

namespace ptkit::code::image {
namespace {

using test::ByteVector;
using test::kDataAddress;
using test::kDataOffset;
using test::kTextAddress;
using test::kTextOffset;
using test::mapped;
using test::put;
using test::put_imports;
using test::put_section;
using test::small_pe;
using test::TemporaryFile;

constexpr std::uint64_t kAt = 0x7ff6'0000'0000;

ByteVector with_imports(bool wide) {
  ByteVector bytes = small_pe(wide);
  put_imports(bytes, wide);
  return bytes;
}

// Code of 0x180 bytes, and none of the tables that directories name.
ByteVector without_tables() {
  ByteVector bytes = small_pe();
  for (std::size_t i = 0; i < 16 * 8; ++i) bytes[0x98 + 112 + i] = 0;
  for (std::size_t i = kTextOffset; i < kTextOffset + 0x180; ++i)
    bytes[i] = static_cast<std::uint8_t>(i | 1U);
  return bytes;
}

TEST(PeLayout, TellsDumpsFromFiles) {
  for (const ByteVector& file :
       {small_pe(), small_pe(false), with_imports(true), with_imports(false), without_tables()}) {
    EXPECT_EQ(layout_of(file), PeLayout::FILE);
    for (const bool rest : {false, true}) EXPECT_EQ(layout_of(mapped(file, rest)), PeLayout::MEMORY) << rest;
  }
}

TEST(PeLayout, FilesOfAnyLengthStayFiles) {
  ByteVector file = without_tables();
  for (const std::size_t size : std::vector<std::size_t>{0x800, 0x1000, 0x4fff, 0x5000, 0x6000}) {
    file.resize(size);
    EXPECT_EQ(layout_of(file), PeLayout::FILE) << size;
  }
  file = small_pe();
  file.resize(0x5000, 0xcc);  // data behind the sections, up to SizeOfImage
  EXPECT_EQ(layout_of(file), PeLayout::FILE);
  file.resize(0x700);  // cut in .rdata
  EXPECT_EQ(layout_of(file), PeLayout::FILE);
}

TEST(PeLayout, TellsCutDumps) {
  for (const bool wide : {true, false}) {
    const ByteVector dump = mapped(with_imports(wide));
    for (const std::size_t size : std::vector<std::size_t>{0x1020, 0x1180, 0x2040, 0x2100, 0x21c0, 0x4000}) {
      ByteVector cut = dump;
      cut.resize(size);
      EXPECT_EQ(layout_of(cut), PeLayout::MEMORY) << size;
    }
  }
}

// Names, sizes and RVAs, as text.
std::string names_in(const ByteVector& bytes, bool code) {
  trace::TraceBundle bundle;
  if (code) {
    add_code(bundle, "dump", trace::TraceBuffer::from_vector(bytes), kAt, trace::kAnySpace);
  } else {
    const TemporaryFile file(bytes);
    Placement placement;
    placement.load_address = kAt;
    const auto added = add_image(bundle, file.path(), placement);
    EXPECT_TRUE(added.ok());
  }
  if (bundle.files.empty()) return "no file";
  const auto shared = std::make_shared<trace::TraceBundle>(bundle);
  const symbol::Symbols symbols(shared);
  std::string found = bundle.files[0].build_id;
  for (std::uint64_t rva = kTextAddress; rva < kTextAddress + 0x60; ++rva) {
    const auto symbol = symbols.find(trace::kAnySpace, 0, kAt + rva);
    if (symbol && symbol->address == kAt + rva && symbol->size < 0x1000)
      found +=
          " " + std::string(symbol->name) + ":" + std::to_string(rva) + "+" + std::to_string(symbol->size);
    found += symbols.import_at(trace::kAnySpace, 0, kAt + rva).name;
  }
  return found;
}

TEST(PeLayout, NamesOfADumpAreThoseOfItsFile) {
  ByteVector file = with_imports(true);
  put(file, 0x80 + 12, 0, 4);                                  // no symbols of COFF, which are not mapped
  put(file, kDataOffset + 0xa0 + 20, kDataAddress + 0xc0, 4);  // where the PDB's id is mapped
  put(file, kTextOffset + 0x20, 0x15ff, 2);
  put(file, kTextOffset + 0x22, 0x2150 - (kTextAddress + 0x26), 4);
  const std::string names = names_in(file, false);
  EXPECT_NE(names.find("first:4112+32"), std::string::npos) << names;
  EXPECT_NE(names.find("ExpInterlockedPopEntrySList"), std::string::npos) << names;
  ByteVector dump = mapped(file);
  EXPECT_EQ(names_in(dump, false), names);
  EXPECT_EQ(names_in(dump, true), names);
  // A loader has written addresses into the slots, and the pointer to the PDB's name is one in the file.
  put(dump, 0x2150, 0xfffff803'12345678, 8);
  EXPECT_EQ(names_in(dump, true), names);
  EXPECT_EQ(names_in(file, true), "no file");  // a file as it lies on disk, in memory: it is not mapped
}

TEST(PeLayout, CodeOfADumpIsAtItsRva) {
  const ByteVector file = without_tables();
  const ByteVector dump = mapped(file);
  const TemporaryFile path(dump);
  Placement placement;
  placement.load_address = kAt;
  auto bundle = std::make_shared<trace::TraceBundle>();
  ASSERT_TRUE(add_image(*bundle, path.path(), placement).ok());
  const Image image(bundle);
  const CodeView& view = image.view(trace::kAnySpace, 0);
  ByteVector read(dump.size());
  ASSERT_EQ(view.read(kAt, read), read.size());  // headers, and what lies between sections, too
  EXPECT_EQ(read, dump);
  const auto where = view.provenance(kAt + kTextAddress + 5);
  EXPECT_EQ(where.file, 0);
  const trace::CodeRegion& region = bundle->code[static_cast<std::size_t>(where.region)];
  EXPECT_EQ(rva_of(file_segments(bundle->files[0].contents.bytes()), region, region.file_offset + 5),
            std::uint64_t{kTextAddress} + 5);
}

TEST(PeLayout, CanBeSaid) {
  const ByteVector dump = mapped(without_tables());
  const TemporaryFile path(dump);
  const auto first_byte = [&](PeLayout layout) {
    trace::TraceBundle bundle;
    Placement placement;
    placement.load_address = kAt;
    placement.layout = layout;
    EXPECT_TRUE(add_image(bundle, path.path(), placement).ok());
    for (const trace::CodeRegion& region : bundle.code) {
      if (region.address == kAt + kTextAddress) return region.bytes.bytes()[0];
    }
    return std::uint8_t{0xee};
  };
  EXPECT_EQ(first_byte(PeLayout::MEMORY), dump[kTextAddress]);
  EXPECT_EQ(first_byte(PeLayout::FILE), 0);
}

// Drivers of low alignment lie in memory as on disk; memory has more of .data.
TEST(PeLayout, FlatFilesAreBoth) {
  ByteVector file = small_pe();
  file.resize(0x800);
  put(file, 0x80 + 12, 0, 4);
  const std::size_t table = 0x98 + 240;
  put_section(file, table, ".text", 0x180, kTextOffset, 0x200, kTextOffset);
  put_section(file, table + 40, ".data", 0x1000, kDataOffset, 0x200, kDataOffset);
  put_section(file, table + 80, ".bss", 0x10, 0x1600, 0, 0);
  put(file, 0x98 + 56, 0x1610, 4);
  EXPECT_EQ(layout_of(file), PeLayout::FILE);
  ByteVector dump = file;
  dump.resize(0x2000);
  EXPECT_EQ(layout_of(dump), PeLayout::MEMORY);
}

// What an unpacker writes lies in a section without bytes in the file.
TEST(PeLayout, UnpackedCodeIsThere) {
  ByteVector file = without_tables();
  put(file, 0x98 + 240 + 80 + 36, 0xe000'0080, 4);  // .bss is executable
  ByteVector dump = mapped(file);
  dump[0x4010] = 0xc3;
  const TemporaryFile path(dump);
  auto bundle = std::make_shared<trace::TraceBundle>();
  ASSERT_TRUE(add_image(*bundle, path.path(), {}).ok());
  const Image image(bundle);
  const base::Bytes found = image.view(trace::kAnySpace, 0).bytes_at(test::kPeBase + 0x4010);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], 0xc3);
}

TEST(PeLayout, SurvivesDamage) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    ByteVector bytes = mapped(with_imports(round % 2 == 0), round % 3 == 0);
    for (int i = 0; i < 6; ++i) {
      const std::size_t at = random() % (i < 4 ? 0x200 : bytes.size());
      bytes[at] = random() % 3 == 0 ? 0xff : static_cast<std::uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const ByteVector readable = as_file(bytes);
    for (const trace::SymbolEntry& entry : pe_symbols(readable)) EXPECT_LT(entry.file_offset, bytes.size());
    trace::TraceBundle bundle;
    add_code(bundle, "", trace::TraceBuffer::from_vector(bytes), kAt, trace::kAnySpace);
    std::uint64_t covered = 0;
    for (const trace::CodeRegion& region : bundle.code) covered += region.bytes.size();
    EXPECT_EQ(covered, bytes.size());  // each byte once
  }
}

}  // namespace
}  // namespace ptkit::code::image
