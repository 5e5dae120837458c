// New files: other users can neither read nor replace them during the write.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/posix/new_file.h"
#include "base/system/new_contents.h"
#include "base/system/new_folder.h"

namespace ptkit::base {
namespace {

namespace fs = std::filesystem;

class NewFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ptkit-new-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    mask_ = ::umask(0);
  }
  void TearDown() override {
    ::umask(mask_);
    fs::remove_all(folder_);
  }

  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& text) const { std::ofstream(at(name)) << text; }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(at(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static void write(const NewFile& file, const std::string& text) {
    ASSERT_EQ(::write(file.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  static mode_t mode_of(const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
  }
  static std::string refusal_of(const std::string& path) {
    const auto created = NewFile::create(path);
    return created.ok() ? std::string() : created.failure().detail;
  }

  fs::path folder_;
  mode_t mask_ = 0;
};

TEST_F(NewFiles, AreWrittenInOneCall) {
  put("a", "before");
  const std::string text = "after";
  const Bytes bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  EXPECT_FALSE(write_new_file(at("a"), bytes));
  EXPECT_EQ(text_of("a"), text);
  EXPECT_EQ(files(), 1U);
  const auto failure = write_new_file(at("none/a"), bytes);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->status, Status::IO_ERROR);
}

TEST_F(NewFiles, AppearCompleteAndPrivate) {
  put("a", "before");
  auto created = NewFile::create(at("a"));
  ASSERT_TRUE(created.ok()) << created.failure().detail;
  write(created.value(), "after");
  EXPECT_EQ(text_of("a"), "before");
  for (const auto& one : fs::directory_iterator(folder_)) {
    if (one.path().filename() != "a") {
      EXPECT_EQ(mode_of(one.path().string()), 0600U);
    }
  }
  EXPECT_EQ(created.value().rename(), std::nullopt);
  EXPECT_EQ(text_of("a"), "after");
  EXPECT_EQ(mode_of(at("a")), 0600U);
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFiles, AreRemovedUnlessRenamed) {
  {
    auto created = NewFile::create(at("a"));
    ASSERT_TRUE(created.ok());
    const NewFile moved(std::move(created.value()));
    EXPECT_EQ(files(), 1U);
    EXPECT_FALSE(fs::exists(at("a")));
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(NewFiles, HaveUnpredictableNames) {
  auto first = NewFile::create(at("a"));
  auto second = NewFile::create(at("a"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(files(), 2U);
}

TEST_F(NewFiles, RejectPathsOfOtherFileKinds) {
  put("target", "precious");
  fs::create_symlink(at("target"), at("link"));
  fs::create_symlink(at("nothing"), at("dangling"));
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  fs::create_directory(at("folder"));
  const std::string rest = ", and only regular files are written; give another name";
  EXPECT_EQ(refusal_of(at("link")), at("link") + ": is a symbolic link" + rest);
  EXPECT_EQ(refusal_of(at("dangling")), at("dangling") + ": is a symbolic link" + rest);
  EXPECT_EQ(refusal_of(at("fifo")), at("fifo") + ": is a FIFO" + rest);
  EXPECT_EQ(refusal_of(at("folder")), at("folder") + ": is a folder" + rest);
  EXPECT_EQ(refusal_of("/dev/null"), "/dev/null: is a device" + rest);
  EXPECT_EQ(refusal_of(at("no/a")), at("no/a") + ": cannot create: No such file or directory");
  EXPECT_EQ(refusal_of(at("folder/")), at("folder/") + ": cannot create: Is a directory");
  EXPECT_EQ(text_of("target"), "precious");
  EXPECT_EQ(files(), 5U);
}

// Another user creates a link to a victim's file at the path during the write.
TEST_F(NewFiles, ReplaceLinksWithoutFollowingThem) {
  put("victim", "precious");
  auto created = NewFile::create(at("a"));
  ASSERT_TRUE(created.ok());
  fs::create_symlink(at("victim"), at("a"));
  write(created.value(), "trace");
  EXPECT_EQ(created.value().rename(), std::nullopt);
  EXPECT_EQ(text_of("victim"), "precious");
  EXPECT_FALSE(fs::is_symlink(at("a")));
  EXPECT_EQ(text_of("a"), "trace");
}

// A link to another folder replaces the folder during the write.
TEST_F(NewFiles, StayInTheirFolder) {
  fs::create_directory(at("one"));
  fs::create_directory(at("two"));
  auto created = NewFile::create(at("one/a"));
  ASSERT_TRUE(created.ok());
  fs::rename(at("one"), at("moved"));
  fs::create_symlink(at("two"), at("one"));
  EXPECT_EQ(created.value().rename(), std::nullopt);
  EXPECT_TRUE(fs::exists(at("moved/a")));
  EXPECT_TRUE(fs::is_empty(at("two")));
}

TEST_F(NewFiles, BelongToTheSudoCaller) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kUser = 65534;
  ASSERT_EQ(::setenv("SUDO_UID", "65534", 1), 0);
  ASSERT_EQ(::setenv("SUDO_GID", "65533", 1), 0);
  const auto caller = sudo_caller();
  ::setenv("SUDO_GID", "65533x", 1);
  EXPECT_FALSE(sudo_caller());
  ::unsetenv("SUDO_UID");
  ::unsetenv("SUDO_GID");
  EXPECT_FALSE(sudo_caller());
  ASSERT_TRUE(caller);
  auto created = NewFile::create(at("a"));
  ASSERT_TRUE(created.ok());
  set_owner(created.value().fd(), caller);
  ASSERT_EQ(created.value().rename(), std::nullopt);
  struct stat info {};
  ASSERT_EQ(::lstat(at("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kUser);
  EXPECT_EQ(info.st_gid, kUser - 1);
}

TEST_F(NewFiles, FoldersAppearComplete) {
  fs::create_directory(at("a"));
  put("a/old", "");
  {
    auto dropped = NewFolder::create(at("a"));
    ASSERT_TRUE(dropped.ok());
    std::ofstream(dropped.value().written() + "/x") << "x";
    EXPECT_EQ(mode_of(dropped.value().written()), 0700U);
  }
  EXPECT_EQ(files(), 1U);
  EXPECT_TRUE(fs::exists(at("a/old")));
  auto created = NewFolder::create(at("a"));
  ASSERT_TRUE(created.ok());
  std::ofstream(created.value().written() + "/new") << "x";
  EXPECT_EQ(created.value().rename(std::nullopt), std::nullopt);
  EXPECT_TRUE(fs::exists(at("a/new")));
  EXPECT_FALSE(fs::exists(at("a/old")));
  EXPECT_EQ(mode_of(at("a")), 0700U);
  EXPECT_EQ(files(), 1U);
  fs::create_directory_symlink(at("a"), at("link"));
  EXPECT_FALSE(NewFolder::create(at("link")).ok());
}

}  // namespace
}  // namespace ptkit::base
