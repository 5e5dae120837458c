// 16 and 32-bit code: its IP payloads are offsets in a code segment with a base.
#include <gtest/gtest.h>

#include "unit/flow/damage.h"
#include "unit/flow/tables.h"
#include "unit/support/traces/roundtrip.h"
#include "unit/support/traces/scene.h"
#include "unit/support/units/random_machine.h"

namespace ptkit::flow {
namespace {

using ptmodel::test::RandomMachine;
using ptmodel::test::RunOptions;

constexpr std::uint32_t kBase = 0x12'3400;
constexpr std::uint64_t kLong = 0x7f12'3456'0000;  // 64-bit code

// Nothing but `jmp eax` (`jmp ax`), at these offsets.
Scene jumps(std::initializer_list<std::uint32_t> offsets, std::uint32_t base = kBase) {
  Scene scene;
  scene.configuration.cs_base = base;
  for (const std::uint32_t offset : offsets)
    scene.put(static_cast<std::uint32_t>(base + offset), {0xff, 0xe0});
  return scene;
}

void expect_no_errors(const Collect& rows) { EXPECT_TRUE(rows.errors.empty()) << rows.log; }

class CodeSegment : public testing::TestWithParam<unsigned> {};

TEST_P(CodeSegment, IpsOfAllPacketsAreLinear) {
  Scene scene = jumps({0x1000, 0x2000, 0x3000});
  scene.begin(0x1000, GetParam()).tip(0x2000).fup(0x2000).tip(0x3000).pgd(0x1000).pge(0x2000).end(0x2000);
  const Collect rows = scene.decode();
  expect_no_errors(rows);
  EXPECT_EQ(rows.ips, (Ips{kBase + 0x1000, kBase + 0x3000}));
  ASSERT_EQ(rows.branches.size(), 4U);
  EXPECT_EQ(rows.branches[0].to_ip, kBase + 0x2000U);
  EXPECT_EQ(rows.branches[1].from_ip, kBase + 0x2000U);
  EXPECT_EQ(rows.branches[1].to_ip, kBase + 0x3000U);
  EXPECT_EQ(rows.branches[2].to_ip, kBase + 0x1000U);
  EXPECT_EQ(rows.branches[3].from_ip, kBase + 0x2000U);
  for (const Event& event : rows.events) {
    if ((event.flags & EV_IP_KNOWN) == 0) continue;
    EXPECT_GE(event.ip, kBase + 0x1000U);
    EXPECT_LE(event.ip, kBase + 0x3000U);
  }
}

TEST_P(CodeSegment, PsbFupMayPrecedeModeExec) {
  Scene scene = jumps({0x1000, 0x2000});
  scene.psb().fup(0x1000).mode(GetParam()).psbend().tip(0x2000);
  scene.psb().add(PacketKind::CBR, 30).fup(0x2000).mode(GetParam()).psbend().end(0x2000);
  const Collect rows = scene.decode();
  expect_no_errors(rows);
  EXPECT_EQ(rows.ips, (Ips{kBase + 0x1000}));
  EXPECT_EQ(rows.events[0].ip, kBase + 0x1000U);
}

TEST_P(CodeSegment, PsbAfterOverflowRestoresMode) {
  Scene scene = jumps({0x1000, 0x2000});
  scene.put(kLong, {0x90, 0x90});
  scene.begin(kLong).ovf().fup(0x1000).begin(0x1000, GetParam()).tip(0x2000);
  scene.ovf().fup(kLong).begin(kLong).end(kLong + 1);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{kBase + 0x1000, kLong}));
  std::vector<std::uint64_t> resumed;
  for (const Event& event : rows.events) {
    if (event.kind == EventKind::OVERFLOW) resumed.push_back(event.ip);
  }
  EXPECT_EQ(resumed, (std::vector<std::uint64_t>{kBase + 0x1000, kLong}));
}

TEST_P(CodeSegment, ModeAfterOverflowFupBindsToNextTip) {
  Scene scene;
  scene.configuration.cs_base = kBase;
  scene.put(kLong, {0xff, 0x28}).put(kBase + 0x1000, {0xff, 0xe0});  // jmp far [rax]
  scene.begin(kLong).ovf().fup(kLong).mode(GetParam()).tip(0x1000).end(0x1000);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{kLong}));
  EXPECT_EQ(rows.branches.back().from_ip, kBase + 0x1000U);
}

TEST_P(CodeSegment, Skd010LookaheadFindsIp) {
  for (const bool by_psb : {false, true}) {
    Scene scene = jumps({0x1000, 0x2000, 0x3000});
    scene.options.errata.skd010 = true;
    scene.begin(0x1000, GetParam()).ovf();
    if (by_psb) {
      scene.psb().fup(0x2000).mode(GetParam()).psbend();
    } else {
      scene.tip(0x2000);
    }
    scene.tip(0x3000).end(0x3000);
    const Collect rows = scene.decode();
    expect_no_errors(rows);
    EXPECT_EQ(rows.ips, (Ips{kBase + 0x2000}));
  }
}

TEST_P(CodeSegment, LinearAddressesWrapAtFourGigabytes) {
  constexpr std::uint32_t kHigh = 0xffff'8000;
  Scene scene = jumps({0x1000, 0x9000}, kHigh);
  scene.begin(0x1000, GetParam()).tip(0x9000).tip(0x1000).end(0x1000);
  const Collect rows = scene.decode();
  expect_no_errors(rows);
  EXPECT_EQ(rows.ips, (Ips{0xffff'9000, 0x1000}));
  EXPECT_EQ(rows.branches[1].to_ip, 0xffff'9000U);
}

// No effective address of such code has them: a stream that is damaged.
TEST_P(CodeSegment, IpsAbove32BitsHaveNoBase) {
  Scene scene = jumps({0x1000});
  scene.begin(0x1000, GetParam()).tip(0x1'0000'1000).tip(0x7fff'ffff'ffff).tip(0xffff'ffff'8000'0000);
  const Collect rows = scene.decode();
  ASSERT_FALSE(rows.errors.empty());
  EXPECT_EQ(rows.branches[0].to_ip, 0x1'0000'1000U);
}

TEST_P(CodeSegment, FiltersCompareLinearAddresses) {
  // 1000: je 1010; jmp 2000
  Scene scene;
  scene.configuration.cs_base = kBase;
  const std::vector<std::uint8_t> code = GetParam() == 16
                                             ? std::vector<std::uint8_t>{0x74, 0x0e, 0xe9, 0xfb, 0x0f}
                                             : std::vector<std::uint8_t>{0x74, 0x0e, 0xe9, 0xf9, 0x0f, 0, 0};
  scene.put(kBase + 0x1000, code);
  scene.configuration.ranges[0] = {trace::RangeKind::FILTER, kBase + 0x1000, kBase + 0x1fff};
  scene.begin(0x1000, GetParam()).tnt("n").pgd();
  const Collect rows = scene.decode();
  expect_no_errors(rows);
  ASSERT_EQ(rows.branches.size(), 2U);
  EXPECT_EQ(rows.branches[1].to_ip, kBase + 0x2000U);
}

INSTANTIATE_TEST_SUITE_P(Bits, CodeSegment, testing::Values(16U, 32U),
                         [](const auto& bits) { return "code_" + std::to_string(bits.param); });

TEST(CodeSegments, SixtyFourBitCodeHasNoBase) {
  Scene scene = jumps({0x1000});
  scene.put(kLong, {0xff, 0x28}).put(kLong + 0x1000, {0x90});  // jmp far [rax]
  scene.put(kBase + 0x2000, {0xff, 0x28});
  scene.begin(kLong).mode(32).tip(0x2000).mode(64).tip(kLong).mode(16).tip(0x2000).mode(64);
  scene.tip(kLong + 0x1000).end(kLong + 0x1001);
  const Collect rows = scene.decode();
  expect_no_errors(rows);
  EXPECT_EQ(rows.ips, (Ips{kLong, kBase + 0x2000, kLong, kBase + 0x2000, kLong + 0x1000}));
}

TEST(CodeSegments, OffsetsOf16BitCodeWrapAt64KiB) {
  // fffb: call 0010 (its next instruction is at fffe); fffe: nop; nop; 0000: jmp fffb; 0010: ret
  Scene scene;
  scene.configuration.cs_base = kBase;
  scene.put(kBase + 0xfffb, {0xe8, 0x12, 0x00, 0x90, 0x90})
      .put(kBase, {0xeb, 0xf9})
      .put(kBase + 0x10, {0xc3});
  scene.begin(0xfffb, 16).tnt("tt").end(0xfffe);
  const Collect rows = scene.decode();
  expect_no_errors(rows);
  const Ips turn{kBase + 0xfffb, kBase + 0x10, kBase + 0xfffe, kBase + 0xffff, kBase};
  Ips twice = turn;
  twice.insert(twice.end(), turn.begin(), turn.begin() + 2);
  EXPECT_EQ(rows.ips, twice);
}

TEST(CodeSegments, ReturnsWrapAtEndOfSegment) {
  // fffd: call 0010; 0000: jmp ax
  Scene scene;
  scene.configuration.cs_base = kBase;
  scene.put(kBase + 0xfffd, {0xe8, 0x10, 0x00}).put(kBase, {0xff, 0xe0}).put(kBase + 0x10, {0xc3});
  scene.begin(0xfffd, 16).tnt("t").tip(0xfffd).tnt("t").end(0);
  const Collect rows = scene.decode();
  expect_no_errors(rows);
  EXPECT_EQ(rows.ips, (Ips{kBase + 0xfffd, kBase + 0x10, kBase, kBase + 0xfffd, kBase + 0x10}));
}

// ---- random programs

RunOptions code(unsigned bits, std::uint32_t cs_base, bool kernel_64, std::uint64_t seed) {
  return {.seed = seed,
          .steps = 30000,
          .ranges = seed % 2 == 0,
          .overflows = seed % 3 == 0,
          .program = {.system = true, .bits = bits, .cs_base = cs_base, .kernel_64 = kernel_64}};
}

std::shared_ptr<trace::TraceBundle> bundle_of(const RandomMachine& machine, std::vector<std::uint8_t> bytes) {
  auto bundle = roundtrip::bundle_for(machine.program.regions, machine.config(), std::move(bytes));
  machine.describe_code(bundle->configuration);
  return bundle;
}

struct Kind {
  const char* name;
  unsigned bits;
  std::uint32_t cs_base;
  bool kernel_64;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class RandomSegments : public testing::TestWithParam<Kind> {
 protected:
  static RunOptions options(std::uint64_t seed) {
    const Kind& kind = GetParam();
    return code(kind.bits, kind.cs_base, kind.kernel_64, seed);
  }
};

// Also where a stream is cut into segments, and where it is damaged.
TEST_P(RandomSegments, FastAndSimplePathsEmitSameRows) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomMachine machine(options(seed));
    machine.run();
    damage::Damage damage(machine.platform.stream, seed);
    for (std::uint64_t i = 0; seed > 6 && i < 4 * seed; ++i) damage.add(static_cast<unsigned>(i + seed));
    const auto bundle = bundle_of(machine, damage.bytes());
    const code::image::Image image(bundle);
    CodeCachePool pool(image);
    for (const tables::columns::TableId table : decoded::kFlowTables) {
      FlowOptions simple;
      simple.fast = false;
      simple.errata.skd010 = seed % 4 == 0;
      FlowOptions fast = simple;
      fast.fast = true;
      decoded::Reading reading;
      reading.table = table;
      const decoded::Tables whole = decoded::read(bundle, image, simple, nullptr, reading);
      EXPECT_EQ(difference(decoded::read(bundle, image, fast, &pool, reading), whole), "");
      reading.threads = 2;
      reading.segment = 1500;
      EXPECT_EQ(difference(decoded::read(bundle, image, fast, &pool, reading), whole), "") << "segments";
    }
  }
}

TEST_P(RandomSegments, OtherBaseGivesErrors) {
  for (const std::uint32_t wrong : {0U, 1U, 0x10U, 0x7fff'ffffU, 0xffff'ffffU}) {
    std::size_t errors = 0;  // some seeds trace the kernel alone
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      RandomMachine machine(options(seed));
      machine.run();
      const auto bundle = bundle_of(machine, machine.platform.stream);
      bundle->configuration.cs_base = wrong;
      errors += roundtrip::decode(bundle, roundtrip::own_engine).errors.size();
    }
    EXPECT_GT(errors, 0U) << wrong;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomSegments,
                         testing::Values(Kind{"code_16", 16, 0x1'2340, false},
                                         Kind{"code_16_at_the_end", 16, 0xffff'8000, false},
                                         Kind{"code_32", 32, 0xfff8'0000, false},
                                         Kind{"kernel_64", 32, 0x4000'0000, true}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace ptkit::flow
