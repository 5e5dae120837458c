// Branch records and code to control flow: one thing at a time.
#include <gtest/gtest.h>

#include "record_scene.h"
#include "unit/support/seconds.h"

namespace ptkit::flow {
namespace {

using base::Status;
using Ips = std::vector<std::uint64_t>;

constexpr std::uint64_t kKernel = RecordScene::kKernel;
constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;
constexpr std::uint8_t kFell = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kLeft = FROM_KNOWN | TAKEN;

// 1000 nop; 1001 jz 1010; 1003 nop; 1004 call 1020; 1009 jmp 1000; ...; 1010 jmp *rax; 1012 syscall;
// 1014 nop; 1015 jmp 1014; 1020 nop; 1021 ret
std::vector<std::uint8_t> program() {
  std::vector<std::uint8_t> code(0x40, 0x90);
  const auto put = [&code](std::size_t at, std::vector<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0x01, {0x74, 0x0d});
  put(0x04, {0xe8, 0x17, 0, 0, 0});
  put(0x09, {0xeb, 0xf5});
  put(0x10, {0xff, 0xe0});
  put(0x12, {0x0f, 0x05});
  put(0x15, {0xeb, 0xfd});
  put(0x21, {0xc3});
  return code;
}

std::string text_of(const std::vector<Branch>& branches) {
  std::string text;
  for (const Branch& branch : branches) {
    text += std::to_string(static_cast<int>(branch.kind)) + ":" + Collect::hex(branch.from_ip) + ">" +
            Collect::hex(branch.to_ip) + "/" + std::to_string(branch.flags) + " ";
  }
  return text;
}

TEST(Records, EmitBranchesAndBlocksBetween) {
  RecordScene scene(program());
  scene.add(0x1004, 0x1020).add(0x1021, 0x1009).add(0x1009, 0x1000).add(0x1001, 0x1010);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{0x1004, 0x1020, 0x1021, 0x1009, 0x1000, 0x1001}));
  ASSERT_EQ(rows.branches.size(), 4U);
  EXPECT_EQ(rows.branches[0].kind, BranchKind::CALL);
  EXPECT_EQ(rows.branches[1].kind, BranchKind::RETURN);
  EXPECT_EQ(rows.branches[2].kind, BranchKind::JUMP);
  EXPECT_EQ(rows.branches[3].kind, BranchKind::COND);
  EXPECT_EQ(rows.branches[3].flags, kWent);
  EXPECT_EQ(rows.branches[3].span.offset, 3U);
  EXPECT_EQ(rows.blocks.back().span.offset, 3U);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_TRUE(rows.gaps.empty());
  ASSERT_EQ(rows.contexts.size(), 1U);
}

TEST(Records, OmitFallThroughConditionals) {
  const Collect rows = RecordScene(program()).add(0x1009, 0x1000).add(0x1004, 0x1020).decode();
  EXPECT_EQ(text_of(rows.branches), "1:1009>1000/7 0:1001>1003/3 3:1004>1020/7 ");
  EXPECT_EQ(rows.blocks.size(), 3U);
  EXPECT_EQ(rows.ips, (Ips{0x1009, 0x1000, 0x1001, 0x1003, 0x1004}));
}

// Branch stacks can be recorded without direct jumps and calls.
TEST(Records, MayOmitDirectBranches) {
  const Collect rows = RecordScene(program()).add(0x1010, 0x1003).add(0x1021, 0x1009).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1010, 0x1003, 0x1004, 0x1020, 0x1021}));
  EXPECT_EQ(text_of(rows.branches), "2:1010>1003/7 3:1004>1020/7 5:1021>1009/7 ");
  EXPECT_TRUE(rows.errors.empty());
}

// Where there are records of some, those without one were lost.
TEST(Records, FollowDirectBranchesOnlyWithoutRecords) {
  const auto errors = [](std::uint64_t from, std::uint64_t to) {
    RecordScene scene(program());
    scene.add(from, to).add(0x1010, 0x1003).add(0x1021, 0x1009);
    return scene.decode().errors.size();
  };
  EXPECT_EQ(errors(0x1004, 0x1020), 2U);  // from 1020 to 1010, and over a call
  EXPECT_EQ(errors(0x1009, 0x1000), 1U);
}

TEST(Records, InterruptPrecedesInstructionNotExecuted) {
  RecordScene scene(program());
  scene.add(0x1009, 0x1000).add(0x1003, kKernel);
  Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{0x1009, 0x1000, 0x1001}));
  EXPECT_EQ(rows.branches.back().kind, BranchKind::ASYNC);
  // A direct branch that leads elsewhere did not run, nor a near one that leads into the kernel.
  rows = RecordScene(program()).add(0x1009, 0x1000).add(0x1004, kKernel).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1009, 0x1000, 0x1001, 0x1003}));
  EXPECT_EQ(rows.branches.back().kind, BranchKind::ASYNC);
  rows = RecordScene(program()).add(0x1009, 0x1020).add(0x1021, kKernel).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1020}));
  EXPECT_EQ(rows.branches[0].kind, BranchKind::ASYNC);
  EXPECT_EQ(rows.branches[1].kind, BranchKind::ASYNC);
  rows = RecordScene(program()).add(0x1001, 0x1010).add(0x1010, 0x1012).add(0x1012, kKernel).decode();
  EXPECT_EQ(rows.branches.back().kind, BranchKind::SYSCALL);
}

TEST(Records, HaveFlags) {
  RecordScene scene(program());
  scene.add(0x1009, 0x1000, trace::RECORD_PREDICTION_KNOWN);
  scene.add(0x1001, 0x1010, trace::RECORD_PREDICTION_KNOWN | trace::RECORD_PREDICTED | trace::RECORD_IN_TX);
  scene.add(0x1010, 0x1014, trace::RECORD_IN_TX)
      .add(0x1015, 0x1020, trace::RECORD_IN_TX | trace::RECORD_ABORT);
  const Collect rows = scene.decode();
  EXPECT_EQ(text_of(rows.branches), "1:1009>1000/39 0:1001>1010/63 2:1010>1014/15 15:1015>1020/15 ");
  ASSERT_EQ(rows.blocks.size(), 4U);
  EXPECT_EQ(rows.blocks[1].flags, 0);  // the transaction began on the way
  EXPECT_EQ(rows.blocks[2].flags, IN_TX);
  EXPECT_EQ(rows.ips.back(), 0x1014U);  // the aborted one did not run
}

TEST(Records, WithoutCodeEmitBranchOnly) {
  const Collect rows = RecordScene().add(0x1009, 0x1000).add(0x1001, 0x1010).decode();
  EXPECT_EQ(text_of(rows.branches), "16:1009>1000/7 16:1001>1010/7 ");
  EXPECT_TRUE(rows.blocks.empty());
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_TRUE(rows.gaps.empty());
}

TEST(Records, SuccessiveMissingCodeIsOneErrorAndGap) {
  RecordScene scene(program());
  scene.add(0x1010, 0x5000).add(0x5010, 0x5020).add(0x5030, 0x6040).add(0x6050, 0x1014).add(0x1015, 0x1014);
  const Collect rows = scene.decode();
  EXPECT_EQ(text_of(rows.branches),
            "2:1010>5000/7 16:5010>5020/7 16:5030>6040/7 16:6050>1014/7 1:1015>1014/7 ");
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::NO_CODE);
  EXPECT_EQ(rows.errors[0].ip, 0x5000U);
  EXPECT_EQ(rows.errors[0].span.offset, 1U);
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::ERROR);
  EXPECT_EQ(rows.gaps[0].code, Status::NO_CODE);
  EXPECT_EQ(rows.gaps[0].begin, 0U);
  EXPECT_EQ(rows.gaps[0].from_ip, 0x5000U);
  EXPECT_EQ(rows.gaps[0].end, 3U);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1014U);
  EXPECT_EQ(rows.ips, (Ips{0x1010, 0x1014, 0x1015}));
}

TEST(Records, EmitCodeUpToMissingCode) {
  RecordScene scene({0x90, 0x90});
  scene.put(0x2000, {0xff, 0xe0}).add(0x2000, 0x1000).add(0x1005, 0x2000).add(0x2000, 0x2000);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{0x2000, 0x1000, 0x1001, 0x2000}));
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].ip, 0x1002U);
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].from_ip, 0x1002U);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x2000U);
}

TEST(Records, UnreachableRecordIsMismatch) {
  RecordScene scene(program());
  scene.add(0x1010, 0x1020).add(0x1015, 0x1014).add(0x1015, 0x1014);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::RECORD_MISMATCH);
  EXPECT_EQ(rows.errors[0].ip, 0x1015U);
  EXPECT_EQ(rows.errors[0].argument, 0x1020U);
  EXPECT_EQ(rows.errors[0].argument2, 0x1021U);  // the RET that no record is about
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].from_ip, 0x1020U);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1015U);
  EXPECT_EQ(rows.gaps[0].begin, 0U);
  EXPECT_EQ(rows.gaps[0].end, 1U);
  EXPECT_EQ(rows.ips, (Ips{0x1010, 0x1015, 0x1014, 0x1015}));
  EXPECT_EQ(text_of(rows.branches), "2:1010>1020/7 1:1015>1014/7 1:1015>1014/7 ");
}

// 1014 nop; 1015 jmp 1014 never ends.
TEST(Records, LoopOfDirectJumpsEnds) {
  const Collect rows = RecordScene(program()).add(0x1010, 0x1014).add(0x1021, 0x1000).decode();
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::RECORD_MISMATCH);
  EXPECT_EQ(rows.branches.size(), 2U);
}

TEST(Records, BadRecordsAreOneErrorAndGap) {
  RecordScene scene(program());
  scene.add(0x1010, 0x1014).add(0, 0).add(0x4000000000001000, 0x1000).add(0x1000, 0x8000000000001000);
  scene.add(0x1015, 0x1014);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::BAD_RECORD);
  EXPECT_EQ(rows.errors[0].span.offset, 1U);
  EXPECT_FALSE(rows.errors[0].ip_known);
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].code, Status::BAD_RECORD);
  EXPECT_EQ(rows.gaps[0].end, 4U);
  EXPECT_EQ(rows.branches.size(), 2U);
  EXPECT_EQ(rows.ips, (Ips{0x1010, 0x1015}));
}

// Neither the code of the branch nor where it led to is there; and the record before does not lead to it.
TEST(Records, MissingCodeMayFollowMismatch) {
  RecordScene scene(program());
  scene.add(0x1010, 0x1020).add(0x5000, 0x6000).add(0x1015, 0x1014);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 2U);
  EXPECT_EQ(rows.errors[0].code, Status::RECORD_MISMATCH);
  EXPECT_EQ(rows.errors[1].code, Status::NO_CODE);
  ASSERT_EQ(rows.gaps.size(), 2U);
  EXPECT_EQ(rows.gaps[0].code, Status::RECORD_MISMATCH);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x5000U);
  EXPECT_EQ(rows.gaps[1].code, Status::NO_CODE);
  EXPECT_EQ(rows.gaps[1].begin, 1U);
  EXPECT_EQ(rows.gaps[1].to_ip, 0x1015U);
}

// Two paths were looked for in vain, the second one shorter. A long one is followed all the same.
TEST(Records, FailedWalksAreCharged) {
  constexpr std::uint64_t kFar = 0x100000;
  constexpr std::uint64_t kStraight = 20000;
  std::vector<std::uint8_t> straight(kStraight, 0x90);
  straight.push_back(0xc3);
  RecordScene scene(program());
  scene.put(kFar, std::move(straight));
  scene.add(0x1010, 0x1020).add(0x5000, kFar).add(kFar + kStraight, 0x1014).add(0x1015, 0x1014);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 2U);
  EXPECT_EQ(rows.errors[0].code, Status::RECORD_MISMATCH);
  EXPECT_EQ(rows.errors[1].code, Status::NO_CODE);
  EXPECT_EQ(rows.ips.size(), 1 + kStraight + 1 + 2);
}

// Paths through thousands of conditionals that no record is about: they are looked for once, and not for each
// record that does not fit. The limit is CPU time.
TEST(Records, FailedSearchesAreNotRepeated) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kRecords = 100'000;
  constexpr double kMostSeconds = 10;
  std::vector<std::uint8_t> code(kSize);
  for (std::size_t i = 0; i < kSize; i += 2) code[i] = 0x74;  // jz to the next instruction
  RecordScene scene(code);
  for (std::uint64_t i = 0; i < kRecords; ++i)
    scene.add(RecordScene::kCode + (i % 2 == 0 ? 0x18001 : 1), RecordScene::kCode + 2 + i * 2 % 40'000);
  Collect rows;
  EXPECT_LT(ptkit::test::seconds_of([&] { rows = scene.decode(); }), kMostSeconds);
  EXPECT_EQ(rows.errors.size(), kRecords - 1);
  EXPECT_EQ(rows.branches.size(), kRecords);
}

TEST(Records, AcceptFiveLevelPageTables) {
  const Collect rows = RecordScene().add(0x00fffffffffff000, 0xff00000000000000).decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.branches.size(), 1U);
}

TEST(Records, TruncatedRecordIsError) {
  RecordScene scene(program());
  scene.stream.data = trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(20, 1));
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::BAD_RECORD);
  EXPECT_EQ(rows.errors[0].argument, 20U);
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].end, 1U);
}

TEST(Records, EmptyStreamHasNoRows) {
  RecordScene scene(program());
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.contexts.size(), 1U);
  EXPECT_TRUE(rows.log.empty());
}

TEST(Records, LossesAreGaps) {
  RecordScene scene(program());
  scene.lose().add(0x1010, 0x1014).lose(320).add(0x1021, 0x1009).add(0x1009, 0x1000).lose();
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.gaps.size(), 3U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::LOST);
  EXPECT_EQ(rows.gaps[0].code, Status::RING_WRAPPED);
  EXPECT_EQ(rows.gaps[0].flags, TO_KNOWN);
  EXPECT_EQ(rows.gaps[1].from_ip, 0x1014U);
  EXPECT_EQ(rows.gaps[1].to_ip, 0x1021U);
  EXPECT_EQ(rows.gaps[1].flags, FROM_KNOWN | TO_KNOWN);
  EXPECT_EQ(rows.gaps[2].from_ip, 0x1000U);
  EXPECT_EQ(rows.gaps[2].flags, FROM_KNOWN);
  EXPECT_EQ(rows.ips, (Ips{0x1010, 0x1021, 0x1009}));
}

TEST(Records, LossInsideRecordTruncatesIt) {
  RecordScene scene(program());
  scene.add(0x1010, 0x1014);
  std::vector<trace::BranchRecord> records{{0x1010, 0x1014, 0, 0, 0}, {0x1015, 0x1014, 0, 0, 0}};
  const auto whole = trace::to_buffer(records);
  std::vector<std::uint8_t> bytes(whole.bytes().begin(), whole.bytes().end());
  bytes.erase(bytes.begin() + 16, bytes.begin() + 32);
  scene.stream.data = trace::TraceBuffer::from_vector(bytes);
  scene.stream.losses.push_back({16, Status::BUFFER_FULL, 16});
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::BAD_RECORD);
  EXPECT_EQ(rows.errors[0].argument, 16U);
  EXPECT_EQ(text_of(rows.branches), "1:1015>1014/7 ");
  EXPECT_EQ(rows.branches[0].span.offset, 1U);
}

TEST(Records, FirstOfStackStartsAnew) {
  RecordScene scene(program());
  scene.add(0x1010, 0x1014, trace::RECORD_FIRST).add(0x1015, 0x1014);
  scene.add(0x1001, 0x1010, trace::RECORD_FIRST).add(0x1010, 0x1014);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.gaps.size(), 2U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::START);
  EXPECT_EQ(rows.gaps[0].flags, TO_KNOWN);
  EXPECT_EQ(rows.gaps[1].cause, GapCause::START);
  EXPECT_EQ(rows.gaps[1].from_ip, 0x1014U);
  EXPECT_EQ(rows.gaps[1].to_ip, 0x1001U);
  EXPECT_EQ(rows.ips, (Ips{0x1010, 0x1014, 0x1015, 0x1001, 0x1010}));
}

// --- One level of privilege

TEST(Records, UserCodeContinuesAfterUnrecordedSystemCall) {
  const Collect rows = RecordScene(program()).add(0x1010, 0x1012).add(0x1015, 0x1014).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1010, 0x1012, 0x1014, 0x1015}));
  EXPECT_EQ(text_of(rows.branches), "2:1010>1012/7 9:1012>0/5 1:1015>1014/7 ");
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_TRUE(rows.gaps.empty());
}

TEST(Records, KernelReturnGivesKernelEntry) {
  RecordScene scene(program());
  scene.add(kKernel, 0x1012).add(kKernel, 0x1014).add(kKernel + 8, 0x1015).add(0x1015, 0x1014);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{0x1012, 0x1014, 0x1015}));
  EXPECT_EQ(text_of(rows.branches),
            "16:ffffffff81000000>1012/7 9:1012>0/5 16:ffffffff81000000>1014/7 14:1015>0/5 "
            "16:ffffffff81000008>1015/7 1:1015>1014/7 ");
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_TRUE(rows.gaps.empty());
}

TEST(Records, ReturnToOtherAddressOpensFilteredGap) {
  RecordScene scene(program());
  scene.add(0x1004, 0x1020).add(0x1021, 0x1000).add(kKernel, 0x1020).add(0x1021, 0x1014);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::FILTERED);
  EXPECT_EQ(rows.gaps[0].from_ip, 0x1000U);
  EXPECT_EQ(rows.gaps[0].to_ip, kKernel);
  EXPECT_EQ(rows.ips, (Ips{0x1004, 0x1020, 0x1021, 0x1020, 0x1021}));
}

// nop; sysretq
TEST(Records, KernelOnlyEndsAtReturn) {
  RecordScene scene(program());
  scene.put(kKernel, {0x90, 0x48, 0x0f, 0x07}).add(0x1012, kKernel).add(0x1003, kKernel).add(0x5000, kKernel);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{0x1012, kKernel, kKernel + 1, kKernel, kKernel + 1}));
  EXPECT_EQ(text_of(rows.branches),
            "9:1012>ffffffff81000000/7 10:ffffffff81000001>0/5 14:1003>ffffffff81000000/7 "
            "10:ffffffff81000001>0/5 16:5000>ffffffff81000000/7 ");
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_TRUE(rows.gaps.empty());
}

// --- Who runs

TEST(Records, OtherThreadDoesNotContinueAtLastTarget) {
  RecordScene scene(program());
  scene.bundle().spaces.resize(3);
  scene.stream.switches = {{0, 10, 11, 1, 0}, {100, 20, 21, 2, 64}};
  scene.with_time = true;
  scene.add(0x1010, 0x1014).add(0x1015, 0x1014, 0, 100).add(0x1021, 0x1014).add(0x1015, 0x1014, 0, 300);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::FILTERED);
  ASSERT_FALSE(rows.contexts.empty());
  EXPECT_EQ(rows.contexts.back().tid, 21);
  EXPECT_EQ(rows.contexts.back().space, 2U);
  EXPECT_EQ(rows.contexts.back().offset, 2U);
}

TEST(Records, FollowSwitchesByOffset) {
  RecordScene scene(program());
  scene.bundle().spaces.resize(3);
  scene.stream.switches_by_offset = true;
  scene.stream.switches = {{0, 10, 11, 1, 0}, {0, 20, 21, 2, 64}, {0, 20, 22, 2, 96}};
  scene.add(0x1010, 0x1014).add(0x1015, 0x1014).add(0x1021, 0x1014).add(0x1015, 0x1014);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.gaps.size(), 2U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::FILTERED);
  EXPECT_EQ(rows.gaps[0].end, 2U);
  EXPECT_EQ(rows.gaps[1].end, 3U);
  ASSERT_GE(rows.contexts.size(), 3U);
  const std::size_t last = rows.contexts.size() - 1;
  EXPECT_EQ(rows.contexts[last - 2].tid, 11);
  EXPECT_EQ(rows.contexts[last - 1].tid, 21);
  EXPECT_EQ(rows.contexts[last - 1].offset, 2U);
  EXPECT_EQ(rows.contexts[last].tid, 22);
  EXPECT_EQ(rows.contexts[last].space, 2U);
}

TEST(Records, Decode32BitCode) {
  // inc eax (in 64-bit code: a prefix); jmp 1000
  RecordScene scene({0x40, 0x90, 0xeb, 0xfc});
  scene.add(0x1002, 0x1000, trace::RECORD_CODE32).add(0x1002, 0x1000, trace::RECORD_CODE32);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{0x1002, 0x1000, 0x1001, 0x1002}));
  EXPECT_EQ(rows.blocks.back().mode, code::insn::ExecMode::BITS32);
}

// 1015 jumps to 1014, which leads to 1015; 1009 jumps to 1000, which leads to 1009 by a call alone.
TEST(Records, LeaveOutTheNewestBranchThatWasStoredTwice) {
  constexpr std::uint32_t kCopy = trace::RECORD_MAY_REPEAT;
  RecordScene loop(program());
  loop.add(0x1010, 0x1014).add(0x1015, 0x1014).add(0x1015, 0x1014, kCopy | trace::RECORD_PREDICTED);
  EXPECT_EQ(loop.decode().branches.size(), 3U);
  RecordScene twice(program());
  twice.add(0x1015, 0x1014, trace::RECORD_FIRST).add(0x1009, 0x1000).add(0x1009, 0x1000, kCopy);
  // The next stack begins after the copy.
  twice.add(0x1021, 0x1009, trace::RECORD_FIRST).add(0x1009, 0x1000).add(0x1009, 0x1000, kCopy);
  RecordScene once(program());
  once.add(0x1015, 0x1014, trace::RECORD_FIRST).add(0x1009, 0x1000);
  once.add(0x1021, 0x1009, trace::RECORD_FIRST).add(0x1009, 0x1000);
  const Collect rows = twice.decode();
  const Collect right = once.decode();
  EXPECT_EQ(text_of(rows.branches), text_of(right.branches));
  EXPECT_EQ(rows.ips, right.ips);
  EXPECT_EQ(rows.errors.size(), right.errors.size());
  EXPECT_EQ(rows.gaps.size(), right.gaps.size());
}

TEST(Records, KeepCopiesWithoutCodeAndOfOtherBranches) {
  RecordScene blind;
  blind.add(0x1009, 0x1000).add(0x1009, 0x1000, trace::RECORD_MAY_REPEAT);
  EXPECT_EQ(blind.decode().branches.size(), 2U);
  RecordScene other(program());
  other.add(0x1009, 0x1000).add(0x1001, 0x1010, trace::RECORD_MAY_REPEAT);
  EXPECT_EQ(other.decode().branches.size(), 2U);
  RecordScene unmarked(program());
  unmarked.add(0x1009, 0x1000).add(0x1009, 0x1000);
  const Collect rows = unmarked.decode();
  EXPECT_EQ(rows.branches.size(), 2U);
  EXPECT_EQ(rows.errors.size(), 1U);
}

}  // namespace
}  // namespace ptkit::flow
