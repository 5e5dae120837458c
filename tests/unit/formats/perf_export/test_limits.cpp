// Limits of written perf.data: hostile names, numbers and sizes; refusals; interruption.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <random>
#include <set>

#include "unit/support/seconds.h"
#include "writing.h"

namespace ptkit::formats {
namespace {

using test::buffer;
using test::region;
using test::small_bundle;
using test::text;
using test::trace_of;

class PerfWriteLimits : public test::PerfWriting {};

TEST_F(PerfWriteLimits, TakesLessThanQuadraticTimeForLossesWithoutPsb) {
  constexpr std::size_t kMany = 20'000;
  trace::TraceBundle bundle = small_bundle();
  const std::string all = trace_of(1, 0) + std::string(kMany * 200, '\x02');
  bundle.streams[0].data = buffer(all + trace_of(2, 0));
  for (std::size_t i = 1; i <= kMany; ++i)
    bundle.streams[0].losses.push_back({i * 200, base::Status::BUFFER_FULL, 0});
  EXPECT_LT(ptkit::test::seconds_of([&] { static_cast<void>(write(bundle)); }), 5.0);
  EXPECT_EQ(records(perf::AUX).size(), kMany + 1);
  const auto chunks = records(perf::AUXTRACE);
  ASSERT_EQ(chunks.size(), kMany + 1);
  for (std::size_t i = 1; i < kMany; ++i)
    ASSERT_TRUE(std::ranges::all_of(chunks[i].payload.first(200), [](auto byte) { return byte == 0; })) << i;
  const std::string last(chunks[kMany].payload.begin(), chunks[kMany].payload.end());
  EXPECT_NE(last.find(trace_of(2, 0)), std::string::npos);
}

TEST_F(PerfWriteLimits, JoinsLossesAtOneOffset) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63U;
  trace::TraceBundle bundle = small_bundle();
  const std::string begin = trace_of(1, 0);
  const std::string all = begin + trace_of(2, 3);
  bundle.streams[0].data = buffer(all);
  for (const std::uint64_t lost : {std::uint64_t{7}, std::uint64_t{100}, kHuge}) {
    bundle.streams[0].losses = {{begin.size(), base::Status::BUFFER_FULL, lost},
                                {begin.size(), base::Status::RING_WRAPPED, 1},
                                {all.size(), base::Status::BUFFER_FULL, kHuge},
                                {all.size() + 1000, base::Status::BUFFER_FULL, kHuge}};
    const trace::TraceBundle back = write_and_read(bundle);
    ASSERT_EQ(back.streams.size(), 1U);
    EXPECT_EQ(text(back.streams[0].data), all);
    ASSERT_EQ(back.streams[0].losses.size(), 2U);
    EXPECT_EQ(back.streams[0].losses[0].offset, begin.size());
    EXPECT_EQ(back.streams[0].losses[0].lost_bytes, lost == 100 ? 101 : 0);
    EXPECT_EQ(back.streams[0].losses[1].offset, all.size());
  }
}

TEST_F(PerfWriteLimits, RefusesEmptyRecordings) {
  trace::TraceBundle bundle = small_bundle();
  bundle.streams[0].data = {};
  EXPECT_NE(failure(bundle).find("there is no trace to write"), std::string::npos);
  bundle.streams.clear();
  EXPECT_NE(failure(bundle).find("there is no trace to write"), std::string::npos);
}

TEST_F(PerfWriteLimits, KeepsHostileNamesInTheFolder) {
  namespace fs = std::filesystem;
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"/../escape", "../../escape", {}, {}});
  bundle.files.push_back({std::string(100'000, 'x'), "zz", {}, {}});
  bundle.files.push_back({"/other", "../../../../../../../../escape", {}, {}});
  bundle.files.push_back({"/good", "abcd", {}, {}});
  for (std::size_t i = 0; i < 4; ++i) {
    bundle.code.push_back(
        region(0x7000 + 0x1000 * i, "code " + std::to_string(i), 0, static_cast<std::int32_t>(i), 0x1000));
  }
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.code.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(text(back.code[i].bytes), "code " + std::to_string(i));
  // Only the file and its folder exist. The folder holds .build-id/XX/YYYY.../elf.
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch_.path())) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"out.data", "out.data.debug"}));
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path() + ".debug")) {
    if (entry.is_directory()) continue;
    ++files;
    const fs::path relative = entry.path().lexically_relative(path() + ".debug");
    std::vector<std::string> parts(relative.begin(), relative.end());
    ASSERT_EQ(parts.size(), 4U) << relative;
    EXPECT_EQ(parts[0], ".build-id");
    EXPECT_EQ(parts[1].size(), 2U);
    EXPECT_EQ((parts[1] + parts[2]).find_first_not_of("0123456789abcdef"), std::string::npos) << relative;
    EXPECT_EQ(parts[3], "elf");
  }
  EXPECT_EQ(files, 4U);
}

// Processes are looked up, not searched.
TEST_F(PerfWriteLimits, TakesLessThanQuadraticTimeForProcesses) {
  constexpr std::size_t kMany = 15'000;
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"/gone/a.so", std::string(40, 'a'), {}, {}});
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto pid = static_cast<std::int64_t>(100 + i);
    bundle.spaces.push_back({.pid = pid});
    bundle.spaces.push_back({});  // without a process
    bundle.threads.push_back({pid, pid, "name"});
    trace::Sideband record;
    record.kind = trace::SidebandKind::THREAD;
    record.pid = record.tid = pid;
    record.text = "other";
    bundle.sideband.push_back(record);
    bundle.code.push_back(region(0x7000, "abcd", 0, 0, 0x1000));
    bundle.code.back().space = static_cast<trace::SpaceId>(bundle.spaces.size() - 2);
  }
  EXPECT_LT(ptkit::test::seconds_of([&] { static_cast<void>(write(bundle)); }), 5.0);
  EXPECT_EQ(records(perf::MMAP2).size(), kMany);
  EXPECT_EQ(records(perf::COMM).size(), 2 * kMany + 1);  // first and later names
}

TEST_F(PerfWriteLimits, TakesLessThanQuadraticTimeForKernelSymbols) {
  constexpr std::uint64_t kKernel = 0xffffffff81000000;
  constexpr std::uint64_t kMany = 60'000;
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"[kernel]", "", {}, {}});
  for (std::uint64_t i = 0; i < kMany; ++i) {
    bundle.files[0].symbols.push_back({std::string("f").append(std::to_string(i)), 32 * i, 4});
    bundle.code.push_back(region(kKernel + 32 * i, "abcd", 0, 0, 32 * i));
    bundle.code.back().space = trace::kAnySpace;
  }
  const double seconds = ptkit::test::seconds_of([&] {
    const trace::TraceBundle back = write_and_read(bundle);
    ASSERT_EQ(back.files.at(0).symbols.size(), kMany + 1);  // and "_text"
    EXPECT_EQ(back.files[0].symbols[kMany].name, "f59999");
  });
  EXPECT_LT(seconds, 5.0);
}

// If the file is not replaced, its code folder stays.
TEST_F(PerfWriteLimits, ReplacesTheCodeFolderAfterTheFile) {
  trace::TraceBundle bundle = small_bundle();
  bundle.code = {region(0x1000, "abc")};
  static_cast<void>(write(bundle));
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path() + ".debug"))
      found.insert(entry.path());
    return found;
  };
  const std::set<std::string> before = names();
  bundle.code = {region(0x1000, "other")};
  // A folder of that name appears in the meantime: the file cannot get its name.
  const auto in_the_way = [&] {
    std::filesystem::remove(path());
    std::filesystem::create_directory(path());
    return true;
  };
  EXPECT_FALSE(write_perf_data(bundle, path(), {.go_on = in_the_way}).ok());
  EXPECT_EQ(names(), before);
}

TEST_F(PerfWriteLimits, RefusesWhatPerfDataCannotHold) {
  EXPECT_NE(failure({}).find("there is no trace"), std::string::npos);
  trace::TraceBundle bundle = small_bundle();
  bundle.streams[0].switches = {{.tsc = 0, .pid = 10, .tid = 10, .space = 1, .offset = 0}};
  bundle.streams[0].switches_by_offset = true;
  bundle.streams[0].switches.push_back({.pid = 10, .tid = 10, .offset = 16});
  EXPECT_NE(failure(bundle).find("context switches by stream offset"), std::string::npos);
  for (const std::int64_t id : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 30U,
                                std::int64_t{-2}, std::numeric_limits<std::int64_t>::min()}) {
    bundle = small_bundle();
    bundle.streams[0].cpu = id;
    EXPECT_NE(failure(bundle).find("cannot hold the PID, TID or CPU " + std::to_string(id)),
              std::string::npos);
    bundle = small_bundle();
    bundle.sideband.emplace_back().tid = id;
    EXPECT_NE(failure(bundle).find("cannot hold the PID, TID or CPU " + std::to_string(id)),
              std::string::npos);
  }
  std::filesystem::create_directory(path());
  EXPECT_NE(failure(small_bundle()).find("is a folder"), std::string::npos);
  std::filesystem::create_directory(path() + ".debug");
  std::filesystem::remove(path());
  bundle = small_bundle();
  bundle.code = {region(0x1000, "abc")};
  EXPECT_NE(failure(bundle).find("was not written by ptkit"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

// Interruption while packets are counted or decoded, or while AUX records or trace are written.
TEST_F(PerfWriteLimits, LeavesNoFilesAfterAnInterrupt) {
  trace::TraceBundle bundle = small_bundle();
  bundle.configuration.rtit_ctl_known = false;
  bundle.code = {region(0x1000, "abc"), region(0xffffffff81000000, "kernel")};
  const std::string guest = "\x02\x43\x01\x4a\xee\x01" + std::string(2, '\0');
  std::string guests;
  while (guests.size() < std::size_t{3} << 20U) guests += guest;
  bundle.streams[0].data = buffer(trace_of(1, std::size_t{20} << 20U) + guests);
  int most = 0;
  for (bool done = false; !done; ++most) {
    int count = 0;
    const auto written = write_perf_data(bundle, path(), {.go_on = [&] { return count++ < most; }});
    done = written.ok();
    if (done) break;
    ASSERT_EQ(written.failure().status, base::Status::INTERRUPTED);
    ASSERT_TRUE(std::filesystem::is_empty(std::filesystem::path(path()).parent_path())) << most;
    most += most / 4;
  }
  // go_on is called for each counted 16 MiB and for each decoded or written MiB.
  EXPECT_GT(most, 20);
}

// Any bundle is written or refused, and written files can be read.
TEST_F(PerfWriteLimits, WritesOrRefusesOddBundles) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::initializer_list<std::uint64_t> values) {
    return values.begin()[random() % values.size()];
  };
  const auto address = [&] {
    return pick({0, 1, 0x1000, 0x1ff8, 0x7fff'ffff'ffff'f000, 0x8000'0000'0000'0000, 0xffff'ffff'8100'0000,
                 0xffff'ffff'ffff'fff0, ~std::uint64_t{0}}) +
           random() % 3;
  };
  const auto id = [&] { return static_cast<std::int64_t>(random() % 4) - 1; };
  const auto tsc = [&] { return pick({0, 5, 90, 1'000, ~std::uint64_t{0} - 1, ~std::uint64_t{0}}); };
  int count = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    trace::TraceBundle bundle = small_bundle();
    bundle.configuration.rtit_ctl_known = random() % 2 == 0;
    bundle.configuration.clock.tsc_hz = pick({0, 1, 999, 2'500'000'000, ~std::uint64_t{0}});
    bundle.spaces.push_back({.pid = id()});
    bundle.files = {{"/a", "abcd", {}, {{"name", address(), 4}}}, {"[vdso]", "", {}, {}}, {"", "zz", {}, {}}};
    for (std::size_t i = random() % 8; i > 0; --i) {
      trace::CodeRegion one = region(address(), std::string(random() % 40, static_cast<char>(random() % 3)),
                                     tsc(), static_cast<std::int32_t>(random() % 4) - 1, address());
      one.size = pick({one.size, one.size, 0, 0x2000, ~std::uint64_t{0}});
      one.tsc_to = tsc();
      one.space = static_cast<trace::SpaceId>(random() % 3);
      bundle.code.push_back(std::move(one));
    }
    for (std::size_t i = random() % 6; i > 0; --i) {
      trace::Sideband record;
      record.kind = static_cast<trace::SidebandKind>(random() % 6);
      record.tsc = tsc();
      record.pid = id();
      record.tid = id();
      record.parent = id();
      record.text = std::string(random() % 5000, 'x');
      bundle.sideband.push_back(std::move(record));
    }
    trace::Stream& stream = bundle.streams[0];
    stream.cpu = id();
    stream.pid = id();
    stream.tid = id();
    for (std::size_t i = random() % 4; i > 0; --i) {
      stream.switches.push_back({tsc(), id(), id(), static_cast<trace::SpaceId>(random() % 3)});
      stream.losses.push_back({random() % 40, base::Status::BUFFER_FULL, tsc()});
    }
    std::filesystem::remove_all(path());
    const auto written = write_perf_data(bundle, path(), {});
    if (!written.ok()) continue;
    ++count;
    const auto back = open(path(), {});
    ASSERT_TRUE(back.ok()) << back.failure().detail;
    EXPECT_EQ(back.value().streams.size(), 1U);
  }
  EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace ptkit::formats
