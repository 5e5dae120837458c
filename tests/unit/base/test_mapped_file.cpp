#include <gtest/gtest.h>

#include <string>

#include "base/system/mapped_file.h"
#include "unit/support/test_folder.h"

namespace ptkit::base {
namespace {

std::string text_of(const MappedFile& file) { return {file.bytes.begin(), file.bytes.end()}; }

TEST(MappedFile, HasTheBytesOfTheFile) {
  const test::TestFolder folder;
  std::string contents(100'000, 'x');
  contents += std::string("\r\n\x1a\0end", 7);
  const auto file = map_file(folder.write("a", contents));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(text_of(file.value()), contents);
}

TEST(MappedFile, OfAnEmptyFileIsEmpty) {
  const test::TestFolder folder;
  const auto file = map_file(folder.write("a", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file.value().bytes.empty());
}

TEST(MappedFile, IsThereAsLongAsItsOwner) {
  const test::TestFolder folder;
  auto file = map_file(folder.write("a", "0123"));
  ASSERT_TRUE(file.ok());
  const MappedFile kept = file.value();
  file.value() = {};
  EXPECT_EQ(text_of(kept), "0123");
}

TEST(MappedFile, OpensNamesThatAreNotAscii) {
  const test::TestFolder folder;
  const std::u8string name = u8"\u00fcber\u6c49.bin";
  const std::string path = folder.write("a", "0123");
  const auto parent = std::filesystem::path(path).parent_path();
  std::filesystem::rename(path, parent / std::filesystem::path(name));
  const std::u8string whole = (parent / std::filesystem::path(name)).u8string();
  const auto file = map_file(std::string(whole.begin(), whole.end()));
  ASSERT_TRUE(file.ok()) << file.failure().detail;
  EXPECT_EQ(text_of(file.value()), "0123");
}

TEST(MappedFile, FailureNamesThePathAndTheReason) {
  const test::TestFolder folder;
  const auto missing = map_file(folder.at("nowhere"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.failure().status, Status::IO_ERROR);
  EXPECT_TRUE(missing.failure().detail.starts_with(folder.at("nowhere") + ": cannot open: "));
  const auto itself = map_file(folder.at(""));
  ASSERT_FALSE(itself.ok());
  EXPECT_EQ(itself.failure().detail,
            folder.at("") + ": is a folder, not a regular file; give a file with a copy of the bytes");
}

}  // namespace
}  // namespace ptkit::base
