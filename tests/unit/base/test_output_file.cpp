#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/system/output_file.h"
#include "unit/support/test_folder.h"

namespace ptkit::base {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.at("file"); }
  [[nodiscard]] std::string contents() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_.at("")), fs::directory_iterator());
  }
  static Bytes bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  }

  ptkit::test::TestFolder folder_;
};

TEST_F(OutputFileTest, AppearsWithItsName) {
  auto file = OutputFile::create(path());
  ASSERT_TRUE(file.ok()) << file.failure().detail;
  EXPECT_TRUE(file.value().write(bytes_of("abc")));
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_FALSE(file.value().name());
  EXPECT_TRUE(file.value().write(bytes_of("def")));
  EXPECT_TRUE(file.value().close(std::nullopt));
  EXPECT_EQ(contents(), "abcdef");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, GoesOnWhereItIsCut) {
  auto file = OutputFile::create(path());
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file.value().write(bytes_of("abcdef")));
  file.value().cut(2);
  EXPECT_TRUE(file.value().write(bytes_of("X")));
  EXPECT_FALSE(file.value().name());
  EXPECT_TRUE(file.value().close(std::nullopt));
  EXPECT_EQ(contents(), "abX");
}

TEST_F(OutputFileTest, IsRemovedWithoutAName) {
  {
    auto file = OutputFile::create(path());
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file.value().write(bytes_of("abc")));
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(OutputFileTest, RefusesAFolder) {
  fs::create_directory(path());
  const auto file = OutputFile::create(path());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.failure().status, Status::IO_ERROR);
  EXPECT_NE(file.failure().detail.find("only regular files"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::base
