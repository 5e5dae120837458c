#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/system/file_identity.h"
#include "unit/support/test_folder.h"

namespace ptkit::base {
namespace {

TEST(FileIdentity, StaysUntilTheFileChanges) {
  const test::TestFolder folder;
  const std::string path = folder.write("a", "0123");
  const auto first = file_identity(path);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->size, 4U);
  EXPECT_EQ(file_identity(path), first);
  folder.write("a", "01234");
  EXPECT_NE(file_identity(path), first);
}

TEST(FileIdentity, ChangesWithTheTime) {
  const test::TestFolder folder;
  const std::string path = folder.write("a", "0123");
  const auto first = file_identity(path);
  const auto written = std::filesystem::last_write_time(path);
  std::filesystem::last_write_time(path, written + std::chrono::seconds(3));
  const auto second = file_identity(path);
  ASSERT_TRUE(first.has_value() && second.has_value());
  // libstdc++ sets whole seconds on Windows.
  EXPECT_NEAR(static_cast<double>(second->time_ns - first->time_ns), 3e9, 1e9);
}

TEST(FileIdentity, TimeIsSince1970) {
  const test::TestFolder folder;
  const auto identity = file_identity(folder.write("a", "0123"));
  ASSERT_TRUE(identity.has_value());
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  EXPECT_NEAR(static_cast<double>(identity->time_ns), static_cast<double>(now_ns), 600e9);
}

TEST(FileIdentity, OfCopiesDiffers) {
  const test::TestFolder folder;
  const std::string path = folder.write("a", "0123");
  std::filesystem::copy_file(path, folder.at("b"));
  std::filesystem::last_write_time(folder.at("b"), std::filesystem::last_write_time(path));
  EXPECT_NE(file_identity(path), file_identity(folder.at("b")));
}

TEST(FileIdentity, OnlyRegularFilesHaveOne) {
  const test::TestFolder folder;
  EXPECT_EQ(file_identity(folder.at("nowhere")), std::nullopt);
  EXPECT_EQ(file_identity(folder.at("")), std::nullopt);
}

}  // namespace
}  // namespace ptkit::base
