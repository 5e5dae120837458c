// Every value of the fields of CTL that set a frequency, seen in the packets.
#include <gtest/gtest.h>

#include "unit/support/units/machine.h"

namespace ptkit::ptmodel {
namespace {

using namespace test;

struct Traces {
  // Branches that are `ticks` apart, from time 0 on.
  Traces(std::uint64_t ctl, unsigned branches, std::uint64_t ticks) {
    GeneratorConfig config = Machine::small_buffer();
    config.tsc_ctc_numerator = 2;
    config.stop_ticks = std::uint64_t{1} << 40;
    Machine machine({}, config);
    ProcessorState state;
    state.cpl = 3;
    machine.unit.set_state(state);
    machine.unit.set_time(0, 0);
    machine.start(ctl | kUser | kBranches, 0x1000);
    for (unsigned i = 1; i <= branches; ++i) {
      machine.unit.set_time(i * ticks, i * ticks);
      machine.unit.jump_indirect((i & 1) != 0 ? 0x1000'0000'0000 : 0x2000'0000'0000);
    }
    machine.end(0x1000);
    packets = decode(machine.platform.stream);
  }
  std::vector<Packet> of(PacketKind kind) const {
    std::vector<Packet> out;
    std::copy_if(packets.begin(), packets.end(), std::back_inserter(out),
                 [kind](const Packet& packet) { return packet.kind == kind; });
    return out;
  }
  std::vector<Packet> packets;
};

class Encoding : public testing::TestWithParam<unsigned> {};

TEST_P(Encoding, MtcFreq) {
  const Traces run(bit(PT_CTL_MTC_EN) | std::uint64_t{GetParam()} << PT_CTL_MTC_FREQ_SHIFT, 1, 400'000);
  const auto mtcs = run.of(PacketKind::MTC);
  ASSERT_EQ(mtcs.size(), 200'000U >> GetParam());  // two ticks to one of the crystal clock
  for (std::size_t i = 0; i < mtcs.size(); ++i) ASSERT_EQ(mtcs[i].payload, (i + 1) & 0xff);
}

TEST_P(Encoding, CycThresh) {
  const Traces run(bit(PT_CTL_CYC_EN) | std::uint64_t{GetParam()} << PT_CTL_CYC_THRESH_SHIFT, 40'000, 3);
  const std::uint64_t threshold = GetParam() == 0 ? 1 : std::uint64_t{1} << (GetParam() - 1);
  const auto cycs = run.of(PacketKind::CYC);
  const std::uint64_t step = (threshold + 2) / 3 * 3;  // the first multiple of 3 that reaches it
  ASSERT_EQ(cycs.size(), 120'000 / step);
  for (const Packet& packet : cycs) ASSERT_EQ(packet.payload, step);
}

TEST_P(Encoding, PsbFreq) {
  const std::uint64_t period = std::uint64_t{2048} << GetParam();
  const unsigned branches = GetParam() < 6 ? static_cast<unsigned>(period) : 40'000;  // of seven bytes each
  const Traces run(std::uint64_t{GetParam()} << PT_CTL_PSB_FREQ_SHIFT, branches, 1);
  const auto psbs = run.of(PacketKind::PSB);
  ASSERT_EQ(psbs.size(), 1 + run.packets.back().offset / (period + 5)) << period;
  for (std::size_t i = 1; i < psbs.size(); ++i) {
    EXPECT_GE(psbs[i].offset - psbs[i - 1].offset, period);
    EXPECT_LT(psbs[i].offset - psbs[i - 1].offset, period + 7);
  }
}

INSTANTIATE_TEST_SUITE_P(Ctl, Encoding, testing::Range(0U, 16U));

}  // namespace
}  // namespace ptkit::ptmodel
