// The driver back end with a fake device that behaves as the driver does.
#include <signal.h>
#include <sys/wait.h>

#include <iterator>
#include <numeric>
#include <random>
#include <thread>

#include "recording.h"
#include "unit/capture/common/ignored_signal.h"

namespace ptkit::capture::test {
namespace {

Bytes numbered(std::uint64_t from, std::uint64_t count) {
  Bytes out(count);
  for (std::uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>((from + i) * 2654435761U >> 13U);
  return out;
}

Bytes data_of(const trace::Stream& stream) {
  const base::Bytes bytes = stream.data.bytes();
  return {bytes.begin(), bytes.end()};
}

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

std::vector<std::uint64_t> losses_of(const trace::Stream& stream, base::Status cause) {
  std::vector<std::uint64_t> out;
  for (const trace::KnownLoss& loss : stream.losses) {
    EXPECT_EQ(loss.cause, cause);
    out.push_back(loss.offset);
  }
  return out;
}

TEST_F(DriverRecording, EndsAtTimeLimit) {
  options_.seconds = std::chrono::milliseconds(20);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
}

TEST_F(DriverRecording, DrainsOnWakeUp) {
  options_.buffer = 16 * kPage;
  Bytes expected;
  for (int i = 0; i < 12; ++i) {
    device_.script.emplace_back([&, i](FakeDevice& device) {
      const Bytes more = numbered(static_cast<std::uint64_t>(i) * 7, 3 * kPage + 100);
      device.write(1, more);
      append(expected, more);
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_FALSE(result.value().limited);
  EXPECT_EQ(device_.config.wake_up_bytes, 4 * kPage);
  EXPECT_EQ(device_.config.target, static_cast<std::uint32_t>(PTKIT_TARGET_ALL));
  const auto bundle = read();
  ASSERT_EQ(bundle->streams.size(), 2U);
  EXPECT_EQ(data_of(bundle->streams[0]), Bytes());
  EXPECT_EQ(data_of(bundle->streams[1]), expected);
  EXPECT_GT(expected.size(), 2 * options_.buffer);
  EXPECT_EQ(bundle->streams[1].cpu, 1);
  EXPECT_TRUE(bundle->streams[1].losses.empty());
  EXPECT_EQ(result.value().trace_bytes, expected.size());
  EXPECT_FALSE(warns(*bundle, WarningCode::PROGRAM_END_UNKNOWN));
}

TEST_F(DriverRecording, ReportsOffsetOfFullBuffer) {
  options_.buffer = 16 * kPage;
  device_.script.emplace_back([](FakeDevice& device) { device.write(0, numbered(0, 20 * kPage)); });
  device_.script.emplace_back([](FakeDevice& device) { device.write(0, psb()); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  Bytes expected = numbered(0, 16 * kPage);
  append(expected, psb());
  EXPECT_EQ(data_of(bundle->streams[0]), expected);
  EXPECT_EQ(losses_of(bundle->streams[0], base::Status::BUFFER_FULL), std::vector{16 * kPage});
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::BUFFER_FULL, 1));
}

TEST_F(DriverRecording, ReportsClearedTraceEn) {
  device_.script.emplace_back(
      [](FakeDevice& device) { device.cpus[1].status.flags |= PTKIT_STATUS_CLEARED; });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 1", WarningCode::TRACE_EN_CLEARED));
}

TEST_F(DriverRecording, ReportsWhereTraceEnWasCleared) {
  options_.buffer = 16 * kPage;
  device_.script.emplace_back([](FakeDevice& device) {
    device.write(1, numbered(0, 100));
    ptkit_status& status = device.cpus[1].status;
    status.flags |= PTKIT_STATUS_CLEARED;
    status.clears = 1;
    status.cleared_at = 100;
    device.write(1, numbered(3, 20 * kPage));
  });
  device_.script.emplace_back([](FakeDevice& device) { device.write(1, numbered(5, 50)); });
  ASSERT_TRUE(record().ok());
  const auto bundle = read();
  ASSERT_EQ(bundle->streams[1].losses.size(), 2U);
  EXPECT_EQ(bundle->streams[1].losses[0].offset, 100U);
  EXPECT_EQ(bundle->streams[1].losses[0].cause, base::Status::NOT_TRACED);
  EXPECT_EQ(bundle->streams[1].losses[1].offset, 16 * kPage);
  EXPECT_EQ(bundle->streams[1].losses[1].cause, base::Status::BUFFER_FULL);
  EXPECT_EQ(bundle->streams[1].data.size(), 16 * kPage + 50);
}

TEST_F(DriverRecording, PutsClearedTraceEnAtEndOfRing) {
  options_.ring = 16 * kPage;
  for (int i = 0; i < 2; ++i) {
    device_.script.emplace_back([&](FakeDevice& device) {
      device.write(0, numbered(0, 100));
      device.cpus[0].status.flags |= PTKIT_STATUS_CLEARED;
      EXPECT_FALSE(recorder_->snapshot());
    });
  }
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(losses_of(read()->streams[0], base::Status::NOT_TRACED), std::vector<std::uint64_t>{100});
}

// A hypervisor runs (VMXON), and TraceEn cannot be set. When it has ended, tracing goes on.
TEST_F(DriverRecording, TriesToGoOnWhereTraceEnWasCleared) {
  device_.script.emplace_back([](FakeDevice& device) {
    ptkit_status& status = device.cpus[1].status;
    status.flags |= PTKIT_STATUS_CLEARED;
    status.clears = 1;
    status.error = -EIO;
  });
  for (int i = 0; i < 3; ++i)
    device_.script.emplace_back([](FakeDevice& device) { device.write(0, numbered(0, 50)); });
  device_.errors[PTKIT_RESUME] = EIO;
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(std::count(device_.requests.begin(), device_.requests.end(), PTKIT_RESUME), 1);
  EXPECT_EQ(read()->streams[0].data.size(), 150U);  // the recording has not ended
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 1", WarningCode::TRACE_EN_CLEARED));
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::TRACING_FAILED));
}

TEST_F(DriverRecording, ReportsCpuThatPerfHas) {
  device_.script.emplace_back(
      [](FakeDevice& device) { device.cpus[1].status.flags |= PTKIT_STATUS_REFUSED; });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  EXPECT_EQ(losses_of(bundle->streams[1], base::Status::NOT_TRACED), std::vector<std::uint64_t>{0});
  EXPECT_TRUE(losses_of(bundle->streams[0], base::Status::NOT_TRACED).empty());
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 1", WarningCode::TRACING_FAILED,
                       "perf's intel_pt has the trace unit"));
}

// The buffer filled up after its status was read, and tracing resumed after PTKIT_CONSUME. A PSB at the
// beginning of a page does not show where tracing stopped.
TEST_F(DriverRecording, FindsStopBetweenDrains) {
  options_.buffer = 16 * kPage;
  bool once = false;
  device_.on_consume = [&](FakeDevice& device) {
    if (std::exchange(once, true)) return;
    Bytes more = numbered(100, 20 * kPage);
    const Bytes ordinary = psb();
    std::copy(ordinary.begin(), ordinary.end(), more.begin() + 8 * kPage - 8);
    device.write(0, more);
  };
  device_.script.emplace_back([](FakeDevice& device) { device.write(0, numbered(0, 5 * kPage + 8)); });
  device_.script.emplace_back([](FakeDevice& device) {
    Bytes more = psb();
    append(more, numbered(7, 100));
    device.write(0, more);
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  EXPECT_EQ(device_.cpus.at(0).status.stops, 1U);
  EXPECT_EQ(losses_of(bundle->streams[0], base::Status::BUFFER_FULL), std::vector{16 * kPage});
  EXPECT_EQ(bundle->streams[0].data.size(), 16 * kPage + psb().size() + 100);
}

// Full before PTKIT_CONSUME, and once more before the next PTKIT_STATUS.
TEST_F(DriverRecording, ReportsBothStopsBetweenDrains) {
  options_.buffer = 16 * kPage;
  bool once = false;
  device_.on_consume = [&](FakeDevice& device) {
    if (!std::exchange(once, true)) device.write(0, numbered(100, 20 * kPage));
  };
  device_.script.emplace_back([](FakeDevice& device) { device.write(0, numbered(0, 8 * kPage)); });
  device_.script.emplace_back([](FakeDevice& device) { device.write(0, numbered(7, 20 * kPage)); });
  ASSERT_TRUE(record().ok());
  const auto bundle = read();
  EXPECT_EQ(device_.cpus.at(0).status.stops, 2U);
  EXPECT_EQ(losses_of(bundle->streams[0], base::Status::BUFFER_FULL), (std::vector{16 * kPage, 24 * kPage}));
}

TEST_F(DriverRecording, ReadsBufferWithoutWakeUpsAtEnd) {
  options_.buffer = 16 * kPage;
  device_.query.features &= ~PTKIT_FEATURE_WAKE_UP;
  device_.script.emplace_back([](FakeDevice& device) {
    device.write(0, numbered(0, 20 * kPage));
    device.write(1, numbered(3, 100));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  EXPECT_EQ(data_of(bundle->streams[0]), numbered(0, 16 * kPage));
  EXPECT_EQ(losses_of(bundle->streams[0], base::Status::BUFFER_FULL), std::vector{16 * kPage});
  EXPECT_EQ(data_of(bundle->streams[1]), numbered(3, 100));
  EXPECT_TRUE(bundle->streams[1].losses.empty());
}

// Each snapshot has the new bytes, after a loss if bytes were overwritten.
TEST_F(DriverRecording, SnapshotsHaveOnlyNewBytes) {
  options_.ring = 16 * kPage;
  const std::vector<std::uint64_t> parts{3000, 40000, 16 * kPage, 5, 0, 90000, 1};
  Bytes all;
  std::vector<Bytes> expected{Bytes()};  // between losses
  std::uint64_t kept = 0;
  for (const std::uint64_t part : parts) {
    device_.script.emplace_back([&, part](FakeDevice& device) {
      const Bytes more = numbered(all.size() + 1, part);
      device.write(0, more);
      append(all, more);
      EXPECT_FALSE(recorder_->snapshot());
      if (all.size() - kept >= options_.ring) {
        kept = all.size() - options_.ring;
        expected.emplace_back();
      }
      append(expected.back(), Bytes(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end()));
      kept = all.size();
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(result.value().snapshots, parts.size());
  const auto bundle = read();
  Bytes joined;
  std::vector<std::uint64_t> losses;
  for (const Bytes& one : expected) {
    if (!joined.empty()) losses.push_back(joined.size());
    append(joined, one);
  }
  EXPECT_EQ(data_of(bundle->streams[0]), joined);
  EXPECT_EQ(losses_of(bundle->streams[0], base::Status::RING_WRAPPED), losses);
}

TEST_F(DriverRecording, StopKeepsTrace) {
  options_.seconds = std::chrono::milliseconds(0);
  device_.script.emplace_back([&](FakeDevice& device) {
    device.write(0, numbered(0, 50));
    recorder_->stop();
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().interrupted);
  EXPECT_EQ(data_of(read()->streams[0]), numbered(0, 50));
  EXPECT_TRUE(device_.closed || !device_.started);
}

TEST_F(DriverRecording, KeepsTraceIfDeviceFails) {
  options_.seconds = std::chrono::milliseconds(0);
  device_.script.emplace_back([](FakeDevice& device) { device.write(0, numbered(0, 50)); });
  device_.script.emplace_back([](FakeDevice& device) {
    for (const unsigned long request :
         std::initializer_list<unsigned long>{PTKIT_CONSUME, PTKIT_STATUS, PTKIT_PAUSE, PTKIT_STOP})
      device.errors[request] = ENODEV;
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::RECORDING_FAILED));
  EXPECT_EQ(data_of(read()->streams[0]), numbered(0, 50));
}

TEST_F(DriverRecording, EndsOnFailedCpuButNotOnLostChildren) {
  options_.seconds = std::chrono::milliseconds(0);
  device_.script.emplace_back([](FakeDevice& device) { device.cpus[1].status.error = -ENOMEM; });
  device_.script.emplace_back([](FakeDevice& device) { device.write(0, numbered(0, 9)); });
  device_.script.emplace_back([](FakeDevice& device) { device.cpus[1].status.error = -EBUSY; });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::CHILDREN_NO_MEMORY));
  EXPECT_TRUE(
      warns_at(result.value().warnings, "CPU 1", WarningCode::TRACING_FAILED, "Device or resource busy"));
  EXPECT_EQ(data_of(read()->streams[0]), numbered(0, 9));
}

// A stop request late in a recording gives the program the same time to exit as an early one.
TEST_F(DriverRecording, GivesInterruptedProgramTimeToExit) {
  const IgnoredSignal ignored(SIGINT);
  reset_unit_options(options_);
  options_.seconds = std::chrono::milliseconds(20);
  options_.argv = {"/bin/sh", "-c", "trap 'sleep 0.5; exit 7' INT; while :; do sleep 0.1; done"};
  recorder_ = driver_recorder(options_, opener(device_), kernel_);
  std::thread user([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5500));
    recorder_->stop();
  });
  const auto result = recorder_->run();
  user.join();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().interrupted);
  EXPECT_EQ(result.value().exit_status, 7);
}

TEST_F(DriverRecording, LaunchesProgramAndSavesCode) {
  reset_unit_options(options_);
  options_.argv = {"/bin/sh", "-c", "exit 3"};
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(result.value().exit_status, 3);
  EXPECT_EQ(device_.config.process, recorder_->status().pid);
  EXPECT_NE(device_.config.flags & PTKIT_TRACE_CHILDREN, 0U);
  const auto bundle = read();
  EXPECT_EQ(bundle->streams[0].pid, recorder_->status().pid);
  ASSERT_LT(bundle->streams[0].space, bundle->spaces.size());
  EXPECT_EQ(bundle->spaces[bundle->streams[0].space].pid, recorder_->status().pid);
  std::size_t bytes = 0;
  for (const trace::CodeRegion& region : bundle->code) {
    EXPECT_EQ(region.space, bundle->streams[0].space);
    bytes += region.bytes.size();
  }
  EXPECT_GT(bytes, std::size_t{50000});
  EXPECT_TRUE(std::any_of(bundle->files.begin(), bundle->files.end(),
                          [](const trace::ImageFile& file) { return file.path == "[vdso]"; }));
}

// Buffers are not drained while the kernel's code is saved, so tracing is paused. The saved code has the
// driver's tracepoint probes.
TEST_F(DriverRecording, PausesWhileKernelCodeIsSaved) {
  options_.levels.kernel = true;
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  std::vector<unsigned long> requests;
  std::copy_if(device_.requests.begin(), device_.requests.end(), std::back_inserter(requests),
               [](unsigned long one) { return one != PTKIT_STATUS && one != PTKIT_CONSUME; });
  const std::vector<unsigned long> expected{PTKIT_QUERY,  PTKIT_CONFIGURE, PTKIT_BUFFER,
                                            PTKIT_BUFFER, PTKIT_START,     PTKIT_PAUSE,
                                            PTKIT_RESUME, PTKIT_PAUSE,     PTKIT_STOP};
  EXPECT_EQ(requests, expected);
  EXPECT_NE(device_.config.flags & PTKIT_TRACE_KERNEL, 0U);
}

TEST_F(DriverRecording, FailsOnMissingProgram) {
  reset_unit_options(options_);
  options_.argv = {"/nonexistent/program"};
  EXPECT_NE(refused().find("/nonexistent/program: No such file"), std::string::npos);
}

// The driver gets a PID, which may have been reused.
TEST_F(DriverRecording, RejectsExitedProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  reset_unit_options(options_);
  options_.pid = child;
  device_.on_configure = [child] {
    static_cast<void>(::kill(child, SIGKILL));
    siginfo_t ended{};
    static_cast<void>(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT));
  };
  EXPECT_EQ(refused(), "pid: the process has ended");
  EXPECT_TRUE(std::find(device_.requests.begin(), device_.requests.end(), PTKIT_START) ==
              device_.requests.end());
  static_cast<void>(::waitpid(child, nullptr, 0));
}

TEST_F(DriverRecording, ReportsIoctlErrors) {
  const std::vector<std::tuple<unsigned long, int, std::string>> cases{
      {PTKIT_START, EBUSY, "another tracer is active"},
      {PTKIT_START, ESRCH, "pid: the process has ended"},
      {PTKIT_START, EIO, "a write to the trace unit's registers faulted"},
      {PTKIT_CONFIGURE, ENOMEM, "buffer: the kernel has not enough memory"},
      {PTKIT_CONFIGURE, E2BIG, "the loaded driver does not support"},
      {PTKIT_QUERY, ENOTTY, "does not answer as ptkit's kernel driver does"},
  };
  for (const auto& [request, error, words] : cases) {
    device_.errors = {{request, error}};
    EXPECT_NE(refused().find(words), std::string::npos) << words;
    EXPECT_TRUE(device_.closed);
  }
}

TEST_F(DriverRecording, RefusesDriverOfOtherVersionInOneLine) {
  const std::vector<std::pair<std::uint32_t, std::string>> cases{
      {PTKIT_ABI - 1, "load the driver that belongs to it"},
      {PTKIT_ABI + 1, "take the ptkit that belongs to the driver"},
  };
  for (const auto& [version, remedy] : cases) {
    device_.query.abi = version;
    device_.requests.clear();
    EXPECT_EQ(refused(), "the kernel driver has version " + std::to_string(version) +
                             " of its interface, and this ptkit version " + std::to_string(PTKIT_ABI) + "; " +
                             remedy);
    EXPECT_EQ(device_.requests, std::vector<unsigned long>{PTKIT_QUERY});
  }
}

TEST_F(DriverRecording, OpensSessionPerChosenCpu) {
  FakeDevice second;
  options_.cpus.all = false;
  options_.cpus.numbers = {0, 1};
  std::size_t opened = 0;
  const OpenDriver open = [&]() -> base::Result<std::unique_ptr<DriverPort>> {
    return std::unique_ptr<DriverPort>(std::make_unique<FakePort>(opened++ == 0 ? device_ : second));
  };
  second.script.emplace_back([](FakeDevice& device) { device.write(1, numbered(0, 70)); });
  const auto result = driver_recorder(options_, open, kernel_)->run();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(device_.config.target, static_cast<std::uint32_t>(PTKIT_TARGET_CPU));
  EXPECT_EQ(second.config.cpu, 1U);
  const auto bundle = read();
  ASSERT_EQ(bundle->streams.size(), 2U);
  EXPECT_EQ(bundle->streams[1].cpu, 1);
  EXPECT_EQ(data_of(bundle->streams[1]), numbered(0, 70));
}

}  // namespace
}  // namespace ptkit::capture::test
