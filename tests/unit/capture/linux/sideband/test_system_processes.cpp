// Processes, threads and mappings, as records report them.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "capture/linux/sideband/system_processes.h"
#include "code/image/image.h"
#include "unit/capture/linux/output/bundle_fixture.h"
#include "unit/support/seconds.h"

namespace ptkit::capture::test {
namespace {

constexpr std::uint64_t kPage = 4096;

class SystemProcessesTest : public ::testing::Test {
 protected:
  SystemProcessesTest() : processes_(written_.output, true, false) {}

  trace::TraceBundle finish() { return written_.finish(); }
  // Above the largest possible PID.
  static constexpr std::int32_t kFirst = 1 << 23;
  static SystemRecord made(SystemRecord::Kind kind, std::uint64_t tsc, std::int32_t pid, std::int32_t tid) {
    SystemRecord out;
    out.kind = kind;
    out.cr3_known = true;
    out.tsc = tsc;
    out.pid = pid;
    out.tid = tid;
    return out;
  }
  void switch_to(std::uint64_t tsc, std::int32_t pid, std::uint64_t table, std::uint32_t stream = 0) {
    SystemRecord record = made(SystemRecord::Kind::SWITCH, tsc, pid, pid);
    record.kernel_cr3 = table;
    record.user_cr3 = table == 0 ? 0 : table + kPage;
    processes_.take(record, stream);
  }
  // exec() has mapped the program, which has these page tables.
  void program_of(std::uint64_t tsc, std::int32_t pid, std::uint64_t table) {
    SystemRecord record = made(SystemRecord::Kind::PROGRAM, tsc, pid, pid);
    record.kernel_cr3 = record.user_cr3 = table;
    processes_.take(record, 0);
  }
  [[nodiscard]] static std::size_t count_maps(const trace::TraceBundle& bundle, std::int64_t pid) {
    return static_cast<std::size_t>(std::count_if(
        bundle.sideband.begin(), bundle.sideband.end(),
        [&](const trace::Sideband& one) { return one.kind == trace::SidebandKind::MAP && one.pid == pid; }));
  }
  void fork(std::uint64_t tsc, std::int32_t parent, std::int32_t pid, std::int32_t tid) {
    SystemRecord record = made(SystemRecord::Kind::FORK, tsc, pid, tid);
    record.parent_pid = record.parent_tid = parent;
    processes_.take(record, 0);
  }
  void map(std::uint64_t tsc, std::int32_t pid, std::uint64_t address, const std::string& path) {
    SystemRecord record = made(SystemRecord::Kind::MMAP, tsc, pid, pid);
    record.address = address;
    record.bytes = kPage;
    record.file_offset = kPage;
    record.text = path;
    struct stat file {};
    if (::stat(path.c_str(), &file) == 0) {
      record.device = file.st_dev;
      record.inode = file.st_ino;
    }
    processes_.take(record, 0);
  }

  BundleFixture written_;
  SystemProcesses processes_;
};

TEST_F(SystemProcessesTest, FindsSpaceByCr3) {
  switch_to(10, kFirst, 0xa000);
  switch_to(20, kFirst + 1, 0xc000);
  switch_to(30, 0, 0);  // a kernel thread keeps CR3
  switch_to(40, -1, 0);
  switch_to(50, kFirst, 0xa000);
  switch_to(60, kFirst, 0xf000);  // exec() without an EXEC record
  const std::vector<trace::Switch> got = processes_.take_switches(0);
  ASSERT_EQ(got.size(), 6U);
  EXPECT_EQ(got[2].space, got[1].space);
  EXPECT_EQ(got[3].tid, trace::kNoId);
  EXPECT_EQ(got[4].space, got[0].space);
  EXPECT_NE(got[5].space, got[0].space);
  EXPECT_TRUE(processes_.take_switches(0).empty());
  const trace::TraceBundle bundle = finish();
  EXPECT_EQ(bundle.spaces[got[0].space].cr3, 0xa000U);
  EXPECT_EQ(bundle.spaces[got[0].space].user_cr3, 0xb000U);
  EXPECT_EQ(bundle.spaces[got[1].space].pid, kFirst + 1);
}

// A switch is dated in the middle of two records. The first record may be long before the thread began.
TEST_F(SystemProcessesTest, DatesSwitchAfterStartOfThread) {
  const auto runs = [&](std::uint64_t since, std::uint64_t tsc, std::int32_t pid, std::int32_t tid) {
    SystemRecord record = made(SystemRecord::Kind::SWITCH, tsc, pid, tid);
    record.cr3_known = false;
    record.since = since;
    processes_.take(record, 0);
  };
  runs(1, 10, kFirst, kFirst);
  fork(100, kFirst, kFirst + 1, kFirst + 1);
  runs(60, 110, kFirst + 1, kFirst + 1);
  fork(300, kFirst + 1, kFirst + 1, kFirst + 2);  // a thread
  runs(260, 310, kFirst + 1, kFirst + 2);
  runs(305, 320, kFirst + 1, kFirst + 1);
  processes_.take(made(SystemRecord::Kind::EXEC, 400, kFirst + 1, kFirst + 1), 1);
  runs(350, 410, kFirst + 1, kFirst + 1);
  std::vector<std::uint64_t> times;
  for (const trace::Switch& one : processes_.take_switches(0)) times.push_back(one.tsc);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{1, 100, 300, 305, 400}));
}

// The CPU was idle for long, so the middle of the two records is long before the thread began.
TEST_F(SystemProcessesTest, SwitchIsNotLaterThanItsRecord) {
  SystemProcesses processes(written_.output, true, false, 5);
  const auto runs = [&](std::uint64_t since, std::uint64_t tsc, std::int32_t pid) {
    SystemRecord record = made(SystemRecord::Kind::SWITCH, tsc, pid, pid);
    record.cr3_known = false;
    record.since = since;
    processes.take(record, 0);
  };
  runs(1, 10, kFirst);
  SystemRecord fork = made(SystemRecord::Kind::FORK, 1000, kFirst + 1, kFirst + 1);
  fork.parent_pid = fork.parent_tid = kFirst;
  processes.take(fork, 0);
  runs(510, 1010, kFirst + 1);
  runs(1500, 2000, kFirst);
  const processes::SwitchSkews expected{{{0, 1000}, 10}, {{0, 1500}, 500}};
  EXPECT_EQ(processes.switch_skews(), expected);
}

TEST_F(SystemProcessesTest, AddsMappingsInLogTime) {
  constexpr std::uint64_t kCount = 60'000;
  const auto map_all = [&] {
    for (std::uint64_t i = 0; i < kCount; ++i) map(10 + i, kFirst, 0x10000000 + i * 2 * kPage, "//anon");
  };
  EXPECT_LT(ptkit::test::seconds_of(map_all), 2.0);
}

// Many short programs, as in a build.
TEST_F(SystemProcessesTest, ForgetsExitedProcesses) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  const auto exit_of = [&](std::uint64_t tsc, std::int32_t pid) {
    processes_.take(made(SystemRecord::Kind::EXIT, tsc, pid, pid), 0);
  };
  switch_to(1, kFirst, 0xa000);
  // Their children still run, so the two parents are kept.
  fork(2, kFirst, kFirst + 1, kFirst + 1);
  fork(3, kFirst + 1, kFirst + 2, kFirst + 2);
  fork(4, kFirst + 2, kFirst + 3, kFirst + 3);
  for (const std::int32_t pid : {kFirst + 1, kFirst + 2}) exit_of(5, pid);
  std::uint64_t tsc = 100;
  const auto run = [&](std::int32_t count) {
    for (std::int32_t i = 0; i < count; ++i, tsc += 10) {
      const auto pid = kFirst + static_cast<std::int32_t>(tsc / 10);
      fork(tsc, kFirst, pid, pid);
      processes_.take(made(SystemRecord::Kind::EXEC, tsc + 1, pid, pid), 0);
      for (std::uint64_t j = 0; j < 6; ++j) map(tsc + 2, pid, 0x400000 + j * kPage, program);
      exit_of(tsc + 3, pid);
      if (i % 1000 == 0) static_cast<void>(processes_.take_switches(0));
    }
  };
  run(8'000);
  const std::size_t before = ::mallinfo2().uordblks;
  run(30'000);
  EXPECT_LT(::mallinfo2().uordblks, before + (std::size_t{8} << 20U));
  EXPECT_TRUE(processes_.alive(kFirst + 1));
  exit_of(tsc, kFirst + 3);
  EXPECT_FALSE(processes_.alive(kFirst + 1));
  EXPECT_TRUE(processes_.alive(kFirst));
}

// The processes have exited, but some of their records are not read yet.
TEST_F(SystemProcessesTest, KeepsMappingsOfVanishedProcesses) {
  switch_to(10, kFirst, 0xa000);
  map(11, kFirst, 0x400000, std::filesystem::canonical("/bin/sh"));
  processes_.forget_ended();
  EXPECT_FALSE(processes_.alive(kFirst));
  fork(20, kFirst, kFirst + 1, kFirst + 1);
  switch_to(30, kFirst + 1, 0xc000);
  const trace::SpaceId child = processes_.take_switches(0).at(1).space;
  const trace::TraceBundle bundle = finish();
  EXPECT_TRUE(std::any_of(bundle.code.begin(), bundle.code.end(),
                          [&](const trace::CodeRegion& region) { return region.space == child; }));
}

// A mapping over another one is valid from its time on. The same mapping again is not added.
TEST_F(SystemProcessesTest, DatesMappingsOverOthers) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  const std::string other = std::filesystem::canonical("/bin/ls");
  switch_to(10, kFirst, 0xa000);
  map(11, kFirst, 0x400000, program);
  map(12, kFirst, 0x402000, program);
  map(13, kFirst, 0x400000, program);
  map(14, kFirst, 0x401000, other);
  map(15, kFirst, 0x402000, other);
  const trace::TraceBundle bundle = finish();
  std::set<std::pair<std::uint64_t, std::uint64_t>> since;
  for (const trace::CodeRegion& region : bundle.code) since.emplace(region.address, region.tsc_from);
  const decltype(since) expected{
      {0x400000, trace::kTscMin}, {0x401000, trace::kTscMin}, {0x402000, trace::kTscMin}, {0x402000, 15}};
  EXPECT_EQ(since, expected);
  const auto is_map = [](const trace::Sideband& one) { return one.kind == trace::SidebandKind::MAP; };
  EXPECT_EQ(std::count_if(bundle.sideband.begin(), bundle.sideband.end(), is_map), 4);
}

// A library is replaced by another one, which is replaced by the first one.
TEST_F(SystemProcessesTest, AcceptsReturningMappings) {
  const std::string first = std::filesystem::canonical("/bin/sh");
  const std::string second = std::filesystem::canonical("/bin/cat");
  switch_to(10, kFirst, 0xa000);
  std::uint64_t tsc = 10;
  for (const std::string& path : {first, first, second, first, second})
    map(tsc += 10, kFirst, 0x400000, path);
  const auto space = processes_.take_switches(0).at(0).space;
  const code::image::Image image(std::make_shared<trace::TraceBundle>(finish()));
  const auto path_at = [&](std::uint64_t time) {
    const std::int32_t file = image.view(space, time).provenance(0x400000).file;
    return file < 0 ? std::string() : image.bundle().files[static_cast<std::size_t>(file)].path;
  };
  EXPECT_EQ(path_at(15), first);
  EXPECT_EQ(path_at(35), first);
  EXPECT_EQ(path_at(45), second);
  EXPECT_EQ(path_at(55), first);
  EXPECT_EQ(path_at(65), second);
}

// Mappings that later ones hide are erased: children do not inherit them.
TEST_F(SystemProcessesTest, ForgetsHiddenMappings) {
  constexpr int kTimes = 10'000;
  const std::array<std::string, 2> paths{std::filesystem::canonical("/bin/sh"),
                                         std::filesystem::canonical("/bin/cat")};
  switch_to(10, kFirst, 0xa000);
  const auto come_and_go = [&] {
    for (std::uint64_t i = 0; i < kTimes; ++i) map(20 + i, kFirst, 0x401000, paths[i % 2]);
  };
  EXPECT_LT(ptkit::test::seconds_of(come_and_go), 5.0);
  fork(20'000, kFirst, kFirst + 1, kFirst + 1);
  switch_to(20'001, kFirst + 1, 0xc000);
  const trace::TraceBundle bundle = finish();
  EXPECT_EQ(count_maps(bundle, kFirst), std::size_t{kTimes});
  EXPECT_GT(count_maps(bundle, kFirst + 1), 0U);
  EXPECT_LT(count_maps(bundle, kFirst + 1), 100U);
}

TEST_F(SystemProcessesTest, ChildrenInheritCodeUntilExec) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  switch_to(10, kFirst, 0xa000);
  map(11, kFirst, 0x400000, program);
  fork(20, kFirst, kFirst + 1, kFirst + 1);
  fork(21, kFirst + 1, kFirst + 1, kFirst + 2);  // a thread
  switch_to(30, kFirst + 1, 0xc000);
  EXPECT_TRUE(processes_.alive(kFirst));
  processes_.take(made(SystemRecord::Kind::EXEC, 40, kFirst + 1, kFirst + 1), 0);
  map(41, kFirst + 1, 0x500000, program);
  program_of(42, kFirst + 1, 0xe000);
  const auto switches = processes_.take_switches(0);
  ASSERT_EQ(switches.size(), 3U);
  for (const std::int32_t pid : {kFirst, kFirst + 1}) {
    EXPECT_TRUE(processes_.alive(kFirst));
    processes_.take(made(SystemRecord::Kind::EXIT, 50, pid, pid), 0);
  }
  EXPECT_FALSE(processes_.alive(kFirst));
  const trace::TraceBundle bundle = finish();
  const auto code_of = [&](trace::SpaceId space) {
    std::map<std::uint64_t, std::size_t> out;  // bytes with contents
    for (const trace::CodeRegion& region : bundle.code) {
      if (region.space == space) out[region.address] = std::max(out[region.address], region.bytes.size());
    }
    return out;
  };
  using Code = std::map<std::uint64_t, std::size_t>;
  EXPECT_EQ(code_of(switches[0].space), (Code{{0x400000, kPage}}));
  EXPECT_EQ(code_of(switches[1].space), (Code{{0x400000, kPage}}));
  EXPECT_EQ(code_of(switches[2].space), (Code{{0x500000, kPage}}));
  EXPECT_EQ(switches[2].tsc, 40U);
  EXPECT_EQ(bundle.spaces[switches[2].space].cr3, 0xe000U);
  std::vector<trace::SidebandKind> kinds;
  for (const trace::Sideband& record : bundle.sideband) kinds.push_back(record.kind);
  using enum trace::SidebandKind;
  EXPECT_EQ(kinds, (std::vector{MAP, MAP, PROCESS, THREAD, EXEC, MAP, EXIT, EXIT}));
}

// Page tables are known before the first switch.
TEST_F(SystemProcessesTest, KnowsPageTablesOfForkAndStart) {
  SystemRecord record = made(SystemRecord::Kind::SPACE, 10, kFirst, kFirst);
  record.kernel_cr3 = 0xa000;
  record.user_cr3 = 0xb000;
  processes_.take(record, 0);
  SystemRecord child = made(SystemRecord::Kind::FORK, 20, kFirst + 1, kFirst + 1);
  child.parent_pid = child.parent_tid = kFirst;
  child.kernel_cr3 = child.user_cr3 = 0xc000;
  processes_.take(child, 0);
  const trace::SpaceId first = processes_.space_of(kFirst);
  const trace::SpaceId second = processes_.space_of(kFirst + 1);
  const trace::TraceBundle bundle = finish();
  EXPECT_EQ(bundle.spaces[first].cr3, 0xa000U);
  EXPECT_EQ(bundle.spaces[first].user_cr3, 0xb000U);
  EXPECT_EQ(bundle.spaces[second].cr3, 0xc000U);
}

// perf is refused, so /proc has the mappings. A switch inside of exec() has the new page tables already.
TEST_F(SystemProcessesTest, FindsProgramWithoutItsMappings) {
  const std::int32_t self = ::getpid();
  switch_to(10, self, 0xa000);
  const trace::SpaceId before = processes_.space_of(self);
  switch_to(20, self, 0xc000);
  program_of(30, self, 0xc000);
  const trace::SpaceId after = processes_.space_of(self);
  EXPECT_NE(after, before);
  EXPECT_EQ(processes_.take_switches(0).back().space, after);
  const trace::TraceBundle bundle = finish();
  EXPECT_TRUE(std::any_of(bundle.code.begin(), bundle.code.end(), [&](const trace::CodeRegion& region) {
    return region.space == after && region.bytes.size() != 0;
  }));
  const auto exec =
      std::find_if(bundle.sideband.begin(), bundle.sideband.end(),
                   [](const trace::Sideband& one) { return one.kind == trace::SidebandKind::EXEC; });
  ASSERT_NE(exec, bundle.sideband.end());
  EXPECT_EQ(exec->tsc, 30U);
  EXPECT_EQ(exec->text, std::filesystem::canonical("/proc/self/exe"));
}

// All MMAP records of the program were lost.
TEST_F(SystemProcessesTest, LooksForMappingsThatPerfDoesNotRecord) {
  const std::int32_t self = ::getpid();
  switch_to(10, self, 0xa000);
  processes_.take(made(SystemRecord::Kind::EXEC, 20, self, self), 0);
  const trace::SpaceId space = processes_.space_of(self);
  program_of(30, self, 0xc000);
  EXPECT_EQ(processes_.space_of(self), space);
  const trace::TraceBundle bundle = finish();
  EXPECT_TRUE(std::any_of(bundle.code.begin(), bundle.code.end(),
                          [&](const trace::CodeRegion& region) { return region.space == space; }));
}

// Of processes that end, too: their numbers are reused.
TEST_F(SystemProcessesTest, IgnoresMappingsOfUnknownProcesses) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  processes_.ignore_others();
  switch_to(10, kFirst, 0xa000);
  for (std::int32_t pid = kFirst; pid < kFirst + 3; ++pid) map(11, pid, 0x400000, program);
  fork(20, kFirst, kFirst + 1, kFirst + 1);
  switch_to(21, kFirst + 1, 0xc000);
  map(22, kFirst + 1, 0x500000, program);
  processes_.take(made(SystemRecord::Kind::EXIT, 30, kFirst + 1, kFirst + 1), 0);
  map(31, kFirst + 1, 0x600000, program);
  EXPECT_EQ(processes_.space_of(kFirst + 2), trace::kAnySpace);
  const trace::TraceBundle bundle = finish();
  EXPECT_EQ(count_maps(bundle, kFirst), 1U);
  EXPECT_EQ(count_maps(bundle, kFirst + 1), 2U);  // one is inherited
}

// The next program has a new space, too.
TEST_F(SystemProcessesTest, BeginsSpaceWithEachProgram) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  switch_to(10, kFirst, 0xa000);
  std::set<trace::SpaceId> spaces{processes_.space_of(kFirst)};
  for (std::uint64_t tsc = 20; tsc < 50; tsc += 10) {
    processes_.take(made(SystemRecord::Kind::EXEC, tsc, kFirst, kFirst), 0);
    map(tsc + 1, kFirst, 0x400000, program);
    program_of(tsc + 2, kFirst, tsc << 12U);
    spaces.insert(processes_.space_of(kFirst));
  }
  EXPECT_EQ(spaces.size(), 4U);
  EXPECT_EQ(count_maps(finish(), kFirst), 3U);
}

// exec() has set new page tables. Its thread is switched out and in before the EXEC record.
TEST_F(SystemProcessesTest, SwitchDuringExecHasSpaceOfTheNextProgram) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  switch_to(10, kFirst, 0xa000);
  switch_to(20, kFirst, 0xc000);
  const trace::SpaceId space = processes_.space_of(kFirst);
  processes_.take(made(SystemRecord::Kind::EXEC, 30, kFirst, kFirst), 0);
  map(31, kFirst, 0x400000, program);
  program_of(32, kFirst, 0xc000);
  EXPECT_EQ(processes_.space_of(kFirst), space);
  processes_.take(made(SystemRecord::Kind::EXEC, 40, kFirst, kFirst), 0);
  program_of(42, kFirst, 0xe000);
  EXPECT_NE(processes_.space_of(kFirst), space);
}

}  // namespace
}  // namespace ptkit::capture::test
