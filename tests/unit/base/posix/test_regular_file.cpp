#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/posix/regular_file.h"

namespace ptkit::base {
namespace {

class RegularFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "ptkit-base-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }

  static std::string refusal(const std::string& path) {
    const auto file = RegularFile::open(path);
    if (file.ok()) return "(it opened)";
    EXPECT_EQ(file.failure().status, Status::IO_ERROR);
    return file.failure().detail;
  }

  std::string folder_;
};

TEST_F(RegularFiles, AreReadAtAnyOffset) {
  std::ofstream(at("a")) << "0123456789";
  const auto file = RegularFile::open(at("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().size(), 10U);
  std::array<std::uint8_t, 8> bytes{};
  ASSERT_EQ(file.value().read(2, bytes), 8U);
  EXPECT_EQ(bytes.front(), '2');
  EXPECT_EQ(file.value().read(7, bytes), 3U);
  EXPECT_EQ(file.value().read(11, bytes), 0U);
}

TEST_F(RegularFiles, AreOpenedThroughLinks) {
  std::ofstream(at("a")) << "0123";
  std::filesystem::create_symlink(at("a"), at("link"));
  const auto file = RegularFile::open(at("link"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().size(), 4U);
}

TEST_F(RegularFiles, RejectFifosWithoutBlocking) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refusal(at("fifo")),
            at("fifo") + ": is a FIFO, not a regular file; give a file with a copy of the bytes");
}

TEST_F(RegularFiles, RejectDevicesFoldersAndSockets) {
  EXPECT_EQ(refusal("/dev/zero"),
            "/dev/zero: is a device, not a regular file; give a file with a copy of the bytes");
  EXPECT_EQ(refusal(folder_),
            folder_ + ": is a folder, not a regular file; give a file with a copy of the bytes");
  const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = at("socket");
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(refusal(path), path + ": is a socket, not a regular file; give a file with a copy of the bytes");
  ::close(number);
}

TEST_F(RegularFiles, NameTheReasonOfAFailure) {
  EXPECT_EQ(refusal(at("nowhere")), at("nowhere") + ": cannot open: No such file or directory");
}

TEST_F(RegularFiles, CloseTheirDescriptorOnce) {
  std::ofstream(at("a")) << "0123";
  std::ofstream(at("b")) << "45";
  auto first = RegularFile::open(at("a"));
  auto second = RegularFile::open(at("b"));
  ASSERT_TRUE(first.ok() && second.ok());
  const int number = second.value().descriptor();
  first.value() = std::move(second.value());
  EXPECT_EQ(first.value().descriptor(), number);
  EXPECT_EQ(first.value().size(), 2U);
  const RegularFile moved = std::move(first.value());
  std::array<std::uint8_t, 2> bytes{};
  EXPECT_EQ(moved.read(0, bytes), 2U);
}

}  // namespace
}  // namespace ptkit::base
