// The perf back end in unusual environments: file names, namespaces, CPUs, limits.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/posix/map_memory.h"
#include "capture/linux/process/process.h"
#include "recording.h"
#include "unit/support/chroot.h"

namespace ptkit::capture::test {
namespace {

class PerfEnvironmentTest : public PerfRecording {
 protected:
  PerfEnvironmentTest() {
    reset_unit_options(options_);
    options_.pid = ::getpid();
    options_.seconds = std::chrono::milliseconds(50);
  }

  void filter(const std::string& file, std::uint64_t first, std::uint64_t last) {
    options_.filters = {{FilterRequest::Kind::FILTER, file, "", first, last}};
  }
};

using PerfFiles = PerfEnvironmentTest;
using PerfCpus = PerfEnvironmentTest;

// Maps a page of code from a file, until destruction.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) : path_(path) {
    std::ofstream(path) << std::string(64, 'x');
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    memory_ = base::map_memory(kPerfPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    ::close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    ::munmap(memory_, kPerfPage);
    std::filesystem::remove(path_);
  }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory_); }

 private:
  std::string path_;
  void* memory_ = nullptr;
};

// ---- filters

TEST_F(PerfFiles, FilterPathsMayHaveBlanksAndCommas) {
  const std::string path = "/tmp/ptkit a, b " + std::to_string(::getpid());
  const MappedFile file(path);
  filter(path, 0, 15);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(kernel_.of_type(kPtType)[0]->filter, "filter 0x0/0x10@" + path);
  kernel_.errors[PERF_EVENT_IOC_SET_FILTER] = EACCES;
  EXPECT_NE(refused().find("cannot look into the file (filter 0x0/0x10@" + path + ": "), std::string::npos)
      << refused();
}

std::uint64_t inode_of(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? file.st_ino : 0;
}

// Hides the file at that path, as a mount namespace of a container does. False: not permitted.
bool map_other_file(const std::string& folder) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return false;
  if (::mount("none", folder.c_str(), "tmpfs", 0, nullptr) != 0) return false;
  for (const char* name : {"/first", "/second", "/code"})
    std::ofstream(folder + name) << std::string(64, 'y');
  const int file = ::open((folder + "/code").c_str(), O_RDONLY | O_CLOEXEC);
  return file >= 0 && base::map_memory(kPerfPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED;
}

TEST_F(PerfFiles, ResolveInNamespaceOfProcess) {
  const std::string folder = "/tmp/ptkit-mounts-" + std::to_string(::getpid());
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  std::ofstream(folder + "/code") << std::string(64, 'x');
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(::prctl(PR_SET_PDEATHSIG, SIGKILL));
    const char answer = map_other_file(folder) ? 'y' : 'n';
    static_cast<void>(!::write(ready[1], &answer, 1));
    for (;;) ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  std::vector<std::uint64_t> found;
  const std::uint64_t theirs = inode_of("/proc/" + std::to_string(child) + "/root" + folder + "/code");
  const bool has_prefix = answer == 'y' && shows_prefix(child, folder + "/code");
  if (answer == 'y' && !has_prefix) {
    options_.pid = child;
    filter(folder + "/code", 0, 15);
    const auto result = record();
    EXPECT_TRUE(result.ok()) << result.failure().detail;
    if (result.ok()) found = kernel_.of_type(kPtType)[0]->inodes;
  }
  const std::uint64_t ours = inode_of(folder + "/code");
  static_cast<void>(::kill(child, SIGKILL));
  static_cast<void>(::waitpid(child, nullptr, 0));
  std::filesystem::remove_all(folder);
  for (const int one : ready) ::close(one);
  if (answer != 'y') GTEST_SKIP() << "a namespace of mounts is not permitted here";
  if (has_prefix) GTEST_SKIP() << kPrefixInChroot;
  EXPECT_NE(theirs, ours);
  EXPECT_EQ(found, std::vector<std::uint64_t>{theirs});
}

TEST_F(PerfFiles, RejectFiltersOfAnonymousUserCode) {
  void* memory = base::map_memory(kPerfPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  filter("", address, address + 15);
  const std::string text = refused();
  ::munmap(memory, kPerfPage);
  EXPECT_NE(text.find("no file is mapped at all of 0x"), std::string::npos) << text;
  EXPECT_EQ(text.find("kernel's"), std::string::npos) << text;
  for (const Mapping& one : read_maps(::getpid())) {
    if (one.path != "[vdso]") continue;
    filter("", one.begin, one.begin + 15);
    EXPECT_NE(refused().find("is in [vdso], which perf cannot find by a path"), std::string::npos)
        << refused();
  }
  const std::string path = "/tmp/ptkit-gone-" + std::to_string(::getpid());
  const MappedFile file(path);
  std::filesystem::remove(path);
  filter("", file.address(), file.address() + 15);
  EXPECT_NE(refused().find("(deleted), which perf cannot find"), std::string::npos) << refused();
}

TEST_F(PerfFiles, RejectStartAndStopFilters) {
  for (const auto kind : {FilterRequest::Kind::START, FilterRequest::Kind::STOP}) {
    options_.filters = {{kind, "", "main", 0, 0}};
    EXPECT_NE(refused().find("filters: a processor has no start and stop"), std::string::npos) << refused();
  }
}

// ---- processors and processes

TEST_F(PerfCpus, WarnsOfCpusOnlinedWhileRecording) {
  kernel_.script.emplace_back(
      [](FakeKernel& kernel) { kernel.files["/sys/devices/system/cpu/online"] = "0-3"; });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::CPUS_CAME_ONLINE, "2, 3"));
  kernel_.script.clear();
  options_.seconds = std::chrono::milliseconds(50);
  options_.pid = 0;
  options_.cpus.numbers = {1};  // CPUs are chosen
  kernel_.files["/sys/devices/system/cpu/online"] = "0-3";
  const auto chosen = record();
  ASSERT_TRUE(chosen.ok()) << chosen.failure().detail;
  EXPECT_FALSE(warns(chosen.value().warnings, WarningCode::CPUS_CAME_ONLINE));
}

TEST_F(PerfCpus, WarnsInPidNamespace) {
  options_.pid = 0;
  options_.cpus.all = true;
  auto result = record();
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::PID_NAMESPACE));
  kernel_.files["/proc/2/comm"] = "sh";
  result = record();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::PID_NAMESPACE));
  options_.cpus.all = false;
  options_.pid = ::getpid();
  result = record();
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::PID_NAMESPACE));
}

// After the first thread of the process has exited, /proc/PID/maps is empty.
TEST(PerfProcess, SurvivesExitOfFirstThread) {
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(::prctl(PR_SET_PDEATHSIG, SIGKILL));
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);
  }
  const std::string stat = "/proc/" + std::to_string(child) + "/stat";
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    std::getline(std::ifstream(stat), text);
    if (text.find(") Z ") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const std::vector<Mapping> maps = read_maps(child);
  const std::string program = program_path(child);
  std::array<std::uint8_t, 4> bytes{};
  const auto code = std::find_if(maps.begin(), maps.end(), [](const Mapping& one) { return one.executable; });
  const std::size_t got = code == maps.end() ? 0 : Memory(child).read(code->begin, bytes);
  static_cast<void>(::kill(child, SIGKILL));
  static_cast<void>(::waitpid(child, nullptr, 0));
  EXPECT_FALSE(maps.empty());
  EXPECT_EQ(program, std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(got, 4U);
}

// ---- open files

TEST_F(PerfFiles, ReportFileLimit) {
  const std::string words = "perf needs a file for each thread on each processor";
  options_.triggers.resize(1);
  options_.triggers[0].event = TriggerRequest::Event::ADDRESS;
  options_.triggers[0].address = reinterpret_cast<std::uint64_t>(&std::abort);
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.type == PERF_TYPE_BREAKPOINT ? EMFILE : 0;
  };
  EXPECT_NE(refused().find(words), std::string::npos) << refused();
  options_.triggers.clear();
  options_.levels.kernel = true;
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.text_poke != 0 ? ENFILE : 0; };
  EXPECT_NE(refused().find(words), std::string::npos) << refused();
}

// Runs in a child, as the hard limit cannot be raised again. Returns the failed step, or 0.
int open_near_the_limit() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.exclude_kernel = 1;
  if (open_perf()->open(attr, 0, -1) < 0) return 77;
  rlimit limit{};
  const int next = ::dup(0);  // the lowest free file descriptor
  ::close(next);
  limit = {static_cast<rlim_t>(next) + 8, static_cast<rlim_t>(next) + 50};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  int opened = 0;
  {
    const auto port = open_perf();
    while (opened < 100 && port->open(attr, 0, -1) >= 0) ++opened;
    if (port->open(attr, 0, -1) != -EMFILE) return 2;
    // File descriptors are left for other files, but not for events.
    const int file = ::dup(0);
    if (file < 0) return 3;
    ::close(file);
  }
  if (opened < 10 || opened > 18) return 4;
  rlimit after{};
  static_cast<void>(::getrlimit(RLIMIT_NOFILE, &after));
  return after.rlim_cur == limit.rlim_cur ? 0 : 5;
}

TEST(PerfPort, RaisesFileLimitAndKeepsReserve) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(open_near_the_limit());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "perf_event_open() is not permitted here";
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

}  // namespace
}  // namespace ptkit::capture::test
