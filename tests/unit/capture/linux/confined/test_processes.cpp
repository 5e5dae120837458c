// Confined processes: a process with hostile input can only read it and answer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "capture/linux/confined/processes.h"
#include "probe.h"
#include "unit/support/scratch.h"

namespace ptkit::capture::confined::test {
namespace {

using Answer = ConfinedProcesses::Answer;
using Bytes = std::vector<std::uint8_t>;
using std::chrono::milliseconds;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr int kInput = 3;
constexpr int kOutput = 4;
const std::string kNoRights = "the process could not give up its rights";

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(base::Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Actions of a parser that hostile input controls.
void do_harm(const std::string& what) {
  static std::array<std::uint8_t, 4096> page{};
  volatile std::uint64_t count = 0;
  if (what == "crash") ::_exit(*static_cast<volatile int*>(nullptr));
  if (what == "end") ::_exit(7);
  while (what == "loop") count = count + 1;
  while (what == "eat memory") std::fill_n(new char[kMiB], kMiB, 'x');
  while (what == "write") static_cast<void>(!::write(kOutput, page.data(), page.size()));
  while (what == "drip") {
    count = count + 1;
    if (count % 1'000'000 == 0) static_cast<void>(!::write(kOutput, page.data(), 1));
  }
  if (what == "open" && (::open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)) ::_exit(8);
  if (what == "fork") static_cast<void>(::fork());
  if (what == "socket") static_cast<void>(::socket(AF_INET, SOCK_STREAM, 0));
  if (what == "kill") static_cast<void>(::kill(::getppid(), SIGKILL));
  if (what == "execute memory")
    static_cast<void>(::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// Executes the request's action. "wait" waits until the input ends. The answer is the request and the input.
Bytes work(base::Bytes request, const base::Fd& input) {
  const std::string what = text_of(request);
  do_harm(what);
  std::array<char, 4096> part{};
  std::string text = what + ":";
  for (ssize_t got = 0; (got = ::read(input.get(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  return bytes_of(text);
}

class Confined : public ::testing::Test {
 protected:
  Confined() { ::alarm(120); }  // a recorder that waits for ever would not end
  ~Confined() override { ::alarm(0); }

  Answer ask(ConfinedProcesses& processes, const std::string& what, milliseconds time = milliseconds(60000),
             const std::function<void()>& meanwhile = {}) const {
    const base::Fd input(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return processes.ask(bytes_of(what), input, {kMiB, 64 * kMiB, time}, meanwhile);
  }
  std::string problem(const std::string& what, milliseconds time = milliseconds(60000)) {
    return ask(processes_, what, time).problem;
  }
  void expect_works() {
    const Answer answer = ask(processes_, "again");
    EXPECT_EQ(answer.problem, "");
    EXPECT_EQ(text_of(answer.bytes), "again:contents");
  }

  formats::test::Scratch scratch_;
  std::string path_ = scratch_.write("input", "contents");
  ConfinedProcesses processes_{work};
};

TEST_F(Confined, AnswersFromRequestAndInput) {
  expect_works();
  const Answer other = ask(processes_, "other");
  EXPECT_EQ(text_of(other.bytes), "other:contents");
  EXPECT_FALSE(other.late);
}

// The /proc folder of a confined process that waits for its input.
class ConfinedProcFolder : public Confined {
 protected:
  void look(const std::function<void(pid_t)>& check) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const base::Fd input(ends[0]);
    base::Fd end(ends[1]);
    bool looked = false;
    const Answer answer =
        processes_.ask(bytes_of("wait"), input, {kMiB, 64 * kMiB, milliseconds(60000)}, [&] {
          const std::vector<pid_t> children = children_of(processes_.fork_server());
          if (looked || children.size() != 1 || !is_confined(children[0])) return;
          check(children[0]);
          looked = true;
          end = base::Fd();
        });
    EXPECT_TRUE(looked);
    EXPECT_EQ(answer.problem, "");
  }
};

TEST_F(ConfinedProcFolder, ProcessHasNoPrivileges) {
  look([](pid_t pid) {
    const auto status = [pid](const char* key) { return line_of(pid, "status", key); };
    const std::string user = std::to_string(::getuid() == 0 ? 65534 : ::getuid());
    const std::string group = std::to_string(::getuid() == 0 ? 65534 : ::getgid());
    EXPECT_EQ(status("Uid:"), user + "\t" + user + "\t" + user + "\t" + user);
    EXPECT_EQ(status("Gid:"), group + "\t" + group + "\t" + group + "\t" + group);
    if (::getuid() == 0) {
      EXPECT_EQ(status("Groups:"), "");
      EXPECT_EQ(status("CapBnd:"), "0000000000000000");
    }
    for (const char* const set : {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"})
      EXPECT_EQ(status(set), "0000000000000000") << set;
    EXPECT_EQ(status("NoNewPrivs:"), "1");
  });
}

TEST_F(ConfinedProcFolder, ProcessHasOnlyItsInputAndPipe) {
  look([](pid_t pid) {
    if (::getuid() == 0) {  // which may look
      EXPECT_EQ(descriptors_of(pid), (std::set<std::string>{"3", "4"}));
    }
    for (const char* const limit :
         {"Max open files", "Max processes", "Max file size", "Max core file size", "Max locked memory"}) {
      const std::string values = line_of(pid, "limits", limit);
      EXPECT_EQ(values.substr(0, values.find_first_not_of("0 ")), values.substr(0, 42)) << limit << values;
      EXPECT_EQ(values.front(), '0') << limit;
    }
    EXPECT_NE(line_of(pid, "limits", "Max address space").rfind("unlimited", 0), 0U);
    EXPECT_EQ(line_of(pid, "limits", "Max cpu time").rfind("61 ", 0), 0U);
  });
}

TEST_F(Confined, ForkServerHasOnlyItsSocket) {
  expect_works();
  EXPECT_EQ(descriptors_of(processes_.fork_server()).size(), 2U);  // the socket and the signalfd
  EXPECT_EQ(::getsid(processes_.fork_server()), processes_.fork_server());
  EXPECT_EQ(children_of(processes_.fork_server()), std::vector<pid_t>());
}

TEST_F(Confined, ForbiddenSystemCallsKillTheProcess) {
  for (const char* const what : {"fork", "socket", "kill", "execute memory"})
    EXPECT_EQ(problem(what), "the process was killed by signal 31") << what;
  expect_works();
}

// It does not end the process: the C library opens a file of /proc before it shrinks a heap.
TEST_F(Confined, OpeningFilesFails) { EXPECT_EQ(problem("open"), ""); }

TEST_F(Confined, CrashesAffectOneRequest) {
  EXPECT_EQ(problem("crash"), "the process was killed by signal 11");
  expect_works();
  EXPECT_EQ(problem("end"), "the process ended with status 7");
  expect_works();
  EXPECT_EQ(problem("write"), "the process wrote more than 1048576 bytes");
  expect_works();
  for (const char* const what : {"loop", "drip"}) {
    const Answer answer = ask(processes_, what, milliseconds(300));
    EXPECT_EQ(answer.problem, "the process gave no answer within 300 ms") << what;
    EXPECT_TRUE(answer.late);
    EXPECT_TRUE(answer.bytes.empty());
    expect_works();
  }
  EXPECT_NE(problem("eat memory"), "");
  expect_works();
  EXPECT_EQ(children_of(processes_.fork_server()), std::vector<pid_t>());
}

TEST_F(Confined, CallsBackWhileWaiting) {
  int calls = 0;
  static_cast<void>(ask(processes_, "loop", milliseconds(300), [&] { ++calls; }));
  EXPECT_GT(calls, 2);
}

TEST_F(Confined, RejectsLongRequests) {
  EXPECT_EQ(problem(std::string(65537, 'r')), "the request is longer than 65536 bytes");
  EXPECT_EQ(problem(std::string(65536, 'r')), "");
}

// ---- kernels without seccomp or without permission

TEST_F(Confined, WithoutSeccompNothingCanBeOpenedOrStarted) {
  const std::string outcome = in_another_process([&]() -> std::string {
    if (!refuse({SYS_prctl, PR_SET_SECCOMP, EINVAL})) return "no filter can be set";
    ConfinedProcesses unfiltered([](base::Bytes, const base::Fd&) {
      const int opened = ::open("/etc/passwd", O_RDONLY | O_CLOEXEC);
      const int open_error = errno;
      const long forked = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
      return bytes_of(std::to_string(opened) + " " + std::to_string(open_error) + " " +
                      std::to_string(forked) + " " + std::to_string(errno) + " " +
                      std::to_string(::getuid()));
    });
    const Answer answer = ask(unfiltered, "probe");
    return answer.problem + text_of(answer.bytes);
  });
  const std::string user = std::to_string(::getuid() == 0 ? 65534 : ::getuid());
  EXPECT_EQ(outcome, "-1 " + std::to_string(EMFILE) + " -1 " + std::to_string(EAGAIN) + " " + user);
}

TEST_F(Confined, NoWorkWithRemainingPrivileges) {
  const auto outcome = [&](const std::vector<Refusal>& refusals) {
    return in_another_process([&]() -> std::string {
      for (const Refusal& one : refusals) {
        if (!refuse(one)) return "no filter can be set";
      }
      ConfinedProcesses processes(work);
      const Answer answer = ask(processes, "do");
      return answer.problem + text_of(answer.bytes);
    });
  };
  EXPECT_EQ(outcome({{SYS_capset, {}, EPERM}}), kNoRights);
  EXPECT_EQ(outcome({{SYS_prctl, PR_SET_NO_NEW_PRIVS, EINVAL}}), kNoRights);
  EXPECT_EQ(outcome({{SYS_prctl, PR_SET_DUMPABLE, EINVAL}}), kNoRights);
  EXPECT_EQ(outcome({{SYS_prlimit64, {}, EPERM}}), kNoRights);
  if (::getuid() != 0) return;  // the rest needs root
  EXPECT_EQ(outcome({{SYS_setresuid, {}, EPERM}}), kNoRights);
  EXPECT_EQ(outcome({{SYS_setgroups, {}, EPERM}}), kNoRights);
  // A user namespace without user 65534: the process drops its capabilities and needs the filter.
  EXPECT_EQ(outcome({{SYS_setresgid, {}, EINVAL}}), "do:contents");
  EXPECT_EQ(outcome({{SYS_setresgid, {}, EINVAL}, {SYS_prctl, PR_SET_SECCOMP, EINVAL}}), kNoRights);
}

// ---- the fork server

TEST_F(Confined, ForkServerBlocksSignals) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    ASSERT_EQ(::kill(processes_.fork_server(), signal), 0);
  expect_works();
}

TEST_F(Confined, ReportsAKilledForkServer) {
  ASSERT_EQ(::kill(processes_.fork_server(), SIGKILL), 0);
  EXPECT_EQ(problem("first"), "the process that starts others has ended");
  EXPECT_EQ(problem("second"), "the process that starts others has ended");
  EXPECT_EQ(processes_.fork_server(), 0);
}

TEST_F(Confined, ReportsAForkServerThatEndedBeforeTheRequest) {
  ASSERT_EQ(::kill(processes_.fork_server(), SIGKILL), 0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(processes_.fork_server()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(problem("first"), "the process that starts others has ended");
  EXPECT_EQ(problem("second"), "the process that starts others has ended");
  EXPECT_EQ(processes_.fork_server(), 0);
}

TEST_F(Confined, AllProcessesEnd) {
  pid_t server = 0;
  {
    ConfinedProcesses processes(work);
    server = processes.fork_server();
    ASSERT_GT(server, 0);
    EXPECT_EQ(ask(processes, "loop", milliseconds(100)).late, true);
  }
  EXPECT_EQ(::waitpid(server, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(::kill(server, 0), -1);
}

// Another process has a copy of the recorder's socket.
TEST_F(Confined, AllProcessesEndAfterAForkOfTheRecorder) {
  auto processes = std::make_unique<ConfinedProcesses>(work);
  const pid_t server = processes->fork_server();
  const pid_t copy = ::fork();
  if (copy == 0) {
    for (;;) ::pause();
  }
  processes.reset();
  EXPECT_EQ(::kill(server, 0), -1);
  ASSERT_EQ(::kill(copy, SIGKILL), 0);
  EXPECT_EQ(::waitpid(copy, nullptr, 0), copy);
}

// This process is the subreaper: it becomes the parent of orphans.
TEST_F(Confined, AllProcessesEndAfterAKilledRecorder) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t recorder = ::fork();
  if (recorder == 0) {
    ConfinedProcesses processes(work);
    static_cast<void>(ask(processes, "loop", milliseconds(100'000), [&] {
      const std::vector<pid_t> children = children_of(processes.fork_server());
      if (children.size() != 1 || !is_confined(children[0])) return;
      const std::array<pid_t, 2> both{processes.fork_server(), children[0]};
      static_cast<void>(!::write(ends[1], both.data(), sizeof both));
    }));
    ::_exit(0);
  }
  std::array<pid_t, 2> both{};
  ASSERT_EQ(::read(ends[0], both.data(), sizeof both), static_cast<ssize_t>(sizeof both));
  ASSERT_EQ(::kill(recorder, SIGKILL), 0);
  EXPECT_EQ(::waitpid(recorder, nullptr, 0), recorder);
  EXPECT_EQ(::waitpid(both[0], nullptr, 0), both[0]);
  // The fork server or this process reaps it.
  while (::kill(both[1], 0) == 0) static_cast<void>(::waitpid(both[1], nullptr, 0));
  EXPECT_EQ(errno, ESRCH);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace ptkit::capture::confined::test
