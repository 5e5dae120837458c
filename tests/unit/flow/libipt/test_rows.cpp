#include <gtest/gtest.h>

#include "flow/libipt/rows.h"
#include "unit/flow/libipt/support.h"

namespace ptkit::flow::libipt {
namespace {

using code::insn::InsnClass;
using code::insn::InsnKind;
using flow::BranchKind;
using flow::EventKind;

ExecutedInsn step(std::uint64_t ip, InsnClass cls, std::uint8_t size = 2) {
  ExecutedInsn result;
  result.ip = ip;
  result.insn = {size, cls, InsnKind::OTHER};
  return result;
}

flow::Event event(EventKind kind, std::uint64_t ip, std::uint64_t payload = 0, bool ip_known = true) {
  flow::Event result;
  result.span = {5, 6};
  result.kind = kind;
  result.ip = ip;
  result.payload = payload;
  if (ip_known) result.flags = flow::EV_IP_KNOWN;
  return result;
}

TEST(RowBuilder, JoinsNeighboursAndEndsAtBranches) {
  test::RecordingSink sink;
  RowBuilder rows(sink);
  rows.on_instruction(step(0x10, InsnClass::OTHER), {1, 2});
  rows.on_instruction(step(0x12, InsnClass::JUMP), {1, 2});
  rows.on_instruction(step(0x14, InsnClass::OTHER), {2, 3});
  rows.on_instruction(step(0x20, InsnClass::OTHER), {2, 3});
  rows.drop();
  EXPECT_EQ(sink.order, "bBbb");
  EXPECT_EQ(sink.blocks[0].size, 4U);
  EXPECT_EQ(sink.branches[0].to_ip, 0x14U);
  EXPECT_EQ(sink.branches[0].span.offset, 2U);
}

TEST(RowBuilder, SplitsAtTransactionsAndModes) {
  test::RecordingSink sink;
  RowBuilder rows(sink);
  ExecutedInsn in_transaction = step(0x12, InsnClass::OTHER);
  in_transaction.flags = flow::IN_TX;
  ExecutedInsn narrow = step(0x14, InsnClass::OTHER);
  narrow.mode = code::insn::ExecMode::BITS32;
  rows.on_instruction(step(0x10, InsnClass::OTHER), {});
  rows.on_instruction(in_transaction, {});
  rows.on_instruction(narrow, {});
  rows.drop();
  ASSERT_EQ(sink.blocks.size(), 3U);
  EXPECT_EQ(sink.blocks[1].flags, flow::IN_TX);
}

TEST(RowBuilder, FallThroughIsNotTaken) {
  test::RecordingSink sink;
  RowBuilder rows(sink);
  ExecutedInsn last = step(0xfffffffe, InsnClass::COND_JUMP);
  last.mode = code::insn::ExecMode::BITS32;
  rows.on_instruction(last, {});
  ExecutedInsn first = step(0, InsnClass::COND_JUMP);
  first.mode = code::insn::ExecMode::BITS32;
  rows.on_instruction(first, {});
  rows.on_instruction(step(0x40, InsnClass::OTHER), {});
  EXPECT_EQ(sink.branches[0].flags, flow::FROM_KNOWN | flow::TO_KNOWN);
  EXPECT_EQ(sink.branches[1].flags, flow::FROM_KNOWN | flow::TO_KNOWN | flow::TAKEN);
}

TEST(RowBuilder, EventsResolveBranches) {
  struct Case {
    flow::Event event;
    std::size_t branches;  // including the branch of an asynchronous event
    bool to_known;
    std::uint64_t to;
  };
  const Case cases[] = {
      {event(EventKind::DISABLED, 0x77), 1, true, 0x77},
      {event(EventKind::DISABLED, 0, 0, false), 1, false, 0},
      {event(EventKind::ASYNC_DISABLED, 0x77, 0x50), 2, true, 0x50},
      {event(EventKind::ASYNC_BRANCH, 0x77, 0x50), 2, true, 0x50},
      {event(EventKind::ENABLED, 0x77), 0, false, 0},
      {event(EventKind::OVERFLOW, 0x77), 1, false, 0},
  };
  for (const Case& one : cases) {
    test::RecordingSink sink;
    RowBuilder rows(sink);
    rows.on_instruction(step(0x10, InsnClass::COND_JUMP), {});
    rows.on_event(one.event);
    ASSERT_EQ(sink.branches.size(), one.branches);
    ASSERT_EQ(sink.events.size(), 1U);
    if (one.branches == 0) continue;
    EXPECT_EQ((sink.branches[0].flags & flow::TO_KNOWN) != 0, one.to_known);
    EXPECT_EQ(sink.branches[0].to_ip, one.to);
  }
}

TEST(RowBuilder, EndsKnownAndUnknown) {
  test::RecordingSink sink;
  RowBuilder rows(sink);
  rows.on_instruction(step(0x10, InsnClass::CALL), {});
  rows.arrive(0x50);
  rows.on_instruction(step(0x60, InsnClass::JUMP_INDIRECT), {});
  rows.leave();
  rows.on_instruction(step(0x70, InsnClass::COND_JUMP), {});
  rows.drop();
  ASSERT_EQ(sink.branches.size(), 2U);
  EXPECT_EQ(sink.branches[0].to_ip, 0x50U);
  EXPECT_EQ(sink.branches[1].flags & flow::TO_KNOWN, 0);
}

TEST(RowBuilder, DelaysOtherEventsUntilTarget) {
  test::RecordingSink sink;
  RowBuilder rows(sink);
  rows.on_instruction(step(0x10, InsnClass::RETURN), {1, 2});
  rows.on_event(event(EventKind::CBR, 0, 8, false));
  EXPECT_EQ(sink.order, "b");
  rows.on_instruction(step(0x30, InsnClass::OTHER), {6, 7});
  rows.drop();
  EXPECT_EQ(sink.order, "bBeb");
  EXPECT_FALSE(sink.went_back);
}

TEST(RowBuilder, MarksAbortedTransactions) {
  test::RecordingSink sink;
  RowBuilder rows(sink);
  rows.on_instruction(step(0x10, InsnClass::OTHER), {});
  rows.on_event(event(EventKind::TSX_ABORT, 0x12));
  rows.on_event(event(EventKind::ASYNC_BRANCH, 0x80, 0x12));
  rows.on_event(event(EventKind::ASYNC_BRANCH, 0x90, 0x80));
  ASSERT_EQ(sink.branches.size(), 2U);
  EXPECT_EQ(sink.branches[0].kind, BranchKind::TX_ABORT);
  EXPECT_EQ(sink.branches[1].kind, BranchKind::ASYNC);
}

TEST(BranchKindOf, FollowsClassAndInstruction) {
  const auto kind = [](InsnClass cls, InsnKind insn) { return branch_kind({1, cls, insn}); };
  EXPECT_EQ(kind(InsnClass::FAR_CALL, InsnKind::INT3), BranchKind::FAR_CALL);
  EXPECT_EQ(kind(InsnClass::FAR_CALL, InsnKind::SYSENTER), BranchKind::SYSCALL);
  EXPECT_EQ(kind(InsnClass::FAR_CALL, InsnKind::VMRESUME), BranchKind::VMENTRY);
  EXPECT_EQ(kind(InsnClass::FAR_RETURN, InsnKind::UIRET), BranchKind::IRET);
  EXPECT_EQ(kind(InsnClass::FAR_RETURN, InsnKind::ERETS), BranchKind::SYSRET);
  EXPECT_EQ(kind(InsnClass::FAR_RETURN, InsnKind::RET_FAR), BranchKind::FAR_RETURN);
  EXPECT_FALSE(kind(InsnClass::PTWRITE, InsnKind::PTWRITE).has_value());
}

}  // namespace
}  // namespace ptkit::flow::libipt
