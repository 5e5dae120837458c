// Launches, stops and continues programs of this machine by ptrace.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/posix/signals_blocked.h"
#include "capture/linux/session/target_process.h"

namespace ptkit::capture::test {
namespace {

class TargetProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
    const bool may = std::ifstream("/proc/" + std::to_string(pid) + "/syscall").good();
    static_cast<void>(::kill(pid, SIGKILL));
    static_cast<void>(::waitpid(pid, nullptr, 0));
    if (!may) GTEST_SKIP() << "ptrace is not permitted here";
  }

  base::Result<TargetProcess> launch(const std::vector<std::string>& argv) {
    RecordOptions options;
    options.argv = argv;
    sigset_t mask{};
    const base::SignalsBlocked blocked(mask);
    return TargetProcess::launch(options, mask);
  }

  // The exit status. Waits for at most ten seconds, then kills the program.
  static std::optional<int> end_of(TargetProcess& target) {
    for (int i = 0; i < 1000 && !target.has_ended(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!target.has_ended()) target.kill();
    return target.exit_status();
  }
};

TEST_F(TargetProcessTest, StopsBeforeFirstInstruction) {
  auto target = launch({"/bin/sh", "-c", "exit 3"});
  ASSERT_TRUE(target.ok()) << target.failure().detail;
  EXPECT_FALSE(target.value().has_ended());
  const std::vector<Mapping> maps = read_maps(target.value().pid());
  EXPECT_TRUE(std::none_of(maps.begin(), maps.end(), [](const Mapping& one) {
    return one.path.find("/libc.so") != std::string::npos;
  }));
  target.value().release();
  EXPECT_EQ(end_of(target.value()), 3);
}

TEST_F(TargetProcessTest, StopsAtEntryPointWithLibrariesMapped) {
  auto target = launch({"/bin/sh", "-c", "exit 3"});
  ASSERT_TRUE(target.ok()) << target.failure().detail;
  const auto failure = target.value().run_to_entry();
  ASSERT_FALSE(failure) << failure->detail;
  const std::vector<Mapping> maps = read_maps(target.value().pid());
  EXPECT_TRUE(std::any_of(maps.begin(), maps.end(),
                          [](const Mapping& one) { return one.path.find("/libc.so") != std::string::npos; }));
  target.value().release();
  EXPECT_EQ(end_of(target.value()), 3);
}

// Stopped threads and children of a constructor must be detached: the constructor waits for them.
TEST_F(TargetProcessTest, DetachesThreadsAndChildrenOfConstructors) {
  ASSERT_EQ(::setenv("LD_PRELOAD", PTKIT_TEST_CONSTRUCTOR, 1), 0);
  ASSERT_EQ(::setenv("PTKIT_TEST_RETURNED", "3", 1), 0);
  auto target = launch({"/bin/sh", "-c", "exit 3"});
  ::unsetenv("LD_PRELOAD");
  ::unsetenv("PTKIT_TEST_RETURNED");
  ASSERT_TRUE(target.ok()) << target.failure().detail;
  ::alarm(30);  // ends a test that hangs
  const auto failure = target.value().run_to_entry();
  ::alarm(0);
  ASSERT_FALSE(failure) << failure->detail;
  EXPECT_FALSE(target.value().has_ended());
  target.value().release();
  EXPECT_EQ(end_of(target.value()), 3);
}

// An i386 ELF file that calls exit(7).
std::vector<std::uint8_t> small_program() {
  constexpr std::uint32_t kBase = 0x08048000;
  constexpr std::uint32_t kHeaders = 52 + 32;
  const std::vector<std::uint8_t> code{0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80};
  std::vector<std::uint8_t> out{0x7f, 'E', 'L', 'F', 1, 1, 1};
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  };
  out.resize(16);
  for (const std::uint32_t half : {2U, 3U}) put(half, 2);  // ET_EXEC, EM_386
  for (const std::uint32_t word : {1U, kBase + kHeaders, 52U, 0U, 0U}) put(word, 4);
  for (const std::uint32_t half : {52U, 32U, 1U, 0U, 0U, 0U}) put(half, 2);
  const auto size = static_cast<std::uint32_t>(kHeaders + code.size());
  for (const std::uint32_t word : {1U, 0U, kBase, kBase, size, size, 5U, 0x1000U}) put(word, 4);
  out.insert(out.end(), code.begin(), code.end());
  return out;
}

TEST_F(TargetProcessTest, FindsEntryPointOf32BitPrograms) {
  const std::string path = "/tmp/ptkit-small-" + std::to_string(::getpid());
  const std::vector<std::uint8_t> bytes = small_program();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  auto target = launch({path});
  std::filesystem::remove(path);
  if (!target.ok()) GTEST_SKIP() << "32-bit programs do not run here: " << target.failure().detail;
  const auto failure = target.value().run_to_entry();
  ASSERT_FALSE(failure) << failure->detail;
  Registers registers;
  ASSERT_TRUE(read_registers(target.value().pid(), registers));
  EXPECT_EQ(registers.ip, 0x08048054U);
  EXPECT_EQ(registers.mode, code::insn::ExecMode::BITS32);
  target.value().release();
  EXPECT_EQ(end_of(target.value()), 7);
}

// This process is the subreaper: it inherits the killed recorder's children. The program waits for a line in
// a constructor. It would execute the breakpoint after that.
TEST_F(TargetProcessTest, KilledRecorderLeavesNoBreakpoint) {
  const std::string fifo = "/tmp/ptkit-held-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  std::array<int, 2> pids{};
  ASSERT_EQ(::pipe(pids.data()), 0);
  const pid_t recorder = ::fork();
  if (recorder == 0) {
    ::setenv("LD_PRELOAD", PTKIT_TEST_CONSTRUCTOR, 1);
    ::setenv("PTKIT_TEST_WAIT", fifo.c_str(), 1);
    auto target = launch({"/bin/sh", "-c", "exit 3"});
    const int pid = target.ok() ? target.value().pid() : 0;
    static_cast<void>(!::write(pids[1], &pid, sizeof pid));
    if (target.ok()) static_cast<void>(target.value().run_to_entry());
    ::_exit(1);
  }
  int pid = 0;
  ASSERT_EQ(::read(pids[0], &pid, sizeof pid), ssize_t{sizeof pid});
  ASSERT_NE(pid, 0);
  ::alarm(60);
  const int line = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);  // blocks until the program reads
  ASSERT_EQ(::kill(recorder, SIGKILL), 0);
  ASSERT_EQ(::waitpid(recorder, nullptr, 0), recorder);
  static_cast<void>(::signal(SIGPIPE, SIG_IGN));
  static_cast<void>(!::write(line, "\n", 1));
  ::close(line);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  ::alarm(0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  for (const int one : pids) ::close(one);
  static_cast<void>(::prctl(PR_SET_CHILD_SUBREAPER, 0));
  std::filesystem::remove(fifo);
}

TEST_F(TargetProcessTest, ReportsExitBeforeEntryPoint) {
  ASSERT_EQ(::setenv("LD_PRELOAD", PTKIT_TEST_CONSTRUCTOR, 1), 0);
  ASSERT_EQ(::setenv("PTKIT_TEST_RETURNED", "4", 1), 0);  // the child exits with 3: _exit(99)
  auto target = launch({"/bin/sh", "-c", "exit 3"});
  ::unsetenv("LD_PRELOAD");
  ::unsetenv("PTKIT_TEST_RETURNED");
  ASSERT_TRUE(target.ok()) << target.failure().detail;
  const auto failure = target.value().run_to_entry();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("exit status 99"), std::string::npos) << failure->detail;
  EXPECT_TRUE(target.value().has_ended());
}

std::string attach_fails(int pid) {
  const auto target = TargetProcess::attach(pid);
  EXPECT_FALSE(target.ok());
  return target.ok() ? "" : target.failure().detail;
}

TEST(TargetProcess, ReportsPidfdOpenErrors) {
  EXPECT_NE(attach_fails(1 << 23).find("there is no process 8388608"), std::string::npos);
  EXPECT_NE(attach_fails(-1).find("there is no process -1"), std::string::npos);
  std::thread([] {  // a thread ID is not a process ID
    EXPECT_NE(attach_fails(static_cast<int>(::syscall(SYS_gettid))).find("there is no process"),
              std::string::npos);
  })
      .join();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string text = attach_fails(::getpid());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_NE(text.find("cannot be watched"), std::string::npos) << text;
  EXPECT_NE(text.find("ulimit -n"), std::string::npos) << text;
}

TEST(TargetProcess, NamesPtraceScope) {
  EXPECT_NE(ptrace_failure(EPERM, "2").detail.find("ptrace_scope is 2: run with CAP_SYS_PTRACE"),
            std::string::npos);
  EXPECT_NE(ptrace_failure(EPERM, "3").detail.find("until the next boot"), std::string::npos);
  EXPECT_NE(ptrace_failure(EPERM, "1").detail.find("in a container"), std::string::npos);
  EXPECT_NE(ptrace_failure(EPERM, "").detail.find("in a container"), std::string::npos);
  EXPECT_NE(ptrace_failure(ESRCH, "2").detail.find("No such process"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::capture::test
