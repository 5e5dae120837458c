// Files without a name: other users cannot open them, and they end with the process.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/posix/unnamed_file.h"

namespace ptkit::base {
namespace {

namespace fs = std::filesystem;

class UnnamedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/var/tmp/ptkit-unnamed-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    if (const char* const before = std::getenv("TMPDIR")) before_ = before;
    mask_ = ::umask(0);
  }
  void TearDown() override {
    ::umask(mask_);
    if (before_.empty()) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", before_.c_str(), 1);
    }
    fs::remove_all(folder_);
  }
  static std::string path_of(const UnnamedFile& file) {
    return fs::read_symlink("/proc/self/fd/" + std::to_string(file.descriptor())).string();
  }

  std::string folder_;
  std::string before_;
  mode_t mask_ = 0;
};

TEST_F(UnnamedFiles, HasNoNameAndMode0600) {
  const auto file = UnnamedFile::create_in(folder_);
  ASSERT_TRUE(file.ok()) << file.failure().detail;
  EXPECT_TRUE(fs::is_empty(folder_));
  struct stat info {};
  ASSERT_EQ(::fstat(file.value().descriptor(), &info), 0);
  EXPECT_EQ(info.st_nlink, 0U);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
}

TEST_F(UnnamedFiles, KeepsWhatIsWritten) {
  const auto file = UnnamedFile::create_in(folder_);
  ASSERT_TRUE(file.ok()) << file.failure().detail;
  EXPECT_FALSE(file.value().reserve(4096, 10'000));
  EXPECT_FALSE(file.value().reserve(0, 4096));
  const std::string text(9'000, 'x');
  ASSERT_TRUE(file.value().write(5'000, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  std::string found(text.size() + 2, ' ');
  ASSERT_EQ(::pread(file.value().descriptor(), found.data(), found.size(), 4'999),
            static_cast<ssize_t>(found.size()));
  EXPECT_EQ(found, std::string(1, '\0') + text + std::string(1, '\0'));
}

TEST_F(UnnamedFiles, IsInTheFolderOfTheEnvironment) {
  ::setenv("TMPDIR", folder_.c_str(), 1);
  const auto file = UnnamedFile::create();
  ASSERT_TRUE(file.ok()) << file.failure().detail;
  EXPECT_TRUE(path_of(file.value()).starts_with(folder_ + "/")) << path_of(file.value());
  ::unsetenv("TMPDIR");
  const auto usual = UnnamedFile::create();
  ASSERT_TRUE(usual.ok()) << usual.failure().detail;
  EXPECT_TRUE(path_of(usual.value()).starts_with("/var/tmp/")) << path_of(usual.value());
  ::setenv("TMPDIR", "/does/not/exist", 1);
  const auto none = UnnamedFile::create();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.failure().detail, "/does/not/exist: cannot create a file: No such file or directory");
}

TEST_F(UnnamedFiles, ReportsDiskWithoutRoom) {
  const auto file = UnnamedFile::create_in(folder_);
  ASSERT_TRUE(file.ok()) << file.failure().detail;
  const auto failure = file.value().reserve(0, std::uint64_t{1} << 60U);
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->detail.starts_with(folder_ + ": ")) << failure->detail;
  EXPECT_NE(failure->detail.find(" and 1152921504606846976 are needed"), std::string::npos)
      << failure->detail;
}

TEST_F(UnnamedFiles, RefusesFoldersInMemory) {
  const auto file = UnnamedFile::create_in("/dev/shm");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.failure().detail, "/dev/shm: its files are in memory (tmpfs)");
}

}  // namespace
}  // namespace ptkit::base
