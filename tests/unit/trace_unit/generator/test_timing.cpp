// Timing packets: when they come and whether they say the truth.
#include <gtest/gtest.h>

#include <random>

#include "trace_unit/generator/timing.h"
#include "unit/support/traces/walk.h"
#include "unit/support/units/traced_unit.h"

namespace ptkit::trace_unit::generator {
namespace {

using test::after_start;
using test::Packet;
using test::PacketKind;
using test::Traced;

GeneratorConfig config_of(bool mtc, bool cyc) {
  GeneratorConfig config;
  config.mtc = mtc;
  config.cyc = cyc;
  config.tsc_ctc_numerator = 168;
  config.tsc_ctc_denominator = 2;
  config.psb_bytes = 1 << 24;
  return config;
}

std::uint64_t count(const std::vector<Packet>& packets, PacketKind kind) {
  std::uint64_t n = 0;
  for (const Packet& packet : packets) n += packet.kind == kind ? 1 : 0;
  return n;
}

TEST(Mtc, OneForEveryPeriodWithItsCounter) {
  GeneratorConfig config = config_of(true, false);
  config.mtc_period = 3;  // 8 * 84 ticks
  Traced traced(config);
  traced.unit.set_time(10000, 0);
  traced.unit.enable(0x1000);
  std::mt19937 random(1);
  std::uint64_t tsc = 10000;
  for (int i = 0; i < 3000; ++i) {
    tsc += random() % 3000;
    traced.unit.set_time(tsc, 0);
    if (i % 5 == 0) traced.unit.conditional(true, 0x1000);
  }
  std::uint64_t period = 10000 / 672;
  for (const Packet& packet : traced.packets()) {
    if (packet.kind != PacketKind::MTC) continue;
    EXPECT_EQ(packet.payload, ++period & 0xff);
  }
  EXPECT_EQ(period, tsc / 672);
}

TEST(Mtc, EveryFrequency) {
  for (std::uint8_t period = 0; period <= 15; ++period) {
    GeneratorConfig config = config_of(true, false);
    config.mtc_period = period;
    Traced traced(config);
    traced.unit.enable(0x1000);
    const std::uint64_t ticks = std::uint64_t{84} << period;
    for (std::uint64_t i = 1; i <= 40; ++i) traced.unit.set_time(i * 10 * ticks, 0);
    EXPECT_EQ(count(traced.packets(), PacketKind::MTC), 400U) << int(period);
  }
}

TEST(Mtc, GoesOnOutsideOfTheFilterButNotWithoutTraceEn) {
  Traced traced(config_of(true, false));
  traced.unit.enable(0x1000);
  traced.unit.far_transfer_out();
  traced.unit.set_time(2 * 672, 0);
  traced.unit.disable();
  traced.unit.set_time(10 * 672, 0);
  traced.unit.enable(0x1000);
  EXPECT_EQ(
      after_start(traced.packets()),
      "MODE.Exec 40,1\nTIP.PGE 1000\nTIP.PGD -\nMTC 1\nMTC 2\nTSC 1a40\nTMA 50\nCBR 1e\nTIP.PGE 1000\n");
}

TEST(Mtc, DoesNotWriteOutPendingBits) {
  Traced traced(config_of(true, false));
  traced.unit.enable(0x1000);
  traced.unit.conditional(true, 0x1010);
  traced.unit.set_time(672, 0);
  traced.unit.conditional(false, 0x1010);
  EXPECT_EQ(after_start(traced.packets()), "MODE.Exec 40,1\nTIP.PGE 1000\nMTC 1\nTNT.8 !.\n");
}

TEST(Stop, IsToldByTscInsteadOfMtcs) {
  Traced traced(config_of(true, false));
  traced.unit.enable(0x1000);
  traced.unit.set_time(128 * 672, 0);
  traced.unit.set_time(129 * 672, 0);
  EXPECT_EQ(after_start(traced.packets()),
            "MODE.Exec 40,1\nTIP.PGE 1000\nTSC 15000\nTMA 400\nCBR 1e\nMTC 81\n");
}

TEST(Stop, AlsoWithoutMtc) {
  Traced traced(config_of(false, false));
  traced.unit.enable(0x1000);
  traced.unit.set_time(128 * 672 - 1, 0);
  traced.unit.set_time(128 * 672 * 2, 0);
  EXPECT_EQ(after_start(traced.packets()), "MODE.Exec 40,1\nTIP.PGE 1000\nTSC 2a000\nCBR 1e\n");
}

TEST(Cbr, OnlyWhenItChanges) {
  Traced traced(config_of(false, false));
  traced.unit.set_core_bus_ratio(20);
  traced.unit.enable(0x1000);
  traced.unit.set_core_bus_ratio(20);
  traced.unit.set_core_bus_ratio(35);
  traced.unit.set_core_bus_ratio(35);
  EXPECT_EQ(after_start(traced.packets()), "MODE.Exec 40,1\nTIP.PGE 1000\nCBR 23\n");
}

TEST(Cyc, ComesBeforeWhatItTimes) {
  Traced traced(config_of(false, true));
  traced.unit.set_time(1000, 500);
  traced.unit.enable(0x1000);
  traced.unit.set_time(1010, 507);
  traced.unit.conditional(true, 0x1010);  // no packet yet, no CYC
  traced.unit.set_time(1020, 517);
  traced.unit.jump_indirect(0x2000);
  traced.unit.async(0x2000, 0x3000);  // in the same cycle
  EXPECT_EQ(after_start(traced.packets()),
            "MODE.Exec 40,1\nTIP.PGE 1000\nCYC 11\nTNT.8 !\nTIP 2000\nFUP 2000\nTIP 3000\n");
}

TEST(Cyc, TellsTheTimeOfEveryMtc) {
  Traced traced(config_of(true, true));
  traced.unit.enable(0x1000);
  traced.unit.set_time(672 * 2, 672);  // at half the speed of TSC
  EXPECT_EQ(after_start(traced.packets()), "MODE.Exec 40,1\nTIP.PGE 1000\nCYC 150\nMTC 1\nCYC 150\nMTC 2\n");
}

// Up to any packet, the CYC packets add up to the cycles that have passed, save what the threshold holds
// back.
TEST(Cyc, SumsAreTheCycles) {
  for (const unsigned threshold : {0U, 1U, 5U, 9U}) {
    GeneratorConfig config = config_of(true, true);
    config.cyc_threshold = static_cast<std::uint8_t>(threshold);
    Traced traced(config);
    traced.unit.set_time(5000, 777);
    traced.unit.enable(0x1000);
    std::mt19937 random(2);
    std::uint64_t tsc = 5000;
    std::uint64_t cycles = 777;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> truth;  // target of a TIP, cycles then
    for (std::uint64_t i = 0; i < 3000; ++i) {
      cycles += random() % 60;
      tsc += random() % 60;
      traced.unit.set_time(tsc, cycles);
      if (random() % 3 != 0) {
        traced.unit.conditional(true, 0x1000);
        continue;
      }
      traced.unit.jump_indirect(0x100000 + i);
      truth.emplace_back(0x100000 + i, cycles);
    }
    const std::uint64_t held = threshold == 0 ? 1 : std::uint64_t{1} << (threshold - 1);
    std::uint64_t sum = 777;
    std::size_t next = 0;
    for (const Packet& packet : traced.packets()) {
      if (packet.kind == PacketKind::CYC) {
        EXPECT_GE(packet.payload, held);
        sum += packet.payload;
      }
      if (packet.kind != PacketKind::TIP) continue;
      ASSERT_EQ(packet.ip, truth[next].first);
      EXPECT_LE(sum, truth[next].second);
      EXPECT_LT(truth[next].second - sum, held);
      ++next;
    }
    EXPECT_EQ(next, truth.size());
  }
}

// TSC, TMA and MTC packets fit together: from TSC - FC on, every MTC is a whole number of crystal ticks away,
// and nothing in the stream stands at a time that its neighbours deny.
TEST(Clock, PacketsAgreeWithTheTruth) {
  GeneratorConfig config = config_of(true, true);
  config.psb_bytes = 512;
  config.tsc_ctc_numerator = 250;
  config.tsc_ctc_denominator = 3;
  config.tsc_at_ctc_zero = 123456;
  const CrystalClock crystal(config);
  const walk::Walk walk = walk::random_walk({.seed = 4});
  std::uint64_t known = 0;  // a lower bound of the time, from whole packets
  std::uint64_t tsc = 0;
  std::uint64_t packets = 0;
  for (const Packet& packet : test::decode(walk::trace_of(walk, config))) {
    switch (packet.kind) {
      case PacketKind::TSC:
        EXPECT_GE(packet.payload, known);
        known = tsc = packet.payload;
        break;
      case PacketKind::TMA:
        EXPECT_EQ(packet.payload, crystal.ctc_at(tsc) & 0xffff);
        EXPECT_EQ(packet.payload2, tsc - crystal.tsc_at(crystal.ctc_at(tsc)));
        ++packets;
        break;
      case PacketKind::MTC: {
        const std::uint64_t next = (crystal.ctc_at(known) >> config.mtc_period) + 1;
        EXPECT_EQ(packet.payload, next & 0xff);
        known = crystal.tsc_at(next << config.mtc_period);
        ++packets;
        break;
      }
      default:
        break;
    }
  }
  EXPECT_GT(packets, 100U);
  EXPECT_LE(known, walk.steps.back().tsc);
  EXPECT_LT(walk.steps.back().tsc - known, 8U * 84);
}

}  // namespace
}  // namespace ptkit::trace_unit::generator
