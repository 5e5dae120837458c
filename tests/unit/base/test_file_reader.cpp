// Files with names beyond ASCII are read at any offset and written at once.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/file_path.h"
#include "base/system/file_reader.h"
#include "base/system/new_contents.h"

namespace ptkit::base {
namespace {

namespace fs = std::filesystem;

class FileReaders : public testing::Test {
 protected:
  FileReaders() : folder_(to_bytes(fs::temp_directory_path()) + "/ptkit \xc3\xa4 \xe6\xbc\xa2") {
    fs::create_directories(to_path(folder_));
  }
  ~FileReaders() override {
    std::error_code ignored;
    fs::remove_all(to_path(folder_), ignored);
  }
  [[nodiscard]] std::string at(const char* name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(FileReaders, ReadsAtAnyOffset) {
  std::vector<std::uint8_t> bytes(1000);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  ASSERT_FALSE(write_new_file(at("\xc3\xa9"), bytes));
  const auto file = FileReader::open(at("\xc3\xa9"));
  ASSERT_TRUE(file.ok());
  std::array<std::uint8_t, 16> out{};
  EXPECT_EQ(file.value().read(300, out), out.size());
  EXPECT_EQ(out[0], 300 % 256);
  EXPECT_EQ(file.value().read(990, out), 10U);
  EXPECT_EQ(file.value().read(1000, out), 0U);
}

TEST_F(FileReaders, RefusesFoldersAndAbsentFiles) {
  EXPECT_EQ(FileReader::open(folder_).failure().status, Status::IO_ERROR);
  EXPECT_NE(FileReader::open(at("absent")).failure().detail.find("absent: cannot open: "), std::string::npos);
}

TEST_F(FileReaders, NewFilesReplaceEarlierOnesAndNoFolders) {
  const std::array<std::uint8_t, 3> first{1, 2, 3};
  const std::array<std::uint8_t, 1> second{4};
  ASSERT_FALSE(write_new_file(at("a"), first));
  ASSERT_FALSE(write_new_file(at("a"), second));
  EXPECT_EQ(fs::file_size(to_path(at("a"))), 1U);
  EXPECT_FALSE(refused_output(at("a")));
  EXPECT_TRUE(refused_output(folder_));
  EXPECT_TRUE(write_new_file(folder_, first));
  EXPECT_TRUE(mode_of_new_file(at("b")).ok());
  EXPECT_FALSE(fs::exists(to_path(at("b"))));
}

TEST(FilePath, KeepsBytes) {
  const std::string path = "folder \xc3\xa4/\xe6\xbc\xa2.ptk";
  EXPECT_EQ(to_bytes(to_path(path)), path);
  EXPECT_EQ(to_bytes(to_path(path).filename()), "\xe6\xbc\xa2.ptk");
}

}  // namespace
}  // namespace ptkit::base
