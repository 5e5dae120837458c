// RVAs of code with and without the segments of its file, and the table of mappings.
#include <gtest/gtest.h>

#include <memory>

#include "code/symbol/load_addresses.h"

namespace ptkit::code::symbol {
namespace {

struct Mapped {
  std::uint64_t address;
  std::uint64_t size;
  std::int32_t file;
  std::uint64_t file_offset = 0;
  trace::SpaceId space = 1;
  std::uint64_t tsc_from = trace::kTscMin;
};

std::shared_ptr<trace::TraceBundle> bundle_of(const std::vector<Mapped>& mapped) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->spaces.resize(3);
  bundle->files.resize(2);
  for (const Mapped& one : mapped) {
    trace::CodeRegion& region = bundle->code.emplace_back();
    region.address = one.address;
    region.size = one.size;
    region.file = one.file;
    region.file_offset = one.file_offset;
    region.space = one.space;
    region.tsc_from = one.tsc_from;
  }
  return bundle;
}

TEST(LoadAddresses, WithoutSegmentsTheMappingOfTheBeginDoes) {
  const auto bundle = bundle_of({{0x7000'0000, 0x1000, 0, 0},
                                 {0x7000'5000, 0x1000, 0, 0x3000},
                                 {0x6000'0000, 0x1000, 0, 0, 2},
                                 {0x6000'2000, 0x1000, 0, 0x1000, 2},
                                 {0x5000'0000, 0x1000, 1, 0}});
  const LoadAddresses loads(bundle);
  EXPECT_EQ(loads.rva(1, 0x7000'5010), 0x5010u);
  EXPECT_EQ(loads.rva(3, 0x6000'2010), 0x2010u);
}

TEST(LoadAddresses, WithoutBothTheRvaIsTheOffset) {
  const auto bundle = bundle_of({{0x7000'5000, 0x1000, 0, 0x3000}, {0x6000'0000, 0x1000, 0, 0, 2}});
  EXPECT_EQ(LoadAddresses(bundle).rva(0, 0x7000'5010), 0x3010u);
}

TEST(LoadAddresses, SurvivesRegionsOfNoFile) {
  const auto bundle = bundle_of({{0x7000'5000, 0x1000, 2, 0x3000}, {0x6000'0000, 0x1000, -2, 0x1000}});
  const LoadAddresses loads(bundle);
  EXPECT_EQ(loads.rva(0, 0x7000'5010), 0x3010u);
  EXPECT_EQ(loads.rva(1, 0x6000'0010), 0x1010u);
}

TEST(LoadAddresses, OffsetsOfTheKernelAreAddresses) {
  constexpr std::uint64_t kText = 0xffff'ffff'8100'0000;
  const auto bundle =
      bundle_of({{kText, 0x1000, 0, kText, 0}, {kText + 0x1000, 0x1000, 0, kText + 0x1000, 0}});
  EXPECT_EQ(LoadAddresses(bundle).rva(1, kText + 0x1010), 0x1010u);
}

TEST(LoadAddresses, AdjacentPartsOfAFileAreOneMapping) {
  const auto bundle = bundle_of({{0x7000'2000, 0x1000, 0, 0x2000},
                                 {0x7000'0000, 0x1000, 0, 0},
                                 {0x7000'1000, 0x1000, 0, 0x1000},
                                 {0x7000'0000, 0x2800, 0, 0},
                                 {0x7000'3000, 0x1000, 1, 0x3000},
                                 {0x7000'2800, 0x100, -1},
                                 {0x7000'1000, 0x1000, 0, 0x1000, 1, 500},
                                 {0x7000'0000, 0x1000, 0, 0, 2}});
  const auto rows = LoadAddresses(bundle).mappings();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].address, 0x7000'0000u);
  EXPECT_EQ(rows[0].size, 0x3000u);
  EXPECT_EQ(rows[0].rva, 0u);
  EXPECT_EQ(rows[1].tsc_from, 500u);
  EXPECT_EQ(rows[1].rva, 0x1000u);
  EXPECT_EQ(rows[2].file, -1);
  EXPECT_EQ(rows[3].file, 1);
  EXPECT_EQ(rows[3].rva, 0x3000u);
  EXPECT_EQ(rows[4].space, 2u);
}

TEST(LoadAddresses, CodeWithoutAFileHasNone) {
  const auto rows = LoadAddresses(bundle_of({{0x1000, 0x10, -1}, {0x1010, 0x10, -1}})).mappings();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].size, 0x20u);
  EXPECT_EQ(rows[0].file, -1);
}

}  // namespace
}  // namespace ptkit::code::symbol
