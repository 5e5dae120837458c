// TNT, TIP, returns, deferred TIPs, and the blocks between them.
#include <gtest/gtest.h>

#include "flow/code/block_cache.h"
#include "flow/code/return_stack.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using base::Status;

// 1000 nop; 1001 jz 1005; 1003 nop; 1004 nop; 1005 nop; 1006 nop
const std::vector<std::uint8_t> kConditional{0x90, 0x74, 0x02, 0x90, 0x90, 0x90, 0x90};

TEST(Branches, TakenAndNotTaken) {
  const Collect taken = Scene(kConditional).begin().tnt("t").end(0x1006).decode();
  EXPECT_EQ(taken.ips, (Ips{0x1000, 0x1001, 0x1005}));
  ASSERT_EQ(taken.branches.size(), 2u);
  EXPECT_EQ(taken.branches[0].kind, BranchKind::COND);
  EXPECT_EQ(taken.branches[0].from_ip, 0x1001u);
  EXPECT_EQ(taken.branches[0].to_ip, 0x1005u);
  EXPECT_EQ(taken.branches[0].flags, FROM_KNOWN | TO_KNOWN | TAKEN);
  EXPECT_EQ(taken.branches[1].kind, BranchKind::ASYNC);
  EXPECT_EQ(taken.branches[1].flags, FROM_KNOWN | TAKEN);

  const Collect fallen = Scene(kConditional).begin().tnt("n").end(0x1006).decode();
  EXPECT_EQ(fallen.ips, (Ips{0x1000, 0x1001, 0x1003, 0x1004, 0x1005}));
  EXPECT_EQ(fallen.branches[0].to_ip, 0x1003u);
  EXPECT_EQ(fallen.branches[0].flags, FROM_KNOWN | TO_KNOWN);
}

TEST(Branches, LongTntWalksLoop) {
  // 1000 jz 1000; 1002 nop
  std::string bits(47, 't');
  bits[46] = 'n';
  const Collect rows = Scene({0x74, 0xfe, 0x90}).begin().tnt(bits.c_str()).end(0x1002).decode();
  EXPECT_EQ(rows.ips, Ips(47, 0x1000));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Branches, TntSpansAreBetweenPackets) {
  Scene scene(kConditional);
  scene.begin();
  const std::uint64_t before = scene.last;
  scene.add(PacketKind::MTC, 1).tnt("t");
  const std::uint64_t tnt = scene.last;
  scene.end(0x1006);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.branches[0].span.since, before);
  EXPECT_EQ(rows.branches[0].span.offset, tnt);
  // The TNT packet may be younger than its last branch: later rows may be older than the packet.
  EXPECT_EQ(rows.blocks[1].span.since, before);
}

TEST(Branches, DirectBranchesNeedNoPacket) {
  // 1000 jmp 1004; 1002 nop; 1003 nop; 1004 call 100a; 1009 nop; 100a nop; 100b nop
  Scene scene({0xeb, 0x02, 0x90, 0x90, 0xe8, 0x01, 0, 0, 0, 0x90, 0x90, 0x90});
  const Collect rows = scene.begin().end(0x100b).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1004, 0x100a}));
  ASSERT_EQ(rows.branches.size(), 3u);
  EXPECT_EQ(rows.branches[0].kind, BranchKind::JUMP);
  EXPECT_EQ(rows.branches[1].kind, BranchKind::CALL);
  EXPECT_EQ(rows.blocks.size(), 3u);  // a block ends at every branch
}

TEST(Branches, TipGivesIndirectTarget) {
  // 1000 jmp rax; 1002 call rax; 1004 nop; 1005 ret
  Scene scene({0xff, 0xe0, 0xff, 0xd0, 0x90, 0xc3, 0x90});
  scene.begin().tip(0x1002);
  const std::uint64_t first = scene.last;
  const Collect rows = scene.tip(0x1005).tip(0x1004).end(0x1005).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1002, 0x1005, 0x1004}));
  EXPECT_EQ(rows.branches[0].kind, BranchKind::JUMP_INDIRECT);
  EXPECT_EQ(rows.branches[1].kind, BranchKind::CALL_INDIRECT);
  EXPECT_EQ(rows.branches[2].kind, BranchKind::RETURN);
  EXPECT_EQ(rows.branches[0].span.since, first);
  EXPECT_EQ(rows.branches[0].span.offset, first);
}

// 1000 call 1008; 1005 nop; 1006 nop; 1007 nop; 1008 ret
const std::vector<std::uint8_t> kCall{0xe8, 0x03, 0, 0, 0, 0x90, 0x90, 0x90, 0xc3};

TEST(Returns, CompressedReturnIsTakenBit) {
  const Collect rows = Scene(kCall).begin().tnt("t").end(0x1006).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1008, 0x1005}));
  EXPECT_EQ(rows.branches[1].kind, BranchKind::RETURN);
  EXPECT_EQ(rows.branches[1].to_ip, 0x1005u);
}

TEST(Returns, NotTakenBitIsError) {
  const Collect rows = Scene(kCall).begin().tnt("n").decode();
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, Status::TNT_MISMATCH);
  EXPECT_EQ(rows.errors[0].ip, 0x1008u);
}

TEST(Returns, CompressedReturnWithoutCallIsError) {
  const Collect rows = Scene({0xc3}).begin().tnt("t").decode();
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, Status::RETURN_STACK_EMPTY);
  EXPECT_EQ(rows.errors[0].ip, 0x1000u);
}

TEST(Returns, CallToNextInstructionIsNotPushed) {
  // 1000 call 100a; 1005 nop..; 100a call 100f; 100f ret
  Scene scene({0xe8, 5, 0, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0, 0xc3});
  const Collect rows = scene.begin().tnt("t").end(0x1006).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x100a, 0x100f, 0x1005}));
}

TEST(Returns, UncompressedReturnPopsStack) {
  // 1000 call 100a; 1005 nop; ..; 100a call 1014; 100f nop; 1010 ret; ..; 1014 ret
  std::vector<std::uint8_t> code(0x20, 0x90);
  code[0] = 0xe8, code[1] = 5, code[2] = code[3] = code[4] = 0;
  code[0xa] = 0xe8, code[0xb] = 5, code[0xc] = code[0xd] = code[0xe] = 0;
  code[0x10] = 0xc3;
  code[0x14] = 0xc3;
  // The inner RET leads to another address by a TIP; the outer one is compressed: to 1005, not to 100f.
  const Collect rows = Scene(code).begin().tip(0x1010).tnt("t").end(0x1006).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x100a, 0x1014, 0x1010, 0x1005}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Returns, EmptyStackFallsBackToKeptEntries) {
  // The RET at 1008 leaves by a TIP to itself; a compressed one follows: by the manual's rule the stack is
  // empty.
  const Collect rows = Scene(kCall).begin().tip(0x1008).tnt("t").end(0x1006).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1008, 0x1008, 0x1005}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Returns, StackDropsOldestOf64) {
  ReturnStack stack;
  for (std::uint64_t i = 0; i < 70; ++i) stack.push(i);
  EXPECT_EQ(stack.size(), 64u);
  for (std::uint64_t i = 69; i >= 6; --i) {
    ASSERT_FALSE(stack.empty());
    EXPECT_EQ(stack.top(), i);
    stack.pop();
  }
  EXPECT_TRUE(stack.empty());
  stack.pop();
  EXPECT_TRUE(stack.empty());
}

TEST(Returns, ManualRuleHasPriority) {
  const auto any = [](std::uint64_t) { return true; };
  CallStack calls;
  calls.call(1);
  calls.call(2);
  calls.return_by_tip();
  EXPECT_EQ(calls.return_by_tnt(any), 1u);  // the other reading would say 2
  calls.reset();
  EXPECT_TRUE(calls.empty());
  calls.call(1);
  calls.flush();  // PSB
  calls.call(2);
  EXPECT_EQ(calls.return_by_tnt(any), 2u);
  EXPECT_FALSE(calls.empty());
  EXPECT_EQ(calls.return_by_tnt(any), 1u);  // an encoder that does not empty the stack
}

TEST(Returns, ImplausibleTargetSelectsKeptEntries) {
  CallStack calls;
  calls.call(1);
  calls.call(2);
  calls.return_by_tip();
  EXPECT_EQ(calls.return_by_tnt([](std::uint64_t ip) { return ip == 2; }), 2u);
}

TEST(Returns, DisRetcDisablesCompression) {
  // A bit before a RET belongs to a branch after it: the RET's TIP was deferred. 1000 call 1008; 1005 jz
  // 1005; 1007 nop; 1008 ret
  Scene scene({0xe8, 3, 0, 0, 0, 0x74, 0xfe, 0x90, 0xc3});
  scene.configuration.rtit_ctl_known = true;
  scene.configuration.rtit_ctl = 1U << 11U;
  const Collect rows = scene.begin().tnt("n").tip(0x1005).end(0x1008).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1008, 0x1005, 0x1007}));
  EXPECT_TRUE(rows.errors.empty());
}

// 1000 jz 1002; 1002 jmp rax; 1004 jz 1004; 1006 jmp rax; 1008 jz 1008; 100a nop
const std::vector<std::uint8_t> kDeferred{0x74, 0,    0xff, 0xe0, 0x74, 0xfe,
                                          0xff, 0xe0, 0x74, 0xfe, 0x90, 0x90};

TEST(DeferredTips, FollowTntOfLaterBranches) {
  Scene scene(kDeferred);
  scene.begin().tnt("tnn");
  const std::uint64_t tnt = scene.last;
  scene.add(PacketKind::CBR, 8).tip(0x1004).add(PacketKind::MTC, 3).tip(0x1008);
  const std::uint64_t last_tip = scene.last;
  const Collect rows = scene.end(0x100b).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1002, 0x1004, 0x1006, 0x1008, 0x100a}));
  EXPECT_TRUE(rows.errors.empty());
  // The last conditional branch is older than the TIPs, and not older than the packet before its TNT.
  EXPECT_LT(rows.branches[4].span.since, tnt);
  EXPECT_EQ(rows.branches[4].span.offset, last_tip);
}

TEST(DeferredTips, MissingTipIsError) {
  const Collect rows = Scene(kDeferred).begin().tnt("tn").fup(0x1004).tip(0x1008).decode(Resync::IP);
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, Status::TIP_MISMATCH);
  EXPECT_EQ(rows.errors[0].ip, 0x1002u);
}

TEST(Modes, SelectInstructionDecoding) {
  // 48 ff c0: inc rax, or in 32-bit code dec eax; inc eax. 48 b8 imm: 10 bytes or 1 + 5.
  const std::vector<std::uint8_t> code{0x48, 0xff, 0xc0, 0x90};
  EXPECT_EQ(Scene(code).begin(0x1000, 64).end(0x1003).decode().ips, (Ips{0x1000}));
  EXPECT_EQ(Scene(code).begin(0x1000, 32).end(0x1003).decode().ips, (Ips{0x1000, 0x1001}));
  const Collect rows = Scene(code).begin(0x1000, 16).end(0x1003).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001}));
  EXPECT_EQ(rows.blocks[0].mode, code::insn::ExecMode::BITS16);
}

TEST(Modes, ChangeAtTip) {
  // 1000 jmp far [rax] (64-bit); 1003 dec eax; inc eax (32-bit)
  Scene scene({0x48, 0xff, 0x28, 0x48, 0xff, 0xc0, 0x90});
  const Collect rows = scene.begin().mode(32).tip(0x1003).end(0x1006).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1003, 0x1004}));
  EXPECT_EQ(rows.branches[0].kind, BranchKind::FAR_JUMP);
  EXPECT_EQ(rows.events[2].kind, EventKind::EXEC_MODE);
  EXPECT_EQ(rows.events[2].payload, 32u);
}

TEST(Modes, SixteenBitAddressesWrap) {
  Scene scene;
  scene.put(0xfffe, {0x90, 0x90}).put(0, {0x90, 0x90, 0x90});
  const Collect rows = scene.begin(0xfffe, 16).end(0x0002).decode();
  EXPECT_EQ(rows.ips, (Ips{0xfffe, 0xffff, 0x0000, 0x0001}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Running, InSlicesEmitsSameRows) {
  class Piecewise : public Collect {
   public:
    [[nodiscard]] bool full() const override { return true; }
  };
  Scene scene(kConditional);
  scene.begin().tnt("t").end(0x1006);
  const Collect whole = scene.decode();
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  const code::image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
  Piecewise rows;
  FlowDecoder decoder(stream, scene.configuration, image, {}, rows, nullptr);
  unsigned calls = 1;
  while (decoder.run()) ++calls;
  EXPECT_GT(calls, 5u);
  EXPECT_EQ(rows.log, whole.log);
  EXPECT_FALSE(decoder.run());
}

}  // namespace
}  // namespace ptkit::flow
