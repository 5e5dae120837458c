#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "common/pt_ops.h"
#include "common/pt_topa.h"
#include "ptkit/rtit_regs.h"

namespace {

constexpr std::uint64_t kEnd = 1U << PT_TOPA_END;
constexpr std::uint64_t kInt = 1U << PT_TOPA_INT;
constexpr std::uint64_t kStop = 1U << PT_TOPA_STOP;
constexpr std::uint64_t kPage = 4096;

constexpr pt_topa_options kRing{
    .interrupt_bytes = 0, .ring = true, .one_entry = false, .largest_size = 15, .physical_bits = 39};

// Tables with memory of their own.
struct Tables {
  Tables(std::uint32_t count, std::uint32_t capacity)
      : memory(count, std::vector<std::uint64_t>(capacity, ~0ULL)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      tables.push_back({memory[i].data(), 0x7000'0000 + i * kPage, 0, capacity});
    }
  }
  int build(const std::vector<pt_region>& regions, const pt_topa_options& options) {
    return pt_topa_build(&topa, tables.data(), static_cast<std::uint32_t>(tables.size()), regions.data(),
                         static_cast<std::uint32_t>(regions.size()), &options);
  }
  std::vector<std::vector<std::uint64_t>> memory;
  std::vector<pt_table> tables;
  pt_topa topa{};
};

TEST(Build, SplitsRegionsIntoAlignedPowersOfTwo) {
  Tables tables(1, 16);
  // 4 KiB up to the next 8 KiB, 8, 16, and what is left of 40 KiB.
  ASSERT_EQ(tables.build({{0x3000, 10 * kPage}}, kRing), 0);
  EXPECT_EQ(tables.topa.entry_count, 4U);
  EXPECT_EQ(tables.topa.bytes, 10 * kPage);
  EXPECT_EQ(tables.memory[0][0], 0x3000U);
  EXPECT_EQ(tables.memory[0][1], 0x4000U | 2U << PT_TOPA_SIZE_SHIFT);
  EXPECT_EQ(tables.memory[0][2], 0x8000U | 2U << PT_TOPA_SIZE_SHIFT);
  EXPECT_EQ(tables.memory[0][3], 0xc000U);
  EXPECT_EQ(tables.memory[0][4], 0x7000'0000U | kEnd);
}

TEST(Build, LinksTablesByEnd) {
  Tables tables(3, 3);
  std::vector<pt_region> pages;
  for (std::uint64_t i = 0; i < 5; ++i) pages.push_back({0x100000 + 2 * i * kPage, kPage});
  ASSERT_EQ(tables.build(pages, kRing), 0);
  EXPECT_EQ(tables.topa.table_count, 3U);
  EXPECT_EQ(tables.memory[0][2], tables.tables[1].physical | kEnd);
  EXPECT_EQ(tables.memory[1][2], tables.tables[2].physical | kEnd);
  EXPECT_EQ(tables.memory[2][1], tables.tables[0].physical | kEnd);
  pages.push_back({0x900000, 2 * kPage});
  ASSERT_EQ(tables.build(pages, kRing), 0);
  pages.push_back({0xa00000, kPage});
  EXPECT_EQ(tables.build(pages, kRing), PT_E_ROOM);
}

TEST(Build, SetsIntAndStop) {
  Tables tables(1, 16);
  std::vector<pt_region> pages;
  for (std::uint64_t i = 0; i < 7; ++i) pages.push_back({0x100000 + 2 * i * kPage, kPage});
  pt_topa_options options = kRing;
  options.interrupt_bytes = 3 * kPage;
  ASSERT_EQ(tables.build(pages, options), 0);
  for (std::uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(tables.memory[0][i] & kInt, i == 2 || i == 5 ? kInt : 0) << i;
    EXPECT_EQ(tables.memory[0][i] & kStop, 0U);
  }
  options.ring = false;
  ASSERT_EQ(tables.build(pages, options), 0);
  EXPECT_EQ(tables.memory[0][6] & (kInt | kStop), kInt | kStop);
  options.interrupt_bytes = 0;
  ASSERT_EQ(tables.build(pages, options), 0);
  EXPECT_EQ(tables.memory[0][6] & (kInt | kStop), kStop);
  EXPECT_EQ(tables.memory[0][7] & (kEnd | kInt | kStop), kEnd);
}

TEST(Build, OneEntryWhereTheProcessorTakesNoMore) {
  Tables tables(1, 2);
  pt_topa_options options = kRing;
  options.one_entry = true;
  EXPECT_EQ(tables.build({{0x800000, 1 << 20}}, options), 0);
  EXPECT_EQ(tables.build({{0x880000, 1 << 20}}, options), PT_E_INVALID);
  EXPECT_EQ(tables.build({{0x800000, kPage}, {0x900000, kPage}}, options), PT_E_INVALID);
}

TEST(Build, RefusesWhatTheUnitWould) {
  Tables tables(1, 8);
  EXPECT_EQ(tables.build({{0x800, kPage}}, kRing), PT_E_INVALID);
  EXPECT_EQ(tables.build({{0x1000, 0}}, kRing), PT_E_INVALID);
  EXPECT_EQ(tables.build({{0x1000, 100}}, kRing), PT_E_INVALID);
  EXPECT_EQ(tables.build({}, kRing), PT_E_INVALID);
  EXPECT_EQ(tables.build({{(1ULL << 39) - kPage, kPage}}, kRing), 0);
  EXPECT_EQ(tables.build({{(1ULL << 39) - kPage, 2 * kPage}}, kRing), PT_E_INVALID);
  EXPECT_EQ(tables.build({{~0ULL << 12, kPage}}, kRing), PT_E_INVALID);
  pt_topa_options options = kRing;
  options.largest_size = 16;
  EXPECT_EQ(tables.build({{0x1000, kPage}}, options), PT_E_INVALID);
  tables.tables[0].physical += 128;
  EXPECT_EQ(tables.build({{0x1000, kPage}}, kRing), PT_E_INVALID);
  Tables twice(2, 8);
  twice.tables[1].physical = twice.tables[0].physical;  // they have to ascend
  EXPECT_EQ(twice.build({{0x1000, kPage}}, kRing), PT_E_INVALID);
  Tables tiny(1, 1);
  EXPECT_EQ(tiny.build({{0x1000, kPage}}, kRing), PT_E_INVALID);
}

TEST(Build, HasEverySize) {
  Tables tables(1, 4);
  for (unsigned size = 0; size <= 15; ++size) {
    const std::uint64_t bytes = kPage << size;
    ASSERT_EQ(tables.build({{bytes, bytes}}, kRing), 0);
    EXPECT_EQ(tables.topa.entry_count, 1U);
    EXPECT_EQ(tables.memory[0][0], bytes | size << PT_TOPA_SIZE_SHIFT);
  }
  ASSERT_EQ(tables.build({{1 << 28, 1 << 28}}, kRing), 0);
  EXPECT_EQ(tables.topa.entry_count, 2U);
}

// A unit that reads tables as the manual says: where the byte after `count` others goes.
struct Reader {
  explicit Reader(const Tables& tables) {
    for (const pt_table& table : tables.tables) memory[table.physical] = table.entries;
    base = tables.tables[0].physical;
  }
  [[nodiscard]] std::uint64_t entry() const { return memory.at(base)[index]; }
  [[nodiscard]] std::uint64_t region() const { return kPage << (entry() >> PT_TOPA_SIZE_SHIFT & 15); }
  void skip(std::uint64_t count) {
    while (count >= region() - offset) {
      count -= region() - offset;
      offset = 0;
      ++index;
      if ((entry() & kEnd) == 0) continue;
      base = entry() & ~(kPage - 1);
      index = 0;
    }
    offset += count;
  }
  std::map<std::uint64_t, const std::uint64_t*> memory;
  std::uint64_t base = 0;
  std::uint64_t index = 0;
  std::uint64_t offset = 0;
};

TEST(Position, IsWhatAUnitWouldHave) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 60; ++turn) {
    Tables tables(8, static_cast<std::uint32_t>(2 + random() % 9));
    std::vector<pt_region> regions;
    for (std::uint64_t i = 0, count = 1 + random() % 3; i < count; ++i) {
      regions.push_back({(random() % 4096) * kPage, (1 + random() % 12) * kPage});
    }
    if (tables.build(regions, kRing) == PT_E_ROOM) continue;
    EXPECT_EQ(tables.topa.entry_count,
              pt_topa_entries(regions.data(), static_cast<std::uint32_t>(regions.size()), &kRing));
    Reader reader(tables);
    std::uint64_t written = 0;
    for (int step = 0; step < 100; ++step) {
      const std::uint64_t position = written % tables.topa.bytes;
      pt_output output{};
      ASSERT_EQ(pt_topa_output(&tables.topa, position, &output), 0);
      EXPECT_EQ(output.base, reader.base);
      EXPECT_EQ(output.mask_ptrs, reader.offset << 32 | reader.index << 7 | 0x7f);
      std::uint64_t back = 0;
      ASSERT_EQ(pt_topa_position(&tables.topa, &output, &back), 0);
      EXPECT_EQ(back, position);
      if (step % 10 == 0) {  // elsewhere
        const std::uint64_t other = random() % tables.topa.bytes;
        ASSERT_EQ(pt_topa_output(&tables.topa, other, &output), 0);
        ASSERT_EQ(pt_topa_position(&tables.topa, &output, &back), 0);
        EXPECT_EQ(back, other);
      }
      const std::uint64_t bytes = random() % (3 * kPage);
      reader.skip(bytes);
      written += bytes;
    }
  }
}

TEST(Position, IsRefusedIfItIsOfOtherTables) {
  Tables tables(1, 4);
  ASSERT_EQ(tables.build({{0x3000, kPage}, {0x8000, kPage}}, kRing), 0);
  std::uint64_t position = 0;
  pt_output output{0x7000'0000, 1ULL << 7 | 0x7f | kPage << 32};
  EXPECT_EQ(pt_topa_position(&tables.topa, &output, &position), 0);  // a full region with STOP
  EXPECT_EQ(position, 2 * kPage);
  output.mask_ptrs += 1ULL << 32;
  EXPECT_EQ(pt_topa_position(&tables.topa, &output, &position), PT_E_INVALID);
  output.mask_ptrs = 1ULL << 32 | 2ULL << 7 | 0x7f;  // within the END entry
  EXPECT_EQ(pt_topa_position(&tables.topa, &output, &position), PT_E_INVALID);
  output.mask_ptrs = 3ULL << 7 | 0x7f;
  EXPECT_EQ(pt_topa_position(&tables.topa, &output, &position), PT_E_INVALID);
  output = {0x1234'0000, 0x7f};
  EXPECT_EQ(pt_topa_position(&tables.topa, &output, &position), PT_E_INVALID);
  EXPECT_EQ(pt_topa_output(&tables.topa, 2 * kPage, &output), PT_E_INVALID);
}

// A unit may go to the END entry with the last byte of a region, and on with the byte after that.
TEST(Position, OfEndIsTheNextRegion) {
  Tables tables(2, 3);
  ASSERT_EQ(tables.build({{0x3000, kPage}, {0x8000, kPage}, {0xa000, kPage}}, kRing), 0);
  ASSERT_EQ(tables.topa.table_count, 2U);
  std::uint64_t position = 0;
  pt_output output{tables.tables[0].physical, 2ULL << 7 | 0x7f};
  EXPECT_EQ(pt_topa_position(&tables.topa, &output, &position), 0);
  EXPECT_EQ(position, 2 * kPage);
  output = {tables.tables[1].physical, 1ULL << 7 | 0x7f};
  EXPECT_EQ(pt_topa_position(&tables.topa, &output, &position), 0);
  EXPECT_EQ(position, 0U);
}

TEST(Position, LooksAtOneTableOnly) {
  constexpr std::uint32_t kCapacity = 512;
  for (const std::uint32_t count : {2U, 512U}) {
    Tables tables(count, kCapacity);
    std::vector<pt_region> pages;
    for (std::uint64_t i = 0; i < std::uint64_t{count} * (kCapacity - 1); ++i)
      pages.push_back({2 * i * kPage, kPage});
    ASSERT_EQ(tables.build(pages, kRing), 0);
    for (const std::uint64_t position : {tables.topa.bytes - 1, std::uint64_t{511} * kPage - 1}) {
      pt_output output{};
      std::uint64_t found = 0;
      tables.topa.looked_at = 0;
      ASSERT_EQ(pt_topa_output(&tables.topa, position, &output), 0);
      ASSERT_EQ(pt_topa_position(&tables.topa, &output, &found), 0);
      EXPECT_EQ(found, position);
      EXPECT_TRUE(pt_topa_owns(&tables.topa, output.base));
      ASSERT_EQ(pt_topa_stop_before(&tables.topa, position, &found), 0);
      EXPECT_GE(tables.topa.looked_at, 3 * 511U);
      EXPECT_LE(tables.topa.looked_at, 3 * 511U + 4 * 9U) << count;
    }
  }
}

TEST(Position, KnowsItsTables) {
  Tables tables(3, 3);
  tables.tables[1].physical += kPage;
  tables.tables[2].physical += 2 * kPage;
  ASSERT_EQ(tables.build({{0x10000, kPage}, {0x20000, kPage}, {0x30000, kPage}, {0x40000, kPage}}, kRing), 0);
  ASSERT_EQ(tables.topa.table_count, 2U);
  for (const std::uint64_t page : {0U, 2U})
    EXPECT_TRUE(pt_topa_owns(&tables.topa, 0x7000'0000 + page * kPage));
  for (const std::uint64_t page : {1U, 3U, 4U})
    EXPECT_FALSE(pt_topa_owns(&tables.topa, 0x7000'0000 + page * kPage));
  EXPECT_FALSE(pt_topa_owns(&tables.topa, 0));
}

TEST(Stop, IsInTheEntryBefore) {
  Tables tables(2, 3);
  pt_topa_options options = kRing;
  options.interrupt_bytes = 2 * kPage;
  ASSERT_EQ(tables.build({{0x3000, kPage}, {0x8000, kPage}, {0xa000, kPage}}, options), 0);
  const auto built = tables.memory;
  std::uint64_t begin = 1;
  EXPECT_EQ(pt_topa_stop_before(&tables.topa, 5, &begin), 0);  // of the first region: the last one
  EXPECT_EQ(begin, 0U);
  EXPECT_EQ(tables.memory[0], built[0]);
  EXPECT_EQ(tables.memory[1][0], 0xa000 | kStop | kInt);
  EXPECT_EQ(pt_topa_stop_before(&tables.topa, kPage, &begin), 0);
  EXPECT_EQ(begin, kPage);
  EXPECT_EQ(tables.memory[1], built[1]);
  EXPECT_EQ(tables.memory[0],
            (std::vector<std::uint64_t>{0x3000 | kStop | kInt, 0x8000 | kInt, 0x7000'1000 | kEnd}));
  EXPECT_EQ(pt_topa_stop_before(&tables.topa, 3 * kPage - 1, &begin), 0);
  EXPECT_EQ(begin, 2 * kPage);
  EXPECT_EQ(tables.memory[0],
            (std::vector<std::uint64_t>{0x3000, 0x8000 | kStop | kInt, 0x7000'1000 | kEnd}));
  EXPECT_EQ(pt_topa_stop_before(&tables.topa, 3 * kPage, &begin), PT_E_INVALID);
  pt_topa_do_not_stop(&tables.topa);
  EXPECT_EQ(tables.memory, built);
  pt_topa_do_not_stop(&tables.topa);
  EXPECT_EQ(tables.memory, built);
}

TEST(Silence, TakesIntFromAllEntries) {
  Tables tables(2, 3);
  pt_topa_options options = kRing;
  options.interrupt_bytes = kPage;
  ASSERT_EQ(tables.build({{0x3000, kPage}, {0x8000, kPage}, {0xa000, kPage}}, options), 0);
  std::uint64_t begin = 0;
  ASSERT_EQ(pt_topa_stop_before(&tables.topa, kPage, &begin), 0);
  pt_topa_silence(&tables.topa);
  EXPECT_EQ(tables.memory[0], (std::vector<std::uint64_t>{0x3000 | kStop, 0x8000, 0x7000'1000 | kEnd}));
  EXPECT_EQ(tables.memory[1], (std::vector<std::uint64_t>{0xa000, 0x7000'0000 | kEnd, ~0ULL}));
}

}  // namespace
