#include <gtest/gtest.h>

#include <cstddef>

#include "common/pt_bts.h"
#include "unit/kernel/fake_unit.h"

namespace {

using ptkit::tests::FakeUnit;
using Log = std::vector<FakeUnit::Access>;

TEST(Layout, IsThatOf64BitMode) {
  EXPECT_EQ(offsetof(pt_ds_area, bts_index), 0x08U);
  EXPECT_EQ(offsetof(pt_ds_area, bts_maximum), 0x10U);
  EXPECT_EQ(offsetof(pt_ds_area, bts_threshold), 0x18U);
  EXPECT_EQ(offsetof(pt_ds_area, pebs_base), 0x20U);
  EXPECT_EQ(offsetof(pt_ds_area, pebs_counter_reset), 0x40U);
  EXPECT_EQ(sizeof(pt_bts_record), 24U);
}

TEST(Layout, EndsBehindTheLastWholeRecord) {
  pt_ds_area area{};
  ASSERT_EQ(pt_bts_layout(&area, 0xffff'8000'0000'1000, 4096, 8, 10), 0);
  EXPECT_EQ(area.bts_base, 0xffff'8000'0000'1000U);
  EXPECT_EQ(area.bts_index, area.bts_base);
  EXPECT_EQ(area.bts_maximum - area.bts_base, 170U * 24);
  EXPECT_EQ(area.bts_threshold - area.bts_base, 160U * 24);
  EXPECT_EQ(pt_bts_size(&area), 170U * 24);
  area.bts_index += 48;
  EXPECT_EQ(pt_bts_position(&area), 48U);
}

TEST(Layout, OfARingKeepsTheThresholdOutOfReach) {
  pt_ds_area area{};
  ASSERT_EQ(pt_bts_layout(&area, 0x1000, 240, 8, 0), 0);
  EXPECT_EQ(area.bts_maximum, 0x1000U + 240);
  EXPECT_GT(area.bts_threshold, area.bts_maximum);
  EXPECT_EQ((area.bts_threshold - area.bts_base) % 24, 0U);
}

TEST(Layout, Of32BitSystemsHasWordsOfFourBytes) {
  pt_ds_area area{};
  ASSERT_EQ(pt_bts_layout(&area, 0x1004, 4096, 4, 10), 0);
  EXPECT_EQ(area.bts_maximum - area.bts_base, 341U * 12);
  EXPECT_EQ(area.bts_threshold - area.bts_base, 331U * 12);
  EXPECT_EQ(pt_bts_layout(&area, 0x1002, 4096, 4, 10), PT_E_INVALID);
}

TEST(Layout, RefusesWhatDoesNotFit) {
  pt_ds_area area{};
  EXPECT_EQ(pt_bts_layout(&area, 0x1004, 4096, 8, 1), PT_E_INVALID);
  EXPECT_EQ(pt_bts_layout(&area, 0x1000, 23, 8, 0), PT_E_INVALID);
  EXPECT_EQ(pt_bts_layout(&area, 0x1000, 48, 8, 2), PT_E_INVALID);
  EXPECT_EQ(pt_bts_layout(&area, ~0ULL - 7, 4096, 8, 1), PT_E_INVALID);
}

TEST(Bits, AreThoseSinceTheFirstCore) {
  EXPECT_EQ(pt_bts_debugctl(true, true, true), 0x1c0U);
  EXPECT_EQ(pt_bts_debugctl(false, true, false), 0x2c0U);
  EXPECT_EQ(pt_bts_debugctl(true, false, false), 0x4c0U);
}

TEST(Start, NamesTheAreaBeforeItIsUsed) {
  FakeUnit unit;
  unit.at(PT_MSR_DS_AREA) = 0x111000;
  unit.at(PT_MSR_DEBUGCTL) = 0x4001;  // what others set
  const pt_ops ops = unit.ops();
  pt_bts_state state{.ds_area = 0x222000, .debugctl = pt_bts_debugctl(false, true, true), .saved_ds_area = 0};
  ASSERT_EQ(pt_bts_start(&ops, &state), 0);
  EXPECT_EQ(unit.log(), (Log{{'r', PT_MSR_DEBUGCTL, 0x4001},
                             {'r', PT_MSR_DS_AREA, 0x111000},
                             {'w', PT_MSR_DS_AREA, 0x222000},
                             {'w', PT_MSR_DEBUGCTL, 0x4001 | 0x3c0}}));
  EXPECT_EQ(pt_bts_start(&ops, &state), PT_E_BUSY);
  unit.forget();
  ASSERT_EQ(pt_bts_stop(&ops, &state), 0);
  EXPECT_EQ(unit.log(), (Log{{'r', PT_MSR_DEBUGCTL, 0x4001 | 0x3c0},
                             {'w', PT_MSR_DEBUGCTL, 0x4001},
                             {'b', 0, 0},
                             {'w', PT_MSR_DS_AREA, 0x111000}}));
}

TEST(Pause, ClearsAndResumeSetsTheBits) {
  FakeUnit unit;
  unit.at(PT_MSR_DEBUGCTL) = 0x4001 | 0x1c0;
  const pt_ops ops = unit.ops();
  const pt_bts_state state{.ds_area = 0x222000, .debugctl = 0x1c0, .saved_ds_area = 0};
  ASSERT_EQ(pt_bts_pause(&ops), 0);
  ASSERT_EQ(pt_bts_resume(&ops, &state), 0);
  EXPECT_EQ(unit.log(), (Log{{'r', PT_MSR_DEBUGCTL, 0x4001 | 0x1c0},
                             {'w', PT_MSR_DEBUGCTL, 0x4001},
                             {'b', 0, 0},
                             {'r', PT_MSR_DEBUGCTL, 0x4001},
                             {'w', PT_MSR_DEBUGCTL, 0x4001 | 0x1c0}}));
  unit.broken = {PT_MSR_DEBUGCTL};
  EXPECT_EQ(pt_bts_pause(&ops), PT_E_FAULT);
  EXPECT_EQ(pt_bts_resume(&ops, &state), PT_E_FAULT);
}

TEST(Start, PutsTheOldAreaBackAfterAFault) {
  FakeUnit unit;
  unit.at(PT_MSR_DS_AREA) = 0x111000;
  unit.broken = {PT_MSR_DEBUGCTL};
  const pt_ops ops = unit.ops();
  pt_bts_state state{.ds_area = 0x222000, .debugctl = 0x1c0, .saved_ds_area = 0};
  EXPECT_EQ(pt_bts_start(&ops, &state), PT_E_FAULT);
  EXPECT_EQ(unit.at(PT_MSR_DS_AREA), 0x111000U);
}

}  // namespace
