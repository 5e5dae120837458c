// Programs of this machine that run on hostile input.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/confined/program.h"
#include "base/confined/syscall_filter.h"
#include "unit/support/scratch.h"

namespace ptkit::base::confined::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

base::Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

struct Ended {
  std::string output;
  std::string problem;
};

Ended run(const std::string& path, const std::vector<std::string>& arguments,
          milliseconds time = milliseconds(60000)) {
  Ended result;
  const base::Fd input = sealed_copy(bytes_of("contents"));
  result.problem = run_program(path, arguments, input, {kMiB, 256 * kMiB, time}, [&](std::string_view part) {
    result.output += part;
    return true;
  });
  return result;
}

Ended shell(const std::string& script, milliseconds time = milliseconds(60000)) {
  return run("/bin/sh", {"-c", script}, time);
}

TEST(Program, ReadsItsInput) {
  const Ended got = run("/bin/cat", {std::string(kProgramInput)});
  EXPECT_EQ(got.output, "contents");
  EXPECT_EQ(got.problem, "");
}

TEST(Program, HasNoPrivilegesAndNoEnvironment) {
  const Ended status = run("/bin/cat", {"/proc/self/status"});
  EXPECT_EQ(status.problem, "");
  const std::string user = std::to_string(::getuid() == 0 ? 65534 : ::getuid());
  EXPECT_NE(status.output.find("Uid:\t" + user + "\t" + user + "\t" + user + "\t" + user), std::string::npos);
  for (const char* const set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    EXPECT_NE(status.output.find(std::string(set) + ":\t0000000000000000"), std::string::npos) << set;
  EXPECT_NE(status.output.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(status.output.find("Seccomp:\t2"), std::string::npos);
  const Ended environment = run("/usr/bin/env", {});
  EXPECT_EQ(environment.problem, "");
  EXPECT_EQ(environment.output, "");
}

TEST(Program, HasNoOtherDescriptors) {
  const base::Fd kept(::open("/dev/null", O_RDONLY));  // would be inherited
  const Ended got = run("/bin/ls", {"/proc/self/fd"});
  EXPECT_EQ(got.problem, "");
  EXPECT_EQ(got.output, "0\n1\n2\n3\n4\n");  // the last one is that of the folder
}

TEST(Program, WritesNoFiles) {
  const formats::test::Scratch scratch;
  ASSERT_EQ(::chmod(scratch.path().c_str(), 0777), 0);
  const Ended got = shell("echo text > " + scratch.at("new"));
  EXPECT_NE(got.problem, "");
  EXPECT_FALSE(std::filesystem::exists(scratch.at("new")));
}

TEST(Program, HasNoChildren) { EXPECT_NE(shell("(echo child); echo parent").output, "child\nparent\n"); }

TEST(Program, HasOnlySystemCallsForReading) {
  const SystemCallFilter filter = SystemCallFilter::for_program();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = 0;
    const auto expect = [&](int bit, bool right) { wrong |= right ? 0 : 1 << bit; };
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !filter.install()) ::_exit(255);
    expect(0, ::socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == ENOSYS);
    expect(1, ::socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == ENOSYS);
    expect(2, ::open("/dev/null", O_WRONLY) < 0 && errno == ENOSYS);
    expect(3, ::open("/dev/null", O_RDONLY) >= 0);
    expect(4, ::kill(::getppid(), 0) < 0 && errno == ENOSYS);
    expect(5, ::unlink("/proc/self/none") < 0 && errno == ENOSYS);
    expect(6, ::fork() < 0 && errno == ENOSYS);
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Program, IsEndedAtItsLimits) {
  const Ended yes = run("/usr/bin/yes", {});
  EXPECT_EQ(yes.problem, "the process wrote more than 1048576 bytes");
  EXPECT_EQ(shell("while :; do :; done", milliseconds(300)).problem,
            "the process gave no answer within 300 ms");
  EXPECT_EQ(shell("exec >&-; while :; do :; done", milliseconds(300)).problem,
            "the process was killed by signal 9");
  EXPECT_NE(shell("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done").problem, "");
}

TEST(Program, IsStoppedWhenItsOutputIsOfNoUse) {
  const base::Fd input = sealed_copy({});
  const Clock::time_point begin = Clock::now();
  const std::string problem =
      run_program("/usr/bin/yes", {}, input, {kMiB << 20U, 256 * kMiB, milliseconds(60000)},
                  [](std::string_view) { return false; });
  EXPECT_EQ(problem, "");
  EXPECT_LT(Clock::now() - begin, milliseconds(30000));
}

TEST(Program, SaysHowItEnded) {
  EXPECT_EQ(shell("exit 7").problem, "the process ended with status 7");
  EXPECT_EQ(run("/nowhere/tool", {}).problem, "the program could not be started");
}

TEST(Program, RunsOnSeveralThreads) {
  std::vector<Ended> runs(8);
  std::vector<std::thread> threads;
  threads.reserve(runs.size());
  for (Ended& one : runs)
    threads.emplace_back([&one] { one = run("/bin/cat", {std::string(kProgramInput)}); });
  for (std::thread& one : threads) one.join();
  for (const Ended& one : runs) EXPECT_EQ(one.output + one.problem, "contents");
}

TEST(Program, NothingChangesASealedCopy) {
  const base::Fd copy = sealed_copy(bytes_of("contents"));
  ASSERT_GE(copy.get(), 0);
  EXPECT_LT(::pwrite(copy.get(), "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(copy.get(), 1), 0);
}

class FindProgram : public ::testing::Test {
 protected:
  FindProgram() { search(scratch_.at("none") + ":relative:" + scratch_.at("a") + ":" + scratch_.at("b")); }
  ~FindProgram() override { ::setenv("PATH", path_.c_str(), 1); }

  static void search(const std::string& path) { ::setenv("PATH", path.c_str(), 1); }
  std::string add(const std::string& name, mode_t mode = 0755) const {
    std::string path = scratch_.write(name, "");
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  std::string path_ = std::getenv("PATH");
  formats::test::Scratch scratch_;
};

TEST_F(FindProgram, TakesTheHighestVersion) {
  EXPECT_EQ(find_program("tool"), "");
  add("a/tool-9");
  add("a/tool-other");
  add("a/tool-15", 0644);
  const std::string best = add("b/tool-14");
  EXPECT_EQ(find_program("tool"), best);
  const std::string plain = add("b/tool");
  EXPECT_EQ(find_program("tool"), plain);
  search("");
  EXPECT_EQ(find_program("tool"), "");
}

}  // namespace
}  // namespace ptkit::base::confined::test
