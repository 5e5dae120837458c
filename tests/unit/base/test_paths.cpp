#include <gtest/gtest.h>

#include "base/paths.h"

namespace ptkit::base {
namespace {

TEST(Paths, DeletedFilesHaveASuffix) {
  EXPECT_EQ(without_mark("/tmp/a.so (deleted)"), "/tmp/a.so");
  EXPECT_TRUE(is_deleted("/tmp/a.so (deleted)"));
  for (const char* const path : {"/tmp/a.so", "/tmp/a (deleted).so", " (deleted)", ""}) {
    EXPECT_FALSE(is_deleted(path)) << path;
    EXPECT_EQ(without_mark(path), path);
  }
}

TEST(Paths, LastPartFollowsEitherSlash) {
  EXPECT_EQ(last_part("C:\\Windows\\calc.exe"), "calc.exe");
  EXPECT_EQ(last_part("/srv/dumps/0001"), "0001");
  EXPECT_EQ(last_part("0001"), "0001");
}

}  // namespace
}  // namespace ptkit::base
