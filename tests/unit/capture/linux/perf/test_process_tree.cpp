// ProcessTree: processes in which trigger events count.
#include <gtest/gtest.h>

#include "capture/linux/perf/process_tree.h"

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

TEST(ProcessTree, FollowsDescendantsOnRequest) {
  for (const bool children : {true, false}) {
    ProcessTree tree;
    tree.begin(10, children);
    tree.take(record(Kind::FORK, 1, 11, 10));
    tree.take(record(Kind::FORK, 2, 12, 11));
    tree.take(record(Kind::FORK, 3, 13, 5));
    tree.take(record(Kind::FORK, 4, 10, 10));  // a thread
    EXPECT_TRUE(tree.has(10));
    EXPECT_EQ(tree.has(11), children);
    EXPECT_EQ(tree.has(12), children);
    EXPECT_FALSE(tree.has(13));
  }
}

TEST(ProcessTree, ForgetsReusedPids) {
  ProcessTree tree;
  tree.begin(10, true);
  tree.take(record(Kind::FORK, 1, 11, 10));
  tree.take(record(Kind::EXEC, 2, 11));
  tree.take(record(Kind::FORK, 3, 11, 5));
  EXPECT_FALSE(tree.has(11));
  tree.take(record(Kind::FORK, 4, 11, 10));
  EXPECT_TRUE(tree.has_program(11, 9));
}

// With PID 0, too.
TEST(ProcessTree, EndsProgramAtExec) {
  for (const std::int32_t pid : {10, 0}) {
    ProcessTree tree;
    tree.begin(pid, true);
    tree.take(record(Kind::EXEC, 100, 10));
    tree.take(record(Kind::EXEC, 200, 10));
    tree.take(record(Kind::FORK, 300, 11, 10));
    tree.take(record(Kind::FORK, 300, 12, 11));
    EXPECT_TRUE(tree.has_program(10, 99));
    EXPECT_FALSE(tree.has_program(10, 100));
    EXPECT_FALSE(tree.has_program(10, 150));
    EXPECT_FALSE(tree.has_program(12, 400));
    EXPECT_TRUE(tree.has(12));
  }
}

}  // namespace
}  // namespace ptkit::capture::test
