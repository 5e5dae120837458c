// perf.data: mappings that processes inherit.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/support/makers/perf_sample.h"
#include "unit/support/traces/perf_reading.h"

namespace ptkit::formats {
namespace {

using test::Bytes;
using test::kEach;
using test::SampleId;

class PerfProcesses : public test::PerfReading {
 protected:
  // Recorded on a CPU.
  trace::TraceBundle of(const std::string& records) {
    return read(test::perf_file(test::auxtrace_info() + records +
                                test::auxtrace(0, kEach, 0, 0, test::small_stream())));
  }
};

SampleId task(std::uint32_t pid, std::uint64_t tsc) { return {.pid = pid, .tid = pid, .tsc = tsc}; }

// Returns the sorted addresses of a process' code at a time.
std::vector<std::uint64_t> code_of(const trace::TraceBundle& bundle, std::int64_t pid, std::uint64_t tsc) {
  std::vector<std::uint64_t> out;
  for (const trace::CodeRegion& region : bundle.code) {
    if (bundle.spaces.at(region.space).pid == pid && region.tsc_from <= tsc && tsc < region.tsc_to)
      out.push_back(region.address);
  }
  std::ranges::sort(out);
  return out;
}

using Addresses = std::vector<std::uint64_t>;

// perf synthesizes FORK and MMAP records of running processes.
TEST_F(PerfProcesses, InheritsOnlyAtRealForks) {
  const auto bundle = of(
      test::mmap2(task(10, 0), 0x1000, 0x1000, 0, "/nowhere/a") + test::fork(task(20, 0), 10, 10, 1U << 13U) +
      test::mmap2(task(20, 0), 0x5000, 0x1000, 0, "/nowhere/b") + test::fork(task(30, 100), 10, 10));
  EXPECT_EQ(code_of(bundle, 20, 50), Addresses{0x5000});
  EXPECT_EQ(code_of(bundle, 30, 150), Addresses{0x1000});
}

// Covered mappings are not inherited, and do not return when the covering ones end.
TEST_F(PerfProcesses, LeavesOutCoveredMappingsAtFork) {
  std::string records;
  for (std::uint64_t i = 0; i < 20; ++i) {
    records += test::mmap2(task(10, 10 + i), 0x1000, 0x1000, 0, "/nowhere/a" + std::to_string(i));
    records += test::mmap2(task(10, 10 + i), 0x2000, 0x1000, 0, "/nowhere/b");
  }
  records += test::mmap2(task(10, 40), 0x1800, 0x1000, 0, "/nowhere/over") +  // covers parts of both
             test::mmap2(task(10, 50), 0x5000, 0x1000, 0, "/nowhere/under") +
             test::mmap2(task(10, 60), 0x4800, 0x1000, 0, "/nowhere/begin") +
             test::mmap2(task(10, 70), 0x5800, 0x1000, 0, "/nowhere/end");
  const auto bundle =
      of(records + test::fork(task(20, 100), 10, 10) + test::comm(task(10, 200), "other", true));
  EXPECT_EQ(code_of(bundle, 20, 150), (Addresses{0x1000, 0x1800, 0x2000, 0x4800, 0x5800}));
  EXPECT_EQ(code_of(bundle, 10, 250), Addresses{});
  const auto inherited = std::ranges::find(bundle.code, 0x1000U, [&](const trace::CodeRegion& region) {
    return bundle.spaces.at(region.space).pid == 20 ? region.address : 0;
  });
  ASSERT_NE(inherited, bundle.code.end());
  EXPECT_EQ(bundle.files.at(static_cast<std::size_t>(inherited->file)).path, "/nowhere/a19");
}

TEST_F(PerfProcesses, LimitsInheritedMappings) {
  std::string records;
  for (std::uint64_t i = 0; i < 1000; ++i)
    records += test::mmap2(task(10, 0), 0x1000 * (i + 1), 0x1000, 0, "//anon");
  for (std::uint32_t i = 0; i < 1000; ++i) records += test::fork(task(100 + i, 100), 10, 10);
  const auto bundle = of(records);
  EXPECT_GT(bundle.code.size(), 200'000U);
  EXPECT_LT(bundle.code.size(), 300'000U);
  EXPECT_TRUE(warns(bundle, WarningCode::MAPPINGS_INHERITED_LIMIT));
  EXPECT_EQ(code_of(bundle, 110, 150).size(), 1000U);
  EXPECT_EQ(code_of(bundle, 1099, 150).size(), 0U);
}

// What files were mapped where one mapping of memory is now.
TEST_F(PerfProcesses, LimitsInheritedMappingsOfFiles) {
  std::string records;
  for (std::uint64_t i = 0; i < 1000; ++i)
    records += test::mmap2(task(10, 0), 0x2000 * (i + 1), 0x1000, 0, "/nowhere/a");
  records += test::mmap2(task(10, 50), 0x2000, 0x2000 * 1000, 0, "//anon");
  for (std::uint32_t i = 0; i < 1000; ++i) records += test::fork(task(100 + i, 100), 10, 10);
  const auto bundle = of(records);
  EXPECT_TRUE(warns(bundle, WarningCode::MAPPINGS_INHERITED_LIMIT));
  EXPECT_EQ(code_of(bundle, 1099, 150).size(), 1U);
}

// ---- records of each kind

std::string mmap(const SampleId& owner, std::uint64_t address, std::uint16_t misc) {
  Bytes body;
  body.add(owner.pid, owner.tid, address, std::uint64_t{0x1000}, std::uint64_t{0x3000}).text("/nowhere/a");
  return test::event(1, misc, body.str(), owner);
}

TEST_F(PerfProcesses, ReadsMmapRecords) {
  const auto bundle = of(mmap(task(10, 100), 0x1000, 2) + mmap(task(10, 100), 0x5000, 2 | 1U << 13U));
  ASSERT_EQ(bundle.code.size(), 1U);  // the other mapping is data
  EXPECT_EQ(bundle.code[0].address, 0x1000U);
  EXPECT_EQ(bundle.code[0].size, 0x1000U);
  EXPECT_EQ(bundle.code[0].file_offset, 0x3000U);
  EXPECT_EQ(bundle.code[0].tsc_from, 100U);
  EXPECT_EQ(bundle.files.at(0).path, "/nowhere/a");
}

TEST_F(PerfProcesses, ReadsSwitchRecordsOfThreads) {
  const std::string begins = test::event(12, 0, Bytes().add(std::uint32_t{10}, std::uint32_t{11}).str(),
                                         {.pid = 9, .tid = 9, .tsc = 100});
  const std::string out = test::event(14, 1U << 13U, "", {.pid = 10, .tid = 11, .tsc = 200});
  const std::string in = test::event(14, 0, "", {.pid = 10, .tid = 12, .tsc = 300});
  const auto bundle = of(begins + out + in);
  const auto& switches = bundle.streams.at(0).switches;
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0].tid, 11);
  EXPECT_EQ(switches[0].pid, 10);
  EXPECT_EQ(switches[0].tsc, 100U);
  EXPECT_EQ(switches[1].tid, trace::kNoId);
  EXPECT_EQ(switches[2].tid, 12);
  EXPECT_EQ(switches[2].tsc, 300U);
}

TEST_F(PerfProcesses, ReportsExits) {
  const std::string exits =
      test::event(4, 0,
                  Bytes()
                      .add(std::uint32_t{10}, std::uint32_t{3}, std::uint32_t{12}, std::uint32_t{3})
                      .add(std::uint64_t{50})
                      .str(),
                  {.tsc = 100});
  const auto bundle = of(exits);
  ASSERT_EQ(bundle.sideband.size(), 1U);
  const trace::Sideband& record = bundle.sideband[0];
  EXPECT_EQ(record.kind, trace::SidebandKind::EXIT);
  EXPECT_EQ(record.tsc, 100U);
  EXPECT_EQ(record.pid, 10);
  EXPECT_EQ(record.tid, 12);
  EXPECT_EQ(record.parent, 3);
}

}  // namespace
}  // namespace ptkit::formats
