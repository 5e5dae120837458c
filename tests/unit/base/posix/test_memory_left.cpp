#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/memory_left.h"

namespace ptkit::base {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

// A folder with the files of a machine's /proc and /sys.
class MemoryLeftTest : public testing::Test {
 protected:
  MemoryLeftTest() : root_(fs::path(testing::TempDir()) / ("memory_left_" + std::to_string(::getpid()))) {
    write("proc/meminfo", "MemTotal:  16777216 kB\nMemFree:  1024 kB\nMemAvailable:   8388608 kB\n");
  }
  ~MemoryLeftTest() override { fs::remove_all(root_); }
  MemoryLeftTest(const MemoryLeftTest&) = delete;
  MemoryLeftTest& operator=(const MemoryLeftTest&) = delete;

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void write_cgroup(const std::string& folder, std::uint64_t maximum, std::uint64_t used,
                    std::uint64_t cache) const {
    write(folder + "/memory.max", std::to_string(maximum) + "\n");
    write(folder + "/memory.current", std::to_string(used) + "\n");
    write(folder + "/memory.stat", "anon 17\nfile 99\ninactive_file " + std::to_string(cache) +
                                       "\nactive_file 0\nworkingset_refault_file 5\n");
  }
  [[nodiscard]] MemoryLeft left() const { return memory_left(root_.string()); }

  fs::path root_;
};

TEST_F(MemoryLeftTest, WithoutFilesThereIsNoLimit) {
  const MemoryLeft none = memory_left((root_ / "nowhere").string());
  EXPECT_EQ(none.least().bytes, UINT64_MAX);
  EXPECT_EQ(none.least().limit, MemoryLimit::NONE);
  EXPECT_EQ(none.least().usable(), UINT64_MAX);
}

TEST_F(MemoryLeftTest, MemAvailableIsInKibibytes) {
  EXPECT_EQ(left().least().bytes, 8192 * kMiB);
  EXPECT_EQ(left().least().limit, MemoryLimit::MEM_AVAILABLE);
  EXPECT_EQ(left().address_space.bytes, UINT64_MAX);
}

TEST_F(MemoryLeftTest, ResourceLimitsMinusCurrentUse) {
  write("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             1073741824           unlimited            bytes     \n"
        "Max address space         2147483648           unlimited            bytes     \n");
  write("proc/self/status", "Name:\tx\nVmPeak:\t 900000 kB\nVmSize:\t  1572864 kB\nVmData:\t  102400 kB\n");
  EXPECT_EQ(left().address_space.bytes, 512 * kMiB);
  EXPECT_EQ(left().address_space.limit, MemoryLimit::RLIMIT_AS);
  EXPECT_EQ(left().least().limit, MemoryLimit::RLIMIT_AS);
  write("proc/self/status", "VmSize:\t  1024 kB\nVmData:\t  1047552 kB\n");
  EXPECT_EQ(left().address_space.bytes, kMiB);
  EXPECT_EQ(left().address_space.limit, MemoryLimit::RLIMIT_DATA);
  write("proc/self/status", "VmSize:\t  9999999 kB\nVmData:\t  0 kB\n");
  EXPECT_EQ(left().address_space.bytes, 0U) << "the process has more than a limit that came later";
}

TEST_F(MemoryLeftTest, CgroupV2ReadsAllCgroupsUpToTheMountPoint) {
  write("proc/self/cgroup", "0::/user.slice/job\n");
  write("proc/self/mountinfo",
        "25 20 0:22 / /sys rw,nosuid - sysfs sysfs rw\n"
        "29 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  write_cgroup("sys/fs/cgroup/user.slice/job", 4096 * kMiB, 1024 * kMiB, 256 * kMiB);
  EXPECT_EQ(left().pages.bytes, 3328 * kMiB) << "page cache can be dropped";
  EXPECT_EQ(left().pages.limit, MemoryLimit::CGROUP);
  write_cgroup("sys/fs/cgroup/user.slice", 5120 * kMiB, 4096 * kMiB, 0);
  EXPECT_EQ(left().pages.bytes, 1024 * kMiB) << "others in the same slice have taken the rest";
  write("sys/fs/cgroup/user.slice/memory.max", "max\n");
  write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  EXPECT_EQ(left().pages.limit, MemoryLimit::MEM_AVAILABLE);
}

TEST_F(MemoryLeftTest, CgroupV1HasOtherFileNames) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/batch/7\n0::/\n");
  write("proc/self/mountinfo",
        "34 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        "38 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  const std::string folder = "sys/fs/cgroup/memory/batch/7";
  write(folder + "/memory.limit_in_bytes", std::to_string(1024 * kMiB) + "\n");
  write(folder + "/memory.usage_in_bytes", std::to_string(1000 * kMiB) + "\n");
  write(folder + "/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(70 * kMiB) +
                                     "\ntotal_active_file " + std::to_string(6 * kMiB) + "\n");
  EXPECT_EQ(left().pages.bytes, 100 * kMiB);
  EXPECT_EQ(left().pages.limit, MemoryLimit::CGROUP);
  write(folder + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(left().pages.limit, MemoryLimit::MEM_AVAILABLE) << "that is how version 1 writes no limit";
}

TEST_F(MemoryLeftTest, ContainerHasItsCgroupAtTheMountPoint) {
  write("proc/self/cgroup", "0::/docker/abc\n");
  write("proc/self/mountinfo", "29 25 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  write_cgroup("sys/fs/cgroup", 100 * kMiB, 60 * kMiB, 0);
  EXPECT_EQ(left().pages.bytes, 40 * kMiB);
  EXPECT_EQ(left().pages.limit, MemoryLimit::CGROUP);
}

TEST_F(MemoryLeftTest, LimitIsTheLeastOfCgroupsAndMachine) {
  EXPECT_EQ(memory_limit(root_.string()), 16384 * kMiB);
  write("proc/self/cgroup", "0::/user.slice/job\n");
  write("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write_cgroup("sys/fs/cgroup/user.slice", 3000 * kMiB, 1, 1);
  write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  EXPECT_EQ(memory_limit(root_.string()), 3000 * kMiB);
  EXPECT_EQ(memory_limit((root_ / "nowhere").string()), UINT64_MAX);
}

TEST_F(MemoryLeftTest, UsableKeepsAnEighthInReserve) {
  EXPECT_EQ((MemoryBound{800 * kMiB, MemoryLimit::CGROUP}.usable()), 700 * kMiB);
  EXPECT_EQ((MemoryBound{64 * 1024 * kMiB, MemoryLimit::CGROUP}.usable()), (64 * 1024 - 512) * kMiB);
}

TEST(MemoryLeft, ReadsTheLimitsOfThisProcess) {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  if (!(statm >> pages)) GTEST_SKIP() << "no /proc here";
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const std::uint64_t limit = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + 64 * kMiB;
  const struct rlimit low { limit, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &low), 0);
  struct rlimit now {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &now), 0);
  if (now.rlim_cur != limit) GTEST_SKIP() << "RLIMIT_AS cannot be set here (qemu-user)";
  const MemoryBound left = memory_left().least();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LE(left.bytes, 64 * kMiB);
  EXPECT_GT(left.bytes, 32 * kMiB);
  EXPECT_EQ(memory_limit_name(left.limit), "RLIMIT_AS");
}

}  // namespace
}  // namespace ptkit::base
