// Sessions of single threads (per_thread), each with a fake device of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "capture/linux/process/tsc_clock.h"
#include "fake_driver.h"
#include "formats/registry.h"
#include "recording.h"
#include "unit/capture/linux/perf/fake_perf.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

class DriverThreads : public ::testing::Test {
 protected:
  DriverThreads() {
    options_.per_thread = true;
    options_.seconds = std::chrono::milliseconds(30'000);
    options_.output = path_;
    options_.timing = {.cyc = true};
    options_.mtc_period = 3;
    options_.argv = {"/bin/sleep", "30"};
  }
  ~DriverThreads() override { std::filesystem::remove(path_); }
  DriverThreads(const DriverThreads&) = delete;
  DriverThreads& operator=(const DriverThreads&) = delete;

  // The first device runs the script, then the recording ends.
  base::Result<RecordResult> record() {
    const OpenDriver open = [this]() -> base::Result<std::unique_ptr<DriverPort>> {
      FakeDevice& device = devices_.emplace_back();
      device.query = query_;
      if (devices_.size() > 1) {
        device.errors = later_errors_;
      } else {
        device.script = script_;
        device.script.emplace_back([this](FakeDevice&) { recorder_->stop(); });
      }
      return std::unique_ptr<DriverPort>(std::make_unique<FakePort>(device));
    };
    recorder_ = driver_recorder(options_, open, kernel_);
    return recorder_->run();
  }

  std::shared_ptr<const trace::TraceBundle> read() {
    auto bundle = formats::open(path_, {});
    EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
    return std::make_shared<trace::TraceBundle>(std::move(bundle.value()));
  }

  // A thread of the program begins.
  void begin_thread(FakeDevice& device, int tid) {
    ptkit_record_fork fork{};
    fork.space.record.type = PTKIT_RECORD_FORK;
    fork.space.record.tsc = read_tsc();
    fork.space.record.pid = fork.parent_pid = fork.parent_tid = devices_.front().config.task;
    fork.space.record.tid = tid;
    device.write_record(0, fork);
  }

  ptkit_query query_ = capable_query();
  FakeKernel kernel_;
  std::deque<FakeDevice> devices_;  // in the order in which they were opened
  std::vector<std::function<void(FakeDevice&)>> script_;
  std::map<unsigned long, int> later_errors_;  // of all devices but the first one
  RecordOptions options_;
  std::string path_ = "/tmp/ptkit-threads-" + std::to_string(::getpid()) + "-" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".ptk";
  std::unique_ptr<HardwareRecorder> recorder_;
};

Bytes data_of(const trace::Stream& stream) {
  const base::Bytes bytes = stream.data.bytes();
  return {bytes.begin(), bytes.end()};
}

TEST_F(DriverThreads, TracesProgramByItsThread) {
  script_.emplace_back([](FakeDevice& device) {
    device.write(0, psb());
    ptkit_record_space record{};
    record.record.type = PTKIT_RECORD_SWITCH;
    record.record.pid = record.record.tid = -1;
    record.record.tsc = read_tsc();
    device.write_record(0, record);
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const ptkit_config& config = devices_.front().config;
  EXPECT_EQ(config.target, static_cast<std::uint32_t>(PTKIT_TARGET_TASK));
  EXPECT_EQ(config.task, recorder_->status().pid);
  EXPECT_EQ(config.process, 0);
  EXPECT_EQ(config.flags & PTKIT_TRACE_CHILDREN, 0U);
  const auto bundle = read();
  ASSERT_EQ(bundle->streams.size(), 1U);
  const trace::Stream& stream = bundle->streams[0];
  EXPECT_EQ(stream.pid, recorder_->status().pid);
  EXPECT_EQ(stream.tid, recorder_->status().pid);
  EXPECT_EQ(stream.cpu, -1);
  EXPECT_EQ(data_of(stream), psb());
  EXPECT_TRUE(stream.switches.empty());
  EXPECT_TRUE(stream.losses.empty());
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::THREADS_LATE));
  // Mappings of all CPUs: the thread may run on each.
  EXPECT_EQ(kernel_.of_type(PERF_TYPE_SOFTWARE).size(), 2U);
}

TEST_F(DriverThreads, TracesThreadsThatBeginLater) {
  script_.emplace_back([this](FakeDevice& device) {
    begin_thread(device, 70);
    begin_thread(device, 71);
  });
  script_.emplace_back([this](FakeDevice& device) {
    ASSERT_EQ(devices_.size(), 3U);
    EXPECT_TRUE(devices_[1].started);
    devices_[1].write(0, psb());
    devices_[2].write(0, {1, 2, 3});
    begin_thread(device, 71);  // the number is used again
  });
  script_.emplace_back([this](FakeDevice&) { devices_[3].write(0, {9}); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  ASSERT_EQ(bundle->streams.size(), 4U);
  const std::vector<std::pair<int, Bytes>> expected{{70, psb()}, {71, {1, 2, 3}}, {71, {9}}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const trace::Stream& stream = bundle->streams[i + 1];
    EXPECT_EQ(stream.pid, recorder_->status().pid);
    EXPECT_EQ(stream.tid, expected[i].first);
    EXPECT_EQ(data_of(stream), expected[i].second);
    ASSERT_EQ(stream.losses.size(), 1U);
    EXPECT_EQ(stream.losses[0].offset, 0U);
    EXPECT_EQ(stream.losses[0].cause, base::Status::NOT_TRACED);
  }
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::THREADS_LATE, 3, recorder_->status().pid, 0));
}

TEST_F(DriverThreads, CountsThreadsThatEndedEarlier) {
  later_errors_ = {{PTKIT_CONFIGURE, ESRCH}};
  script_.emplace_back([this](FakeDevice& device) { begin_thread(device, 70); });
  script_.emplace_back([this](FakeDevice& device) {
    later_errors_ = {{PTKIT_START, ESRCH}};
    begin_thread(device, 71);
  });
  script_.emplace_back([](FakeDevice& device) { device.write(0, {4}); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  ASSERT_EQ(bundle->streams.size(), 1U);
  EXPECT_EQ(data_of(bundle->streams[0]), Bytes{4});
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::THREADS_LATE, 2, recorder_->status().pid, 2));
}

TEST_F(DriverThreads, SaysWhyThreadIsNotTraced) {
  later_errors_ = {{PTKIT_CONFIGURE, ENOMEM}};
  script_.emplace_back([this](FakeDevice& device) { begin_thread(device, 70); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::TRACING_FAILED));
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::THREADS_LATE, 1, recorder_->status().pid, 1));
}

// FORK records may be among the lost ones.
TEST_F(DriverThreads, SearchesThreadsWhereRecordsAreLost) {
  options_.argv = {};
  options_.pid = ::getpid();
  std::atomic<bool> ends{false};
  std::thread other;
  script_.emplace_back([&](FakeDevice& device) {
    other = std::thread([&] { ends.wait(false); });
    ptkit_record_lost lost{};
    lost.record.type = PTKIT_RECORD_LOST;
    lost.record.tsc = read_tsc();
    lost.count = 3;
    device.write_record(0, lost);
  });
  script_.emplace_back([](FakeDevice&) {});
  const auto result = record();
  ends = true;
  ends.notify_all();
  other.join();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::THREADS_LATE, 1, ::getpid(), 0));
}

TEST_F(DriverThreads, IsRefusedWhereDriverCannot) {
  query_.features &= ~PTKIT_FEATURE_TASK;
  auto result = record();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.failure().detail.find("per_thread: this kernel has no tracepoints"), std::string::npos);
  query_ = capable_query();
  options_.cpus.all = true;
  result = record();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.failure().detail.find("whole processors have no threads"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::capture::test
