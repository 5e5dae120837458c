// Processes after fork(), and threads.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "handle.h"
#include "unit/support/traces/loop_stream.h"

namespace ptkit::api::c {
namespace {

using flow::kLoop;
using flow::loop;

pid_t in_child(const std::function<bool()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) std::_Exit(work() ? 0 : 1);
  return pid;
}

bool succeeded(pid_t pid) {
  int status = 0;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Each run has other counts, so that a mixture of processes would show.
bool decodes(const Handle& handle, unsigned times) {
  std::vector<std::uint8_t> hits(65536);
  const ptkit_outcome outcome = decode(handle, loop(times), hits.data());
  return outcome.errors == 0 && outcome.branches == times + 1 &&
         hits[ptkit_edge_hash(0x1000, 0x1000) & 0xffffU] == times;
}

// As AFL's fork server: the parent decodes once, and each run is a child.
TEST(CProcesses, ChildrenUseWarmHandles) {
  const Handle handle = open_with_code(kLoop);
  ASSERT_TRUE(decodes(handle, 3));
  std::vector<pid_t> children;
  for (unsigned child = 1; child <= 8; ++child) {
    children.push_back(in_child([&] {
      for (unsigned round = 0; round < 50; ++round) {
        if (!decodes(handle, child * 20 + round % 7)) return false;
      }
      return true;
    }));
    ASSERT_TRUE(decodes(handle, child));
  }
  for (const pid_t child : children) EXPECT_TRUE(succeeded(child));
  EXPECT_TRUE(decodes(handle, 9));
}

TEST(CProcesses, ChildrenCloseTheirCopy) {
  const Handle handle = open_with_code(kLoop);
  ASSERT_TRUE(decodes(handle, 3));
  EXPECT_TRUE(succeeded(in_child([&] {
    ptkit_coverage_close(handle.get());
    const Handle own = open_with_code(kLoop);
    return decodes(own, 5);
  })));
  EXPECT_TRUE(decodes(handle, 4));
}

std::size_t threads() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    count += entry.path().empty() ? 0U : 1U;
  return count;
}

TEST(CProcesses, StartNoThread) {
  EXPECT_TRUE(succeeded(in_child([] {
    const std::size_t before = threads();
    const Handle handle = open_with_code(kLoop);
    return decodes(handle, 100) && decode(handle, loop(600000)).errors == 0 && threads() == before;
  })));
}

TEST(CProcesses, ThreadsHaveHandlesOfTheirOwn) {
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([thread, &wrong] {
      const Handle handle = open_with_code(kLoop);
      for (unsigned round = 0; round < 100; ++round) wrong += decodes(handle, thread * 10) ? 0U : 1U;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(CProcesses, ThreadsThatShareAHandleAreRefused) {
  const Handle handle = open_with_code(kLoop);
  const auto stream = loop(3000);
  std::atomic<unsigned> decoded{0};
  std::atomic<unsigned> other{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (unsigned round = 0; round < 200; ++round) {
        const int status =
            ptkit_coverage_decode(handle.get(), stream.data(), stream.size(), nullptr, nullptr, nullptr);
        if (status == PTKIT_OK) ++decoded;
        if (status != PTKIT_OK && status != PTKIT_IN_USE) ++other;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(decoded, 0u);
  EXPECT_EQ(other, 0u);
  EXPECT_TRUE(decodes(handle, 9));
}

}  // namespace
}  // namespace ptkit::api::c
