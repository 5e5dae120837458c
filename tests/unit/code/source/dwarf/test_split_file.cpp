// Packages of split units: their index, and the strings of one unit.
#include <gtest/gtest.h>

#include <string>

#include "code/image/elf/debug_sections.h"
#include "code/source/dwarf/split_file.h"
#include "unit/support/makers/dwarf_maker.h"

namespace ptkit::code::dwarf {
namespace {

using test::append;
using test::ByteVector;

constexpr std::uint64_t kId = 0x1234'5678'9abc'def0;

struct Column {
  std::uint32_t section;
  std::uint32_t offset;
  std::uint32_t size;
};

// The index of one unit in a table of two slots.
ByteVector index_of(std::uint32_t version, const std::vector<Column>& columns, std::uint32_t row = 1) {
  ByteVector bytes;
  for (const std::uint32_t one : {version, static_cast<std::uint32_t>(columns.size()), 1U, 2U})
    append(bytes, one);
  append(bytes, kId);  // its slot is its lowest bit
  append(bytes, std::uint64_t{0});
  append(bytes, row);
  append(bytes, std::uint32_t{0});
  for (const Column& one : columns) append(bytes, one.section);
  for (const Column& one : columns) append(bytes, one.offset);
  for (const Column& one : columns) append(bytes, one.size);
  return bytes;
}

std::unique_ptr<SplitFile> package(const ByteVector& index) {
  const std::string text = "0123456789";
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  const std::string file =
      code::image::elf_of_sections(test::DwarfMaker().make(), {{".debug_info.dwo", bytes},
                                                               {".debug_abbrev.dwo", bytes},
                                                               {".debug_rnglists.dwo", bytes},
                                                               {".debug_cu_index", index}});
  return SplitFile::open(trace::TraceBuffer::from_vector({file.begin(), file.end()}));
}

std::string parts(const ByteVector& index, std::uint64_t id = kId) {
  const auto file = package(index);
  EXPECT_NE(file, nullptr);
  code::source::Budget memory(1000);
  std::string text;
  for (const UnitSection& one : file->sections_of(id, memory)) {
    if (one.contents.empty()) continue;
    text += std::string(one.name) + "=" + std::string(one.contents.begin(), one.contents.end()) + " ";
  }
  return text;
}

TEST(SplitFile, FindsPartsOfAPackage) {
  EXPECT_EQ(parts(index_of(5, {{1, 2, 3}, {3, 9, 1}, {8, 0, 10}})),
            "debug_info=234 debug_abbrev=9 debug_rnglists=0123456789 ");
  EXPECT_EQ(parts(index_of(2, {{1, 0, 2}, {8, 0, 10}})), "debug_info=01 ");  // 8 was another section
}

TEST(SplitFile, LeavesOutWhatIsNotThere) {
  EXPECT_EQ(parts(index_of(5, {{1, 2, 3}}), kId + 2), "");
  EXPECT_EQ(parts(index_of(5, {{1, 2, 3}}, 2)), "");
  EXPECT_EQ(parts(index_of(5, {{1, 8, 3}, {3, 0xFFFF'FFFF, 0xFFFF'FFFF}})), "");
  EXPECT_EQ(parts(index_of(3, {{1, 2, 3}})), "");
}

TEST(SplitFile, ReadsNoIndexThatIsCutOrTooLarge) {
  const ByteVector whole = index_of(5, {{1, 2, 3}});
  for (std::size_t size = 1; size < whole.size(); ++size)
    EXPECT_EQ(parts({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  for (std::size_t at = 4; at < 16; ++at) {
    ByteVector hostile = whole;
    hostile[at] = 0xff;
    EXPECT_EQ(parts(hostile), "") << at;
  }
}

TEST(SplitFile, TakesTheStringsOfAUnit) {
  const std::string all = std::string("zero") + '\0' + "one" + '\0' + "two" + '\0';
  const base::Bytes strings(reinterpret_cast<const std::uint8_t*>(all.data()), all.size());
  ByteVector offsets;
  for (const std::uint32_t one : {9U, 5U}) append(offsets, one);
  ByteVector hostile = offsets;
  code::source::Budget memory(9);
  const ByteVector taken = take_strings(strings, offsets, memory);
  EXPECT_EQ(std::string(taken.begin(), taken.end()), std::string("two") + '\0' + "one" + '\0');
  EXPECT_EQ(base::load_le<4>(offsets.data()), 0u);
  EXPECT_EQ(base::load_le<4>(offsets.data() + 4), 4u);
  code::source::Budget little(5);
  EXPECT_TRUE(take_strings(strings, hostile, little).empty());
  hostile[0] = 100;
  code::source::Budget much(1000);
  EXPECT_TRUE(take_strings(strings, hostile, much).empty());
}

}  // namespace
}  // namespace ptkit::code::dwarf
