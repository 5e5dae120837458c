// From blocks to packets and back: the decoder's rows equal the execution, and each row's time is correct.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "unit/support/scratch.h"
#include "unit/support/traces/encoded.h"

namespace ptkit::capture::test {
namespace {

struct Variant {
  const char* name;
  GeneratorConfig config;
  Delivery how;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::vector<Variant> variants() {
  GeneratorConfig uncompressed = config_of(true, true, 8);
  uncompressed.return_compression = false;
  GeneratorConfig long_tnt = config_of(true, true, 8);
  long_tnt.use_tnt_64 = true;
  return {{"mtc_8", config_of(true, true, 8), {14}},
          {"mtc_3", config_of(true, true, 3), {14}},
          {"tsc_only", config_of(true, false, 8), {14}},
          {"no_time", config_of(false, false, 8), {14}},
          {"mtc_without_tsc", config_of(false, true, 5), {14}},
          {"any_line", config_of(true, true, 5), {0}},
          {"exact", config_of(true, true, 3), {1, true}},
          {"cyc", config_of(true, true, 8, true), {1, true}},
          {"cyc_line", config_of(true, true, 8, true), {14}},
          {"cyc_any_line", config_of(true, true, 3, true), {0}},
          {"uncompressed", uncompressed, {14}},
          {"tnt_64", long_tnt, {14}}};
}

class BlockEncoderConfigs : public testing::TestWithParam<Variant> {};

void expect_same_flow(const Emulation& run, const Decoded& seen) {
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_TRUE(seen.gaps.empty());
  const auto [expected, ip] = std::mismatch(run.ips.begin(), run.ips.end(), seen.ips.begin(), seen.ips.end());
  EXPECT_EQ(expected - run.ips.begin(), static_cast<std::ptrdiff_t>(run.ips.size())) << std::hex << *expected;
  EXPECT_EQ(run.ips.size(), seen.ips.size());
  ASSERT_EQ(run.branches.size(), seen.branches.size());
  for (std::size_t i = 0; i < run.branches.size(); ++i)
    ASSERT_EQ(run.branches[i].ip, seen.branches[i].ip) << i;
}

std::size_t outside(const Emulation& run, const Decoded& seen) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < run.branches.size(); ++i) {
    const time::TimeRange& range = seen.branches[i].time;
    const std::uint64_t tsc = run.branches[i].tsc;
    const bool open = range.error == 0xffff'ffff;
    count += tsc < range.tsc || (!open && tsc > range.tsc + range.error) ? 1U : 0U;
  }
  return count;
}

TEST_P(BlockEncoderConfigs, DecodesToTheExecutedInstructions) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Emulation run;
    Emulator(run, {.seed = seed}).run();
    const Encoded out = encode(run, GetParam().config, GetParam().how);
    EXPECT_EQ(out.unexplained, 0U);
    EXPECT_EQ(out.instructions, run.ips.size());
    EXPECT_EQ(out.branches, run.branches.size());
    const Decoded seen = decode(bundle_for(run.program.regions, GetParam().config, out.bytes));
    expect_same_flow(run, seen);
  }
}

TEST_P(BlockEncoderConfigs, TimesLieInTheirIntervals) {
  std::size_t rows = 0;
  std::size_t wrong = 0;
  std::vector<std::uint64_t> widths;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Emulation run;
    Emulator(run, {.seed = seed, .events = 60'000, .signal_per_mille = 1, .signal_check_per_mille = 1}).run();
    const Encoded out = encode(run, GetParam().config, GetParam().how);
    const Decoded seen = decode(bundle_for(run.program.regions, GetParam().config, out.bytes));
    ASSERT_EQ(run.branches.size(), seen.branches.size());
    if (!GetParam().config.tsc) {
      for (const TimedBranch& row : seen.branches) ASSERT_FALSE(row.time.known && row.time.error == 0);
      continue;
    }
    rows += run.branches.size();
    wrong += outside(run, seen);
    for (const TimedBranch& row : seen.branches) {
      ASSERT_TRUE(row.time.known);
      widths.push_back(row.time.error);
    }
  }
  if (rows == 0) return;
  EXPECT_LE(static_cast<double>(wrong), 0.001 * static_cast<double>(rows)) << wrong << " of " << rows;
  std::nth_element(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2),
                   widths.end());
  RecordProperty("median_width", std::to_string(widths[widths.size() / 2]));
  RecordProperty("outside", std::to_string(wrong) + " of " + std::to_string(rows));
}

// ---- single cases, by manual

TEST(BlockEncoder, TrapRetiresAndFaultDoesNot) {
  // nop; int3; nop; nop; ret
  for (const bool trap : {true, false}) {
    ManualBlocks manual({0x90, 0xcc, 0x90, 0x90, 0xc3});
    const std::uint32_t first = manual.block(0, 2);
    const std::uint32_t rest = manual.block(2, 5);
    manual.encoder().block(first, 1000);
    manual.encoder().interrupted(kBase + (trap ? 2 : 1), 1100);
    manual.encoder().resumed(kBase + 2, 1200, SIGTRAP);
    manual.encoder().block(rest, 1300);
    manual.encoder().end(1400);
    EXPECT_EQ(manual.encoder().unexplained(), 0U);
    const Decoded seen = manual.decoded();
    EXPECT_TRUE(seen.errors.empty());
    EXPECT_EQ(seen.ips, trap ? at({0, 1, 2, 3}) : at({0, 2, 3}));
    EXPECT_EQ(manual.encoder().instructions(), seen.ips.size());
    EXPECT_EQ(seen.branches.size(), trap ? 1U : 0U);
  }
}

TEST(BlockEncoder, InterruptsOrFaultsAtTheFirstInstructionOfALoop) {
  // nop; jnz -3
  for (const int signal : {SIGALRM, SIGSEGV}) {
    ManualBlocks manual({0x90, 0x75, 0xfd, 0x90, 0xc3});
    const std::uint32_t loop = manual.block(0, 3);
    const std::uint32_t handler = manual.block(3, 5);
    manual.encoder().block(loop, 1000);
    manual.encoder().interrupted(kBase, 1100);
    manual.encoder().resumed(kBase + 3, 1200, signal);
    manual.encoder().block(handler, 1300);
    manual.encoder().end(1400);
    const Decoded seen = manual.decoded();
    EXPECT_TRUE(seen.errors.empty());
    EXPECT_EQ(seen.ips, signal == SIGALRM ? at({0, 1, 3}) : at({3}));
  }
}

TEST(BlockEncoder, SignalCheckWithoutSignalWritesNoPackets) {
  ManualBlocks manual({0x90, 0x75, 0xfd});
  const std::uint32_t loop = manual.block(0, 3);
  BlockEncoder& encoder = manual.encoder();
  encoder.block(loop, 1000);
  const auto bytes_before = encoder.bytes();
  encoder.interrupted(kBase, 1100);
  encoder.resumed(kBase, 1101);
  encoder.block(loop, 1102);
  encoder.interrupted(kBase, 1200);  // without an end
  encoder.block(loop, 1202);
  EXPECT_EQ(encoder.bytes(), bytes_before);
  encoder.end(1300);
  EXPECT_EQ(manual.decoded().ips, at({0, 1, 0, 1, 0}));
}

TEST(BlockEncoder, InvalidCodeIsAnInterrupt) {
  // nop; (bad); nop; ret
  ManualBlocks manual({0x90, 0x06, 0x90, 0xc3});
  BlockEncoder& encoder = manual.encoder();
  for (const std::uint32_t number : {manual.block(0, 1), manual.block(1, 2), manual.block(2, 4)})
    encoder.block(number, 1000 + number);
  encoder.end(1100);
  EXPECT_EQ(encoder.unexplained(), 0U);
  const Decoded seen = manual.decoded();
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_EQ(seen.ips, at({0, 2}));
}

TEST(BlockEncoder, CountsUnexplainedTransitionsAsInterrupts) {
  // nop; jmp +1; nop; nop; ret
  ManualBlocks manual({0x90, 0xeb, 0x01, 0x90, 0x90, 0xc3});
  BlockEncoder& encoder = manual.encoder();
  const std::uint32_t jump = manual.block(0, 3);
  const std::uint32_t unreachable = manual.block(3, 6);
  encoder.block(jump, 1000);
  encoder.block(unreachable, 1010);
  encoder.block(12345, 1020);  // no such block
  encoder.end(1100);
  EXPECT_EQ(encoder.unexplained(), 2U);
  const Decoded seen = manual.decoded();
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_EQ(seen.ips, at({0, 1, 3, 4}));
}

TEST(BlockEncoder, EncodesSystemCallsWithoutMarks) {
  // syscall; nop; syscall
  ManualBlocks manual({0x0f, 0x05, 0x90, 0x0f, 0x05});
  BlockEncoder& encoder = manual.encoder();
  encoder.block(manual.block(0, 2), 1000);
  encoder.block(manual.block(2, 5), 1010);
  encoder.syscall(1020);
  encoder.end(1100);
  EXPECT_EQ(encoder.unexplained(), 0U);
  const Decoded seen = manual.decoded();
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_EQ(seen.ips, at({0, 2, 3}));
  EXPECT_EQ(seen.branches.size(), 2U);
}

// The code at an address changes. The decoder must use the code of each time.
TEST(BlockEncoder, ChangedCodeDecodesAsOfItsTime) {
  enum class Delivered { BY_BLOCK, BY_LINE, LATE };
  for (const Delivered how : {Delivered::BY_BLOCK, Delivered::BY_LINE, Delivered::LATE}) {
    // nop; jnz -3. Later: a nop of two bytes; jnz -4
    ManualBlocks manual({0x90, 0x75, 0xfd});
    const std::vector<std::uint8_t> later{0x66, 0x90, 0x75, 0xfc};
    const std::uint32_t old_block = manual.block(0, 3);
    const std::uint32_t new_block = manual.code.add(kBase, later, 5000);
    BlockEncoder& encoder = manual.encoder();
    std::vector<std::uint64_t> expected;
    const auto old_ones = at({0, 1});
    const auto new_ones = at({0, 2});
    for (unsigned i = 0; i < 40; ++i) expected.insert(expected.end(), old_ones.begin(), old_ones.end());
    for (unsigned i = 0; i < 40; ++i) expected.insert(expected.end(), new_ones.begin(), new_ones.end());
    expected.pop_back();  // the branch of the last block is not known
    if (how == Delivered::LATE) {
      // TNT bits of the old code are pending when the next exact time is after the change.
      encoder.blocks(std::vector<std::uint32_t>(40, old_block), 1000, 4900);
      encoder.blocks(std::vector<std::uint32_t>(40, new_block), 600'000, 600'100);
    } else if (how == Delivered::BY_LINE) {
      const std::vector<std::uint32_t> before(34, old_block);
      std::vector<std::uint32_t> mixed(6, old_block);
      mixed.insert(mixed.end(), 8, new_block);
      const std::vector<std::uint32_t> after(32, new_block);
      encoder.blocks(before, 1000, 4900);
      encoder.blocks(mixed, 4900, 5100);
      encoder.blocks(after, 5100, 5500);
    } else {
      for (unsigned i = 0; i < 40; ++i) encoder.block(old_block, 1000 + i);
      for (unsigned i = 0; i < 40; ++i) encoder.block(new_block, 5000 + i);
    }
    encoder.end(900'000);
    EXPECT_EQ(encoder.unexplained(), 0U);
    auto bundle = bundle_for(manual.regions, manual.config, manual.bytes);
    trace::CodeRegion changed;
    changed.address = kBase;
    changed.size = later.size();
    changed.bytes = trace::TraceBuffer::from_vector(later);
    changed.tsc_from = 5000;
    bundle->code.push_back(changed);
    const Decoded seen = decode(bundle);
    EXPECT_TRUE(seen.errors.empty());
    EXPECT_EQ(seen.ips, expected) << static_cast<int>(how);
  }
}

// The change is long after the old code, so that timing packets come in between.
TEST(BlockEncoder, ChangedCodeDecodesAsOfItsTimeAfterAPause) {
  ManualBlocks manual({0x90, 0x75, 0xfd});
  const std::vector<std::uint8_t> later{0x66, 0x90, 0x75, 0xfc};
  constexpr std::uint64_t kChanged = 49'000'000;
  const std::vector<std::uint32_t> old_blocks(14, manual.block(0, 3));
  const std::vector<std::uint32_t> new_blocks(14, manual.code.add(kBase, later, kChanged));
  BlockEncoder& encoder = manual.encoder();
  encoder.blocks(old_blocks, 1000, 1100);
  encoder.blocks(new_blocks, kChanged + 1000, kChanged + 1100);
  encoder.end(kChanged + 2000);
  std::vector<std::uint64_t> expected;
  for (const auto& ones : {at({0, 1}), at({0, 2})}) {
    for (unsigned i = 0; i < 14; ++i) expected.insert(expected.end(), ones.begin(), ones.end());
  }
  expected.pop_back();
  auto bundle = bundle_for(manual.regions, manual.config, manual.bytes);
  trace::CodeRegion changed;
  changed.address = kBase;
  changed.size = later.size();
  changed.bytes = trace::TraceBuffer::from_vector(later);
  changed.tsc_from = kChanged;
  bundle->code.push_back(changed);
  const Decoded seen = decode(bundle);
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_EQ(seen.ips, expected);
}

// The execution log equals the decoded rows and does not change the trace.
TEST(BlockEncoder, LogsExecutedInstructionsAndBranches) {
  const formats::test::Scratch scratch;
  Emulation run;
  Emulator(run, {.seed = 3}).run();
  const GeneratorConfig config = config_of(true, true, 8);
  const Encoded plain = encode(run, config, {14});
  const Encoded logged =
      encode(run, config, {14},
             {ExecutionLog(scratch.at("stream-0.u64")), ExecutionLog(scratch.at("stream-0.branches")), {}});
  EXPECT_EQ(plain.bytes, logged.bytes);
  const auto words = [&](const char* name) {
    const std::string bytes = formats::test::read_all(scratch.at(name));
    std::vector<std::uint64_t> out(bytes.size() / 8);
    std::memcpy(out.data(), bytes.data(), out.size() * 8);
    return out;
  };
  EXPECT_EQ(words("stream-0.u64"), run.ips);
  const std::vector<std::uint64_t> branches = words("stream-0.branches");
  ASSERT_EQ(branches.size(), run.branches.size() * 2);
  for (std::size_t i = 0; i < run.branches.size(); ++i) {
    ASSERT_EQ(branches[2 * i], run.branches[i].ip);
    ASSERT_EQ(branches[2 * i + 1], run.branches[i].tsc);
  }
}

// An execution log disables the fast path.
TEST(BlockEncoder, FastPathWritesTheBytesOfTheSlowPath) {
  std::mt19937_64 random(5);
  std::uint64_t trials = 0;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    for (std::uint64_t seed = 1; seed <= 8; ++seed, ++trials) {
      SCOPED_TRACE(seed);
      GeneratorConfig config = variant.config;
      config.psb_bytes = 512U << (random() % 4);
      config.tip_ret = static_cast<trace_unit::generator::TipRet>(random() % 3);
      config.chunk_bytes = random() % 3 * 100;
      config.cyc_threshold = static_cast<std::uint8_t>(random() % 3 * 3);
      const Delivery how{seed % 2 == 0 ? variant.how.line : 0, variant.how.exact && seed % 3 != 0};
      Emulation run;
      EmulationOptions options{.seed = seed * 100 + trials, .events = 12'000};
      if (seed % 3 == 0) options.split_per_mille = options.fault_per_mille = options.flush_per_mille = 0;
      Emulator(run, options).run();
      const Encoded fast = encode(run, config, how);
      const Encoded slow =
          encode(run, config, how, {ExecutionLog("/dev/null"), ExecutionLog("/dev/null"), {}});
      EXPECT_EQ(fast.instructions, slow.instructions);
      EXPECT_EQ(fast.branches, slow.branches);
      EXPECT_EQ(fast.unexplained, slow.unexplained);
      const auto [at, other] =
          std::mismatch(fast.bytes.begin(), fast.bytes.end(), slow.bytes.begin(), slow.bytes.end());
      ASSERT_TRUE(fast.bytes == slow.bytes) << "differ at " << at - fast.bytes.begin();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BlockEncoder, BlockEncoderConfigs, testing::ValuesIn(variants()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace ptkit::capture::test
