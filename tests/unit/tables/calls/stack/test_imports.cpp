// Calls and jumps through import slots to code that is not traced.
#include <gtest/gtest.h>

#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

constexpr std::uint32_t kImport = 99999;

// The only frame of the imported function.
const Frame& import_of(const Program& program) {
  static const Frame kNone;
  const Frame* found = &kNone;
  for (const Frame& frame : program.frames.frames) {
    if (frame.function == kImport) found = &frame;
  }
  return *found;
}

void expect_import(const Program& program, CallKind how, std::uint64_t branch) {
  const Frame& frame = import_of(program);
  ASSERT_EQ(frame.function, kImport);
  EXPECT_EQ(frame.how, how);
  EXPECT_EQ(frame.import_ip, branch);
  EXPECT_EQ(frame.flags & FRAME_ENTRY, 0);
  EXPECT_NE(frame.flags & FRAME_IMPORT, 0);
  EXPECT_NE(frame.flags & FRAME_EXACT, 0);
  EXPECT_EQ(frame.instructions, 0U);
  EXPECT_EQ(frame.end_how, CallEnd::RETURN);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(Imports, CallsHaveFramesWithoutInstructions) {
  Program program;
  program.code.imports[kMain + 0x10] = kImport;
  program.branch(BranchKind::CALL_INDIRECT, kMain + 0x10, std::nullopt);
  program.enable(kMain + 0x14);
  program.finish();
  expect_import(program, CallKind::CALL, kMain + 0x10);
  EXPECT_EQ(import_of(program).parent, program.frames.of(kMain).id);
}

TEST(Imports, JumpsAreTailCalls) {
  Program program;
  program.code.imports[kF + 0x10] = kImport;
  program.call(kMain + 0x10, kF);
  program.branch(BranchKind::JUMP_INDIRECT, kF + 0x10, std::nullopt);
  program.enable(kMain + 0x14);
  program.finish();
  expect_import(program, CallKind::TAIL, kF + 0x10);
  EXPECT_EQ(import_of(program).parent, program.frames.of(kF).id);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::TAIL);
}

TEST(Imports, StubsLeadToThem) {
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.code.imports[kG] = kImport;
  program.call(kMain + 0x10, kG);
  program.branch(BranchKind::JUMP_INDIRECT, kG, std::nullopt, 1);
  program.enable(kMain + 0x14);
  program.finish();
  expect_import(program, CallKind::PLT, kG);
  ASSERT_EQ(program.frames.frames.size(), 2U);
}

TEST(Imports, OtherBranchesToUnknownCodeHaveNone) {
  Program program;
  program.branch(BranchKind::CALL_INDIRECT, kMain + 0x10, std::nullopt);
  program.enable(kMain + 0x14);
  program.branch(BranchKind::JUMP_INDIRECT, kMain + 0x20, std::nullopt);
  program.enable(kMain + 0x24);
  program.finish();
  EXPECT_EQ(import_of(program).function, kUnknownFunction);
  ASSERT_EQ(program.frames.frames.size(), 2U);
  EXPECT_EQ(program.frames.frames[0].flags & FRAME_IMPORT, 0);
}

}  // namespace
}  // namespace ptkit::tables::calls
