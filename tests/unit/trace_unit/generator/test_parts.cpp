#include <gtest/gtest.h>

#include "trace_unit/generator/return_stack.h"
#include "trace_unit/generator/timing.h"
#include "trace_unit/generator/tnt_buffer.h"

namespace ptkit::trace_unit::generator {
namespace {

TEST(TntBuffer, KeepsTheOldestBitLowest) {
  TntBuffer buffer(TntBuffer::kShortBits);
  for (const bool bit : {true, false, false, true, true}) buffer.push(bit);
  EXPECT_FALSE(buffer.full());
  buffer.push(true);
  EXPECT_TRUE(buffer.full());
  EXPECT_EQ(buffer.take(4), 0b1001U);
  EXPECT_EQ(buffer.count(), 2U);
  EXPECT_EQ(buffer.take(2), 0b11U);
  EXPECT_TRUE(buffer.empty());
}

TEST(TntBuffer, TakesAllOfALongPacket) {
  TntBuffer buffer(TntBuffer::kLongBits);
  for (unsigned i = 0; i < TntBuffer::kLongBits; ++i) buffer.push(i % 3 == 0);
  EXPECT_TRUE(buffer.full());
  const std::uint64_t bits = buffer.take(TntBuffer::kLongBits);
  for (unsigned i = 0; i < TntBuffer::kLongBits; ++i) EXPECT_EQ(bits >> i & 1, i % 3 == 0 ? 1U : 0U) << i;
  EXPECT_EQ(bits >> TntBuffer::kLongBits, 0U);
}

TEST(ReturnStack, LosesTheOldestEntry) {
  ReturnStack stack;
  for (std::uint64_t ip = 0; ip < 70; ++ip) stack.push(ip);
  EXPECT_EQ(stack.size(), 64U);
  for (std::uint64_t ip = 69; ip >= 6; --ip) {
    ASSERT_EQ(stack.top(), ip);
    stack.pop();
  }
  EXPECT_FALSE(stack.top());
  stack.pop();  // of an empty stack: nothing
  EXPECT_EQ(stack.size(), 0U);
  stack.push(5);
  EXPECT_EQ(stack.top(), 5U);
  stack.clear();
  EXPECT_FALSE(stack.top());
}

GeneratorConfig ratio(std::uint32_t numerator, std::uint32_t denominator, std::uint64_t origin = 0) {
  GeneratorConfig config;
  config.tsc_ctc_numerator = numerator;
  config.tsc_ctc_denominator = denominator;
  config.tsc_at_ctc_zero = origin;
  return config;
}

TEST(CrystalClock, GoesWithTheRatio) {
  const CrystalClock clock(ratio(168, 2));
  EXPECT_EQ(clock.ctc_at(0), 0U);
  EXPECT_EQ(clock.ctc_at(83), 0U);
  EXPECT_EQ(clock.ctc_at(84), 1U);
  EXPECT_EQ(clock.tsc_at(1), 84U);
  EXPECT_EQ(clock.fast_counter(100), 16U);
  EXPECT_EQ(clock.ctc_at(84'000'000'000'083),
            1'000'000'000'000U);  // the product has more than 64 bits of factors
}

TEST(CrystalClock, TscAtIsTheFirstTickOfACount) {
  const CrystalClock odd(ratio(250, 3, 17));
  for (std::uint64_t ctc = 1; ctc < 1000; ++ctc) {
    const std::uint64_t tsc = odd.tsc_at(ctc);
    ASSERT_EQ(odd.ctc_at(tsc), ctc);
    ASSERT_EQ(odd.ctc_at(tsc - 1), ctc - 1);
    ASSERT_EQ(odd.fast_counter(tsc), 0U);
    ASSERT_EQ(odd.fast_counter(tsc + 82), 82U);
  }
}

TEST(CrystalClock, FastCounterSaturates) {
  const CrystalClock slow(ratio(2000, 1));
  EXPECT_EQ(slow.fast_counter(1999), 511U);
}

TEST(CrystalClock, ARatioOfZeroIsOne) {
  const CrystalClock clock(ratio(0, 0));
  EXPECT_EQ(clock.ctc_at(12), 12U);
}

TEST(Timing, GivesEveryMtcOnceWithItsTime) {
  GeneratorConfig config = ratio(84, 1);
  config.mtc_period = 3;
  Timing timing(config);
  timing.move_to({1000, 2000});
  const Instant to{1000 + 672 * 3, 2000 + 672 * 6};
  std::vector<std::pair<unsigned, std::uint64_t>> seen;
  while (const auto ctc = timing.next_mtc(to)) seen.emplace_back(*ctc, timing.now().tsc);
  const std::vector<std::pair<unsigned, std::uint64_t>> expected = {{2, 1344}, {3, 2016}, {4, 2688}};
  EXPECT_EQ(seen, expected);
  EXPECT_NEAR(static_cast<double>(timing.now().cycles), 2000 + (2688 - 1000) * 2.0, 1.0);
}

TEST(Timing, LongWaysAreStops) {
  GeneratorConfig config = ratio(84, 1);
  config.mtc_period = 3;
  const Timing timing(config);
  EXPECT_FALSE(timing.is_stop({128 * 672 - 1, 0}));
  EXPECT_TRUE(timing.is_stop({128 * 672, 0}));
  config.stop_ticks = 10;
  EXPECT_TRUE(Timing(config).is_stop({10, 0}));
}

TEST(Timing, CyclesWaitForTheThreshold) {
  GeneratorConfig config;
  config.cyc_threshold = 4;  // 2^3
  Timing timing(config);
  EXPECT_FALSE(timing.take_cycles());
  timing.move_to({1, 7});
  EXPECT_FALSE(timing.take_cycles());
  timing.move_to({2, 8});
  EXPECT_EQ(timing.take_cycles(), 8U);
  EXPECT_FALSE(timing.take_cycles());
  timing.move_to({3, 20});
  timing.restart_cycles();
  timing.move_to({4, 30});
  EXPECT_EQ(timing.take_cycles(), 10U);
}

TEST(Timing, NeverGoesBack) {
  Timing timing(GeneratorConfig{});
  timing.move_to({100, 50});
  const Instant at = timing.not_before_now({90, 60});
  EXPECT_EQ(at.tsc, 100U);
  EXPECT_EQ(at.cycles, 60U);
}

}  // namespace
}  // namespace ptkit::trace_unit::generator
