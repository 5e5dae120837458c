// Branch Trace Store by the driver: marks and branches of a fake device become stretches with their threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "formats/registry.h"
#include "recording.h"
#include "unit/capture/linux/perf/fake_perf.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

void append_words(Bytes& out, std::uint64_t first, std::uint64_t second, std::uint64_t third) {
  for (const std::uint64_t word : {first, second, third}) {
    for (unsigned i = 0; i < 8; ++i) out.push_back(static_cast<std::uint8_t>(word >> 8 * i));
  }
}

Bytes mark(std::int32_t pid, std::int32_t tid, std::uint64_t tsc) {
  const ptkit_branch_mark one{0, pid, tid, tsc};
  Bytes out(sizeof one);
  std::memcpy(out.data(), &one, sizeof one);
  return out;
}

Bytes end_mark(std::uint64_t tsc) { return mark(~7, ~8, tsc); }

// Branches from `first` on, each 16 bytes after the one before.
Bytes branches(std::uint64_t first, std::uint64_t count) {
  Bytes out;
  for (std::uint64_t i = 0; i < count; ++i) append_words(out, first + 16 * i + 8, first + 16 * (i + 1), 0);
  return out;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

TEST(DriverBranches, SplitsAtMarks) {
  DriverBranches reader(false);
  const auto found = reader.take(
      joined({mark(7, 8, 100), branches(0x1000, 2), end_mark(110), mark(7, 9, 120), end_mark(130),
              mark(0, 0, 140), branches(0x2000, 1), end_mark(150), mark(7, 8, 160), branches(0x3000, 1)}));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].since, 100U);
  EXPECT_EQ(found[0].pid, 7);
  EXPECT_EQ(found[0].tid, 8);
  EXPECT_EQ(found[0].until, 110U);
  ASSERT_EQ(found[0].records.size(), 2U);
  EXPECT_EQ(found[0].records[0].from_ip, 0x1008U);
  EXPECT_EQ(found[0].records[0].tsc, 0U);
  EXPECT_EQ(found[0].records[1].tsc, 110U);
  EXPECT_EQ(found[0].records[0].flags, trace::RECORD_FIRST);
  EXPECT_EQ(found[1].pid, 0);
  EXPECT_EQ(found[1].records[0].tsc, 150U);
  EXPECT_EQ(found[1].records[0].flags, 0U);  // user code: nothing of its path is missing
  EXPECT_EQ(found[2].records[0].tsc, 0U);
  EXPECT_EQ(found[2].until, 0U);
  // The stretch goes on.
  const auto more = reader.take(joined({branches(0x3010, 1), end_mark(170)}));
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more[0].tid, 8);
  EXPECT_EQ(more[0].since, 160U);
  EXPECT_EQ(more[0].records[0].tsc, 170U);
}

TEST(DriverBranches, BeginsKernelPathsAnew) {
  DriverBranches reader(true);
  const auto found = reader.take(joined(
      {mark(7, 8, 1), branches(0x1000, 2), end_mark(2), mark(7, 8, 3), branches(0x1020, 2), end_mark(4)}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].records[0].flags, trace::RECORD_FIRST);
  EXPECT_EQ(found[1].records[1].flags, 0U);
}

// A ring has overwritten the first mark.
TEST(DriverBranches, TakesThreadFromMarkAtEnd) {
  DriverBranches reader(false);
  const auto found = reader.take(joined({branches(0x1000, 3), end_mark(9)}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pid, 7);
  EXPECT_EQ(found[0].tid, 8);
  EXPECT_EQ(found[0].since, 9U);
  EXPECT_EQ(found[0].until, 0U);  // the beginning is not known
  EXPECT_EQ(found[0].records.back().tsc, 9U);
  const auto unmarked = DriverBranches(false).take(branches(0x1000, 3));
  ASSERT_EQ(unmarked.size(), 1U);
  EXPECT_EQ(unmarked[0].pid, -1);
}

class DriverStore : public DriverRecording {
 protected:
  DriverStore() {
    options_.bts = true;
    options_.timing.reset();
    options_.mtc_period.reset();
  }
};

std::vector<trace::BranchRecord> records_of(const trace::Stream& stream) {
  std::vector<trace::BranchRecord> out(stream.data.size() / sizeof(trace::BranchRecord));
  std::memcpy(out.data(), stream.data.bytes().data(), stream.data.size());
  return out;
}

TEST_F(DriverStore, GivesRowsTheirThreadsAndTimes) {
  // A fork of this process has the same mappings; only its number matters.
  const std::int32_t self = ::getpid();
  device_.script.emplace_back([&](FakeDevice& device) {
    device.write(1, joined({mark(self, self, 1000), branches(0x1000, 3), end_mark(1100),
                            mark(self, 9999, 1200), branches(0x2000, 2), end_mark(1300)}));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(device_.config.output, static_cast<std::uint32_t>(PTKIT_OUTPUT_BTS));
  EXPECT_EQ(device_.config.flags, PTKIT_TRACE_USER | PTKIT_TRACE_BRANCHES);
  EXPECT_EQ(device_.config.psb_freq, 0);
  EXPECT_EQ(device_.config.wake_up_bytes, device_.config.buffer_bytes / 4);
  const auto bundle = read();
  ASSERT_EQ(bundle->streams.size(), 2U);
  const trace::Stream& stream = bundle->streams[1];
  EXPECT_EQ(stream.kind, trace::StreamKind::BRANCH_RECORDS);
  EXPECT_TRUE(stream.switches_by_offset);
  EXPECT_EQ(stream.cpu, 1);
  const auto found = records_of(stream);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[2].tsc, 1100U);
  EXPECT_EQ(found[4].from_ip, 0x2018U);
  EXPECT_EQ(found[4].tsc, 1300U);
  ASSERT_EQ(stream.switches.size(), 2U);
  EXPECT_EQ(stream.switches[0].tid, self);
  EXPECT_EQ(stream.switches[0].offset, 0U);
  EXPECT_EQ(stream.switches[1].tid, 9999);
  EXPECT_EQ(stream.switches[1].tsc, 1200U);
  EXPECT_EQ(stream.switches[1].offset, 3 * sizeof(trace::BranchRecord));
}

// 64 KiB are no whole number of records.
TEST_F(DriverStore, ReadsRecordsAcrossEndOfBuffer) {
  options_.buffer = 4096;
  std::uint64_t written = 0;
  for (int i = 0; i < 8; ++i) {
    device_.script.emplace_back([&](FakeDevice& device) {
      device.write(
          0, joined({mark(7, 7, written + 1), branches(0x1000 + 16 * written, 1000), end_mark(written + 2)}));
      written += 1000;
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(device_.config.buffer_bytes, 16 * kPage);
  const auto bundle = read();
  const auto found = records_of(bundle->streams[0]);
  ASSERT_EQ(found.size(), 8000U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].from_ip, 0x1008 + 16 * i);
    ASSERT_EQ(found[i].flags, i == 0 ? std::uint32_t{trace::RECORD_FIRST} : 0U);
  }
  EXPECT_TRUE(bundle->streams[0].losses.empty());
}

TEST_F(DriverStore, ReportsFullBuffer) {
  device_.script.emplace_back([](FakeDevice& device) {
    device.write(0, joined({mark(7, 7, 1), branches(0x1000, 4), end_mark(2)}));
    ptkit_status& status = device.cpus.at(0).status;
    status.stops = 1;
    status.stopped_at[0] = status.head;
    device.write(0, joined({mark(7, 7, 3), branches(0x5000, 4), end_mark(4)}));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  const trace::Stream& stream = bundle->streams[0];
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 4 * sizeof(trace::BranchRecord));
  EXPECT_EQ(stream.losses[0].cause, base::Status::BUFFER_FULL);
  const auto found = records_of(stream);
  ASSERT_EQ(found.size(), 8U);
  EXPECT_EQ(found[4].flags, trace::RECORD_FIRST);
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::BUFFER_FULL, 1));
}

// Without kernel code, only the pause interrupts the path.
TEST_F(DriverStore, BeginsAnewAfterPause) {
  device_.script.emplace_back([this](FakeDevice& device) {
    device.write(0, joined({mark(7, 7, 1), branches(0x1000, 2), end_mark(2)}));
    EXPECT_FALSE(recorder_->pause());
  });
  device_.script.emplace_back([this](FakeDevice&) { EXPECT_FALSE(recorder_->resume()); });
  device_.script.emplace_back([](FakeDevice&) {});
  device_.script.emplace_back([](FakeDevice& device) {
    device.write(0, joined({mark(7, 7, 3), branches(0x1020, 2), end_mark(4), mark(7, 7, 5),
                            branches(0x1040, 2), end_mark(6)}));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  std::vector<std::uint32_t> flags;
  for (const auto& one : records_of(read()->streams[0])) flags.push_back(one.flags);
  const std::uint32_t first = trace::RECORD_FIRST;
  EXPECT_EQ(flags, (std::vector<std::uint32_t>{first, 0, first, 0, 0, 0}));
}

TEST_F(DriverStore, KeepsNewestOfRing) {
  options_.ring = 16 * kPage;
  device_.script.emplace_back([this](FakeDevice& device) {
    device.write(0, joined({mark(7, 8, 10), branches(0x1000, 3), end_mark(20)}));
    EXPECT_FALSE(recorder_->snapshot());
  });
  device_.script.emplace_back([](FakeDevice& device) {
    device.write(0, joined({mark(7, 9, 30), branches(0x9000, 2), end_mark(40)}));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(device_.config.mode, static_cast<std::uint32_t>(PTKIT_MODE_RING));
  EXPECT_EQ(device_.config.wake_up_bytes, 0U);
  const auto bundle = read();
  const auto found = records_of(bundle->streams[0]);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[3].flags, trace::RECORD_FIRST);
  ASSERT_EQ(bundle->streams[0].switches.size(), 2U);
  EXPECT_EQ(bundle->streams[0].switches[1].tid, 9);
  EXPECT_EQ(bundle->streams[0].switches[1].offset, 3 * sizeof(trace::BranchRecord));
}

TEST_F(DriverStore, IsRefusedWhereDriverCannot) {
  device_.query.features &= ~PTKIT_FEATURE_BTS;
  EXPECT_NE(refused().find("boot with pti=off"), std::string::npos);
  device_.query = capable_query();
  options_.single_range = true;
  EXPECT_NE(refused().find("single_range: this is of packets"), std::string::npos);
  options_.single_range = false;
  options_.per_thread = true;
  EXPECT_NE(refused().find("per_thread: the driver stores branches of processors"), std::string::npos);
  options_.per_thread = false;
  options_.branch_stack = "any";
  EXPECT_NE(refused().find("branch_stack: the back end \"driver\" does not have this option"),
            std::string::npos);
}

}  // namespace
}  // namespace ptkit::capture::test
