// Whose hits of triggers count, as processes begin and execute other programs.
#include <gtest/gtest.h>

#include "capture/perf_family.h"

namespace ptkit::capture::test {
namespace {

using Kind = SystemRecord::Kind;

SystemRecord record(Kind kind, std::uint64_t tsc, std::int32_t pid, std::int32_t parent = 0) {
  SystemRecord out;
  out.kind = kind;
  out.tsc = tsc;
  out.pid = out.tid = pid;
  out.parent_pid = parent;
  return out;
}

TEST(PerfFamily, HasChildrenOfChildrenIfTheyAreAskedFor) {
  for (const bool children : {true, false}) {
    PerfFamily family;
    family.begin(10, children);
    family.take(record(Kind::FORK, 1, 11, 10));
    family.take(record(Kind::FORK, 2, 12, 11));
    family.take(record(Kind::FORK, 3, 13, 5));
    family.take(record(Kind::FORK, 4, 10, 10));  // a thread
    EXPECT_TRUE(family.has(10));
    EXPECT_EQ(family.has(11), children);
    EXPECT_EQ(family.has(12), children);
    EXPECT_FALSE(family.has(13));
  }
}

TEST(PerfFamily, ANumberThatIsGivenAgainIsSomebodyElse) {
  PerfFamily family;
  family.begin(10, true);
  family.take(record(Kind::FORK, 1, 11, 10));
  family.take(record(Kind::EXEC, 2, 11));
  family.take(record(Kind::FORK, 3, 11, 5));
  EXPECT_FALSE(family.has(11));
  family.take(record(Kind::FORK, 4, 11, 10));
  EXPECT_TRUE(family.has_program(11, 9));
}

// Of everybody, too: the kernel follows them, whatever they execute.
TEST(PerfFamily, AnotherProgramIsOneFromItsFirstInstructionOn) {
  for (const std::int32_t pid : {10, 0}) {
    PerfFamily family;
    family.begin(pid, true);
    family.take(record(Kind::EXEC, 100, 10));
    family.take(record(Kind::EXEC, 200, 10));
    family.take(record(Kind::FORK, 300, 11, 10));
    family.take(record(Kind::FORK, 300, 12, 11));
    EXPECT_TRUE(family.has_program(10, 99));
    EXPECT_FALSE(family.has_program(10, 100));
    EXPECT_FALSE(family.has_program(10, 150));
    EXPECT_FALSE(family.has_program(12, 400));
    EXPECT_TRUE(family.has(12));
  }
}

}  // namespace
}  // namespace ptkit::capture::test
