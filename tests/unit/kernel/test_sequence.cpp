#include <gtest/gtest.h>

#include <map>

#include "common/pt_sequence.h"
#include "unit/kernel/fake_unit.h"

namespace {

using ptkit::tests::FakeUnit;
using Log = std::vector<FakeUnit::Access>;

constexpr std::uint64_t kEnabled = 1;

std::uint64_t bit(unsigned position) { return std::uint64_t{1} << position; }

pt_state plain_state() {
  pt_state state{};
  state.ctl = bit(PT_CTL_USER) | bit(PT_CTL_BRANCH_EN) | bit(PT_CTL_TOPA);
  state.output_base = 0x10000;
  state.output_mask_ptrs = 0x7f;
  return state;
}

pt_state filtered_state() {
  pt_state state = plain_state();
  state.ctl |= bit(PT_CTL_CR3_FILTER) | std::uint64_t{PT_ADDR_CFG_FILTER} << PT_CTL_ADDR0_CFG_SHIFT |
               std::uint64_t{PT_ADDR_CFG_TRACE_STOP} << (PT_CTL_ADDR0_CFG_SHIFT + 8);
  state.cr3_match = 0x1234000;
  state.addr[0] = 0x1000;
  state.addr[1] = 0x1fff;
  state.addr[2] = 0xdead;  // of a range that is not used
  state.addr[4] = 0x3000;
  state.addr[5] = 0x3fff;
  return state;
}

TEST(Start, WritesEverythingThenTraceEn) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  const pt_state state = filtered_state();
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  EXPECT_EQ(unit.log(), (Log{{'r', PT_MSR_RTIT_CTL, 0},
                             {'w', PT_MSR_RTIT_STATUS, 0},
                             {'w', PT_MSR_RTIT_OUTPUT_BASE, 0x10000},
                             {'w', PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f},
                             {'w', PT_MSR_RTIT_CR3_MATCH, 0x1234000},
                             {'w', PT_MSR_RTIT_ADDR0_A, 0x1000},
                             {'w', PT_MSR_RTIT_ADDR0_A + 1, 0x1fff},
                             {'w', PT_MSR_RTIT_ADDR0_A + 4, 0x3000},
                             {'w', PT_MSR_RTIT_ADDR0_A + 5, 0x3fff},
                             {'w', PT_MSR_RTIT_CTL, state.ctl | kEnabled}}));
}

TEST(Start, LeavesRegistersAloneThatAreNotUsed) {
  FakeUnit unit;
  unit.broken = {PT_MSR_RTIT_CR3_MATCH, PT_MSR_RTIT_ADDR0_A, PT_MSR_RTIT_OUTPUT_BASE,
                 PT_MSR_RTIT_OUTPUT_MASK_PTRS};
  const pt_ops ops = unit.ops();
  pt_state state = plain_state();
  EXPECT_EQ(pt_seq_start(&ops, &state), PT_E_FAULT);  // the output is used
  state.ctl = bit(PT_CTL_USER) | bit(PT_CTL_FABRIC_EN);
  EXPECT_EQ(pt_seq_start(&ops, &state), 0);
  EXPECT_EQ(pt_seq_stop(&ops, &state), 0);
}

TEST(Start, IsRefusedWhileSomebodyTraces) {
  FakeUnit unit;
  unit.at(PT_MSR_RTIT_CTL) = kEnabled | bit(PT_CTL_OS);
  const pt_ops ops = unit.ops();
  const pt_state state = plain_state();
  EXPECT_EQ(pt_seq_start(&ops, &state), PT_E_BUSY);
  EXPECT_EQ(unit.log(), (Log{{'r', PT_MSR_RTIT_CTL, kEnabled | bit(PT_CTL_OS)}}));
}

TEST(Start, TracesNothingAfterAnyFault) {
  const pt_state state = filtered_state();
  constexpr std::uint32_t kWritten[] = {
      PT_MSR_RTIT_STATUS,    PT_MSR_RTIT_OUTPUT_BASE, PT_MSR_RTIT_OUTPUT_MASK_PTRS,
      PT_MSR_RTIT_CR3_MATCH, PT_MSR_RTIT_ADDR0_A + 1, PT_MSR_RTIT_ADDR0_A + 4,
      PT_MSR_RTIT_CTL};
  for (const std::uint32_t msr : kWritten) {
    FakeUnit unit;
    unit.broken = {msr};
    const pt_ops ops = unit.ops();
    EXPECT_EQ(pt_seq_start(&ops, &state), PT_E_FAULT) << std::hex << msr;
    EXPECT_FALSE(unit.tracing());
  }
}

TEST(Start, WritesOnlyStatusBitsThatSoftwareOwns) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  pt_state state = plain_state();
  state.status = ~std::uint64_t{0};
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  EXPECT_EQ(unit.at(PT_MSR_RTIT_STATUS), 0x0001'ffff'0000'00f0U);
  EXPECT_EQ(pt_status_restarted(~std::uint64_t{0}), 0x0001'ffff'0000'00c0U);
}

TEST(Stop, ClearsTraceEnFirstAndReadsBack) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  pt_state state = plain_state();
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  unit.at(PT_MSR_RTIT_STATUS) = 0x1234ULL << 32 | 7;
  unit.at(PT_MSR_RTIT_OUTPUT_BASE) = 0x20000;
  unit.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS) = 0x400000ffULL << 8;
  unit.forget();
  ASSERT_EQ(pt_seq_stop(&ops, &state), 0);
  EXPECT_EQ(unit.log(), (Log{{'w', PT_MSR_RTIT_CTL, plain_state().ctl},
                             {'b', 0, 0},
                             {'r', PT_MSR_RTIT_STATUS, 0x1234ULL << 32 | 7},
                             {'r', PT_MSR_RTIT_OUTPUT_BASE, 0x20000},
                             {'r', PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x400000ffULL << 8},
                             {'w', PT_MSR_RTIT_CTL, 0}}));
  EXPECT_EQ(state.status, 0x1234ULL << 32 | 7);
  EXPECT_EQ(state.output_base, 0x20000U);
  EXPECT_EQ(state.output_mask_ptrs, 0x400000ffULL << 8);
}

TEST(Stop, PutsBackWhatStartFound) {
  for (const pt_state& used : {plain_state(), filtered_state()}) {
    FakeUnit unit;
    const pt_ops ops = unit.ops();
    std::map<std::uint32_t, std::uint64_t> before;
    for (std::uint32_t msr = PT_MSR_RTIT_CTL; msr <= PT_MSR_RTIT_CR3_MATCH; ++msr) before[msr] = msr << 12U;
    for (std::uint32_t i = 0; i < PT_ADDR_REGISTERS; ++i) before[PT_MSR_RTIT_ADDR0_A + i] = 0x5000 + i;
    before[PT_MSR_RTIT_OUTPUT_BASE] = 0x77000;
    before[PT_MSR_RTIT_OUTPUT_MASK_PTRS] = 0x88ULL << 32 | 0x7f;
    before[PT_MSR_RTIT_STATUS] = 0x5ULL << 32 | bit(PT_STATUS_STOPPED);
    for (const auto& [msr, value] : before) unit.at(msr) = value;
    pt_state state = used;
    pt_state found{};
    ASSERT_EQ(pt_seq_keep(&ops, &state, &found), 0);
    ASSERT_EQ(pt_seq_start(&ops, &state), 0);
    EXPECT_NE(unit.at(PT_MSR_RTIT_OUTPUT_BASE), 0x77000U);
    ASSERT_EQ(pt_seq_stop(&ops, &state), 0);
    ASSERT_EQ(pt_seq_put_back(&ops, &state, &found), 0);
    for (const auto& [msr, value] : before) EXPECT_EQ(unit.at(msr), value) << std::hex << msr;
  }
}

TEST(Pause, KeepsEverythingButTraceEn) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  const pt_state state = filtered_state();
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  unit.forget();
  ASSERT_EQ(pt_seq_pause(&ops, &state), 0);
  EXPECT_FALSE(unit.tracing());
  ASSERT_EQ(pt_seq_resume(&ops, &state), 0);
  EXPECT_TRUE(unit.tracing());
  EXPECT_EQ(
      unit.log(),
      (Log{{'w', PT_MSR_RTIT_CTL, state.ctl}, {'b', 0, 0}, {'w', PT_MSR_RTIT_CTL, state.ctl | kEnabled}}));
}

TEST(Switch, SavesOneContextAndLoadsTheOther) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  pt_state first = plain_state();
  pt_state second = filtered_state();
  second.output_base = 0x90000;
  ASSERT_EQ(pt_seq_switch(&ops, nullptr, &first), 0);
  unit.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS) = 0x80ULL << 32 | 0x7f;
  ASSERT_EQ(pt_seq_switch(&ops, &first, &second), 0);
  EXPECT_TRUE(unit.tracing());
  EXPECT_EQ(unit.at(PT_MSR_RTIT_OUTPUT_BASE), 0x90000U);
  EXPECT_EQ(first.output_mask_ptrs, 0x80ULL << 32 | 0x7f);
  ASSERT_EQ(pt_seq_switch(&ops, &second, &first), 0);
  EXPECT_EQ(unit.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS), 0x80ULL << 32 | 0x7f);
  ASSERT_EQ(pt_seq_switch(&ops, &first, nullptr), 0);
  EXPECT_EQ(unit.at(PT_MSR_RTIT_CTL), 0U);
  EXPECT_EQ(pt_seq_switch(&ops, nullptr, nullptr), 0);
}

TEST(Interrupt, OfSomethingElseChangesNothing) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  pt_state state = plain_state();
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  unit.at(PT_MSR_PERF_GLOBAL_STATUS) = 3;
  unit.forget();
  bool pending = true;
  EXPECT_EQ(pt_seq_interrupt(&ops, &state, &pending), 0);
  EXPECT_FALSE(pending);
  EXPECT_EQ(unit.log(), (Log{{'r', PT_MSR_PERF_GLOBAL_STATUS, 3}}));
}

TEST(Interrupt, IsServedAfterAnotherHandlerAcknowledgedIt) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  pt_state state = plain_state();
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  unit.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS) = 0xff;
  ASSERT_EQ(pt_seq_serve(&ops, &state), 0);
  EXPECT_FALSE(unit.tracing());
  EXPECT_EQ(state.output_mask_ptrs, 0xffU);
}

TEST(Interrupt, OfToPAPausesAndIsAcknowledged) {
  FakeUnit unit;
  const pt_ops ops = unit.ops();
  pt_state state = plain_state();
  ASSERT_EQ(pt_seq_start(&ops, &state), 0);
  unit.at(PT_MSR_PERF_GLOBAL_STATUS) = bit(PT_PERF_GLOBAL_TRACE_TOPA_PMI) | 1;
  unit.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS) = 0xff;
  bool pending = false;
  ASSERT_EQ(pt_seq_interrupt(&ops, &state, &pending), 0);
  EXPECT_TRUE(pending);
  EXPECT_FALSE(unit.tracing());
  EXPECT_EQ(state.output_mask_ptrs, 0xffU);
  EXPECT_EQ(unit.at(PT_MSR_PERF_GLOBAL_STATUS), 1U);
  EXPECT_EQ(pt_seq_start(&ops, &state), 0);
  EXPECT_TRUE(unit.tracing());
}

}  // namespace
