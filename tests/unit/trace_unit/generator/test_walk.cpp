// Random programs: what the packets say is exactly what happened, whatever the unit's configuration.
#include <gtest/gtest.h>

#include "interpreter.h"
#include "unit/support/traces/walk.h"
#include "unit/support/units/traced_unit.h"

namespace ptkit::walk {
namespace {

using packet::Packet;
using packet::PacketKind;
using trace_unit::generator::GeneratorConfig;
using trace_unit::generator::TipRet;
using trace_unit::generator::test::decode;

struct Variant {
  const char* name;
  GeneratorConfig config;
  std::uint32_t overflow_per_mille = 0;
  std::uint32_t odd_return_per_mille = 20;
};

GeneratorConfig small_psb(GeneratorConfig config = {}) {
  config.psb_bytes = 256;
  return config;
}

std::vector<Variant> variants() {
  GeneratorConfig plain;
  plain.ptw = true;
  GeneratorConfig uncompressed = plain;
  uncompressed.return_compression = false;
  GeneratorConfig long_tnt = plain;
  long_tnt.use_tnt_64 = true;
  GeneratorConfig deferred = plain;
  deferred.deferred_tips = true;
  deferred.fup_on_ptw = true;
  GeneratorConfig everything = long_tnt;
  everything.deferred_tips = true;
  everything.mtc = everything.cyc = everything.fup_on_ptw = true;
  everything.tsc_ctc_numerator = 168;
  everything.tsc_ctc_denominator = 2;
  everything.cyc_threshold = 4;
  everything.chunk_bytes = 0;
  GeneratorConfig no_pop = plain;
  no_pop.tip_ret = TipRet::KEEPS;
  GeneratorConfig clears = plain;
  clears.tip_ret = TipRet::CLEARS;
  return {{"plain", plain},
          {"uncompressed", uncompressed},
          {"long_tnt", long_tnt},
          {"deferred", deferred},
          {"everything", everything, 3},
          {"often_psb", small_psb(everything), 3},
          {"overflows", small_psb(plain), 10},
          {"no_pop", no_pop, 0, 50},
          {"clears", clears, 0, 50},
          {"clears_overflows", small_psb(clears), 10, 50}};
}

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class EveryVariant : public testing::TestWithParam<Variant> {};

bool same(const Step& a, const Step& b) {
  return a.kind == b.kind && a.from == b.from && a.to == b.to && a.taken == b.taken && a.value == b.value;
}

bool needs_no_packet(const Step& step) { return step.kind == StepKind::JUMP || step.kind == StepKind::CALL; }

// Direct branches right before a loss have no known position: the interpreter stops where the packets stop.
std::vector<Step> decidable(const std::vector<Step>& steps) {
  std::vector<Step> out;
  for (const Step& step : steps) {
    if (step.kind == StepKind::OVERFLOW) {
      while (!out.empty() && needs_no_packet(out.back())) out.pop_back();
    }
    out.push_back(step);
  }
  while (!out.empty() && needs_no_packet(out.back())) out.pop_back();
  return out;
}

void expect_same(const std::vector<Step>& truth, const std::vector<Step>& seen) {
  const std::size_t common = std::min(truth.size(), seen.size());
  for (std::size_t i = 0; i < common; ++i) {
    ASSERT_TRUE(same(truth[i], seen[i])) << "step " << i << ": kind " << int(truth[i].kind) << " " << std::hex
                                         << truth[i].from << " -> " << truth[i].to << ", packets say kind "
                                         << int(seen[i].kind) << " " << seen[i].from << " -> " << seen[i].to;
  }
  EXPECT_EQ(truth.size(), seen.size());
}

TEST_P(EveryVariant, PacketsTellExactlyWhatHappened) {
  const Variant& variant = GetParam();
  std::uint64_t compressed = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    WalkOptions options;
    options.seed = seed;
    options.overflow_per_mille = variant.overflow_per_mille;
    options.odd_return_per_mille = variant.odd_return_per_mille;
    const Walk walk = random_walk(options);
    const std::vector<Packet> packets = decode(trace_of(walk, variant.config));
    for (const bool pops : {true, false}) {
      if (variant.config.tip_ret == (pops ? TipRet::KEEPS : TipRet::POPS)) continue;
      SCOPED_TRACE(pops ? "as the manual pops" : "as libipt pops");
      Interpreter interpreter(walk.program, packets, pops);
      std::vector<Step> seen = interpreter.run();
      ASSERT_EQ(interpreter.error, "");
      // The end of the trace is an interrupt out of it.
      ASSERT_FALSE(seen.empty());
      EXPECT_EQ(seen.back().kind, StepKind::ASYNC_OUT);
      EXPECT_EQ(seen.back().from, walk.end_ip);
      seen.pop_back();
      expect_same(decidable(walk.steps), decidable(seen));
      compressed += interpreter.compressed_returns;
    }
  }
  if (variant.config.return_compression) {
    EXPECT_GT(compressed, 500U);
  } else {
    EXPECT_EQ(compressed, 0U);
  }
}

TEST_P(EveryVariant, PsbPeriodIsHonoured) {
  WalkOptions options;
  options.steps = 20000;
  const GeneratorConfig& config = GetParam().config;
  std::vector<std::uint64_t> psbs;
  const Walk walk = random_walk(options);
  for (const Packet& packet : decode(trace_of(walk, config))) {
    if (packet.kind == PacketKind::PSB) psbs.push_back(packet.offset);
  }
  ASSERT_GE(psbs.size(), 2U);
  for (std::size_t i = 1; i < psbs.size(); ++i) {
    const std::uint64_t distance = psbs[i] - psbs[i - 1];
    EXPECT_GE(distance, config.psb_bytes);
    // What one step can add: a run of MTCs, the pending branches and its own packets.
    EXPECT_LE(distance, config.psb_bytes + 600U);
  }
}

TEST_P(EveryVariant, EveryPsbStartsIpCompressionAndReturnsAnew) {
  const Walk walk = random_walk({.seed = 3, .steps = 20000});
  bool full_needed = false;
  std::uint64_t psbs = 0;
  for (const Packet& packet : decode(trace_of(walk, GetParam().config))) {
    if (packet.kind == PacketKind::PSB) {
      full_needed = true;
      ++psbs;
    }
    const bool ip_packet = packet.kind == PacketKind::FUP || packet.kind == PacketKind::TIP ||
                           packet.kind == PacketKind::TIP_PGE || packet.kind == PacketKind::TIP_PGD;
    if (!ip_packet || packet.payload2 == 0) continue;
    EXPECT_NE(packet.flags & Packet::IP_KNOWN, 0) << packet.offset;
    EXPECT_TRUE(!full_needed || packet.payload2 == 3 || packet.payload2 == 6) << packet.offset;
    full_needed = false;
  }
  EXPECT_GT(psbs, 1U);
}

INSTANTIATE_TEST_SUITE_P(Walk, EveryVariant, testing::ValuesIn(variants()),
                         [](const auto& variant) { return std::string(variant.param.name); });

TEST(Walk, CompressionMakesReturnsCheaper) {
  const Walk walk = random_walk({.seed = 5, .odd_return_per_mille = 0});
  GeneratorConfig with;
  GeneratorConfig without;
  without.return_compression = false;
  EXPECT_LT(trace_of(walk, with).size(), trace_of(walk, without).size());
}

// Calls in any order, however senseless: every packet can be decoded, and none is refused by the encoder.
TEST(Walk, RandomCallsNeverMakeBytesThatCannotBeDecoded) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 40; ++round) {
    GeneratorConfig config;
    const std::uint64_t bits = random();
    config.mtc = (bits & 1) != 0;
    config.cyc = (bits & 2) != 0;
    config.ptw = (bits & 4) != 0;
    config.fup_on_ptw = (bits & 8) != 0;
    config.power = (bits & 16) != 0;
    config.event_trace = (bits & 32) != 0;
    config.user_only = (bits & 64) != 0;
    config.use_tnt_64 = (bits & 128) != 0;
    config.deferred_tips = (bits & 256) != 0;
    config.tnt = (bits & 0x600) != 0;
    config.psb_bytes = 128;
    config.mtc_period = static_cast<std::uint8_t>(bits >> 12 & 15);
    config.cyc_threshold = static_cast<std::uint8_t>(bits >> 16 & 15);
    trace_unit::generator::test::Traced traced(config);
    trace_unit::generator::PacketGenerator& unit = traced.unit;
    std::uint64_t tsc = 0;
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t r = random();
      const std::uint64_t ip = random() >> (random() % 64);
      const std::uint64_t to = random() >> (random() % 64);
      const auto small = static_cast<std::uint8_t>(r >> 32);
      const trace_unit::generator::PebsItem items[] = {{small, ip}, {7, to}};
      const trace_unit::generator::PebsBlock blocks[] = {{small, (r & 256) != 0, items},
                                                         {4, false, {items, 1}}};
      switch (r % 38) {
        case 0:
          unit.start();
          break;
        case 1:
        case 2:
        case 3:
          unit.enable(ip);
          break;
        case 4:
          unit.disable();
          break;
        case 5:
          unit.disable(ip);
          break;
        case 6:
          unit.conditional((r & 64) != 0);
          break;
        case 7:
        case 8:
        case 9:
          unit.conditional((r & 64) != 0, ip);
          break;
        case 10:
          unit.call(ip, to);
          break;
        case 11:
          unit.call_indirect(ip, to);
          break;
        case 12:
          unit.jump_indirect(to);
          break;
        case 13:
        case 14:
          unit.ret(to);
          break;
        case 15:
          unit.far_transfer(to);
          break;
        case 16:
          unit.far_transfer_out();
          break;
        case 17:
          unit.async(ip, to);
          break;
        case 18:
          unit.async_out(ip);
          break;
        case 19:
          unit.tsx((r & 64) != 0, (r & 128) != 0, ip);
          break;
        case 20:
          unit.at(ip);
          break;
        case 21:
          unit.ptwrite(to, (r & 64) != 0, ip);
          break;
        case 22:
          unit.overflow(ip);
          break;
        case 23:
          unit.overflow();
          break;
        case 24:
          unit.trace_stop();
          break;
        case 25:
          unit.mwait(small, small);
          break;
        case 26:
          unit.pwre(small, small, (r & 64) != 0);
          break;
        case 27:
          unit.exstop(ip);
          break;
        case 28:
          unit.exstop();
          break;
        case 29:
          unit.pwrx(small, small, small);
          break;
        case 30:
          unit.event_data(static_cast<packet::EvdType>(r % 3), to);
          break;
        case 31:
          unit.event(packet::CfeType::INTR, small);
          break;
        case 32:
          unit.event_at(packet::CfeType::SWINTR, small, ip);
          break;
        case 33:
          unit.pebs(blocks, ip);
          break;
        case 34:
          unit.trigger(small, static_cast<std::uint16_t>(r), (r & 64) != 0, (r & 128) != 0, ip);
          break;
        case 35:
          unit.set_mode((r & 64) != 0, (r & 128) != 0, (r & 256) != 0);
          break;
        case 36:
          unit.set_cr3(to);
          unit.transfer_loads_cr3(ip);
          unit.transfer_loads_vmcs(to);
          unit.set_vmcs(ip);
          unit.set_non_root((r & 64) != 0);
          unit.set_interrupt_flag((r & 128) != 0, ip);
          break;
        default:
          unit.set_core_bus_ratio(small);
          break;
      }
      tsc += random() % (r % 200 == 0 ? 1000000 : 500);
      unit.set_time(tsc, tsc / 2);
    }
    SCOPED_TRACE(round);
    EXPECT_GT(traced.packets().size(), 100U);
  }
}

}  // namespace
}  // namespace ptkit::walk
