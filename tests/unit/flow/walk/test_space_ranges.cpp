// Address ranges of single address spaces: files lie at other addresses in other processes.
#include <gtest/gtest.h>

#include "flow/walk/walker.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using trace::AddressRange;
using trace::RangeKind;

TEST(SpaceRanges, CountInTheirSpaceAndAllInAnUnknownOne) {
  trace::Configuration configuration;
  configuration.ranges[0] = {RangeKind::FILTER, 0x100, 0x1ff};
  configuration.space_ranges = {{2, {RangeKind::FILTER, 0x2000, 0x2fff}},
                                {1, {RangeKind::FILTER, 0x1000, 0x1fff}},
                                {2, {RangeKind::TRACE_STOP, 0x2800, 0x28ff}},
                                {trace::kAnySpace, {RangeKind::FILTER, 0x300, 0x3ff}}};
  AddressFilter filter(configuration);
  const auto traced = [&filter] {
    std::string text;
    for (const std::uint64_t ip : {0x50U, 0x100U, 0x300U, 0x1000U, 0x2000U, 0x2800U, 0x2900U})
      text += filter.traced(ip) ? '1' : '0';
    return text;
  };
  EXPECT_TRUE(filter.known());
  EXPECT_EQ(traced(), "0111101");
  filter.enter(1);
  EXPECT_EQ(traced(), "0111000");
  filter.enter(2);
  EXPECT_EQ(traced(), "0110101");
  filter.enter(3);  // the file is not mapped there
  EXPECT_EQ(traced(), "0110000");
  filter.enter(trace::kAnySpace);
  EXPECT_EQ(traced(), "0111101");
}

// 1000 call 1100; 1100 jmp rbx
std::vector<std::uint8_t> program() {
  std::vector<std::uint8_t> code(0x102, 0x90);
  const std::vector<std::uint8_t> call{0xe8, 0xfb, 0, 0, 0};
  std::copy(call.begin(), call.end(), code.begin());
  code[0x100] = 0xff;
  code[0x101] = 0xe3;
  return code;
}

TEST(SpaceRanges, SayWhereABranchWithoutIpLeaves) {
  const auto scene_of = [](trace::SpaceId space) {
    Scene scene(program());
    scene.bundle().spaces.resize(3);
    scene.stream().space = space;
    scene.configuration.space_ranges = {{1, {RangeKind::FILTER, 0x1000, 0x10ff}},
                                        {2, {RangeKind::FILTER, 0x1000, 0x11ff}}};
    return scene;
  };
  const Collect first = scene_of(1).begin().pgd().decode();
  EXPECT_EQ(first.ips, (Ips{0x1000}));
  ASSERT_EQ(first.branches.size(), 1U);
  EXPECT_EQ(first.branches[0].to_ip, 0x1100U);
  const Collect second = scene_of(2).begin().pgd().decode();
  EXPECT_EQ(second.ips, (Ips{0x1000, 0x1100}));
  ASSERT_EQ(second.branches.size(), 2U);
  // A switch of address spaces while packets are off.
  Scene both = scene_of(1);
  both.with_time = true;
  both.begin().pgd();
  both.stream().switches_by_offset = true;
  both.stream().switches = {{0, 1, 1, 1, 0}, {0, 2, 2, 2, both.bytes().size()}};
  const Collect rows = both.pge(0x1000).pgd().decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1000, 0x1100}));
  EXPECT_TRUE(rows.errors.empty());
}

}  // namespace
}  // namespace ptkit::flow
