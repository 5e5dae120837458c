#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "capture/common/cpu_info.h"
#include "capture/linux/process/process.h"
#include "capture/linux/process/tsc_clock.h"
#include "capture/linux/ptrace/recorder.h"
#include "formats/registry.h"
#include "trace/clock.h"
#include "unit/capture/common/ignored_signal.h"
#include "unit/support/scratch.h"

namespace ptkit::capture {
namespace {

using formats::test::Scratch;

RecordOptions options(const Scratch& scratch, std::vector<std::string> argv) {
  RecordOptions out;
  out.argv = std::move(argv);
  out.output = scratch.at("out.ptk");
  return out;
}

std::string failure_of(RecordOptions options) {
  const auto result = StepRecorder(std::move(options)).run();
  return result.ok() ? "(it ran)" : result.failure().detail;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RecordOptions, RejectsValuesOutOfRange) {
  const Scratch scratch;
  auto one = options(scratch, {});
  EXPECT_TRUE(has(failure_of(one), "argv"));
  one.argv = {"true"};
  one.psb_period = 3000;
  EXPECT_TRUE(has(failure_of(one), "psb_period: expected a power of two"));
  one.psb_period = 1024;
  EXPECT_TRUE(has(failure_of(one), "psb_period"));
  one.psb_period = 2048;
  one.mtc_period = 16;
  EXPECT_TRUE(has(failure_of(one), "mtc_period: expected 0 to 15, found 16"));
  one.mtc_period = 0;
  one.truth_folder = scratch.at("missing");
  EXPECT_TRUE(has(failure_of(one), "missing: expected a folder"));
  one.truth_folder.clear();
  one.output = scratch.at("no/such/file.ptk");
  EXPECT_TRUE(has(failure_of(one), "cannot create"));
}

TEST(StepRecorder, NamesProgramsThatCannotRun) {
  const Scratch scratch;
  EXPECT_TRUE(
      has(failure_of(options(scratch, {"/no/such/program"})), "cannot run /no/such/program: No such file"));
}

TEST(StepRecorder, RecordsFromFirstInstructionToExit) {
  const Scratch scratch;
  auto one = options(scratch, {"/bin/sh", "-c", "exit 42"});
  one.truth_folder = scratch.path();
  const auto result = StepRecorder(one).run();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(result.value().exit_status, 42);
  EXPECT_EQ(result.value().streams, 1U);
  EXPECT_FALSE(result.value().interrupted);
  EXPECT_EQ(formats::test::read_all(scratch.at("stream-0.u64")).size(), result.value().instructions * 8);

  const auto bundle = formats::open(one.output, {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_TRUE(bundle.value().warnings.empty());
  ASSERT_EQ(bundle.value().streams.size(), 1U);
  EXPECT_EQ(bundle.value().streams[0].data.size(), result.value().trace_bytes);
  EXPECT_EQ(bundle.value().streams[0].space, 1U);
  EXPECT_TRUE(has(bundle.value().metadata, "\"exit_status\":42"));
  EXPECT_TRUE(has(bundle.value().metadata, "\"backend\":\"step\""));
  EXPECT_TRUE(bundle.value().configuration.clock.perf_time_known);
  bool named = false;
  for (const auto& file : bundle.value().files) named |= !file.symbols.empty();
  EXPECT_TRUE(named);
  const auto& last = bundle.value().sideband;
  EXPECT_TRUE(std::any_of(last.begin(), last.end(), [](const trace::Sideband& record) {
    return record.kind == trace::SidebandKind::EXIT && record.value == 42;
  }));
}

TEST(StepRecorder, CanOnlyBeStopped) {
  const Scratch scratch;
  StepRecorder recorder(options(scratch, {"true"}));
  for (const auto& failure : {recorder.detach(), recorder.snapshot(), recorder.pause(), recorder.resume()}) {
    ASSERT_TRUE(failure);
    EXPECT_TRUE(has(failure->detail, "can only be stopped; use backend='emulator'"));
  }
}

TEST(StepRecorder, StopsOnRequest) {
  const Scratch scratch;
  const IgnoredSignal ignored(SIGINT);
  StepRecorder recorder(options(scratch, {"sleep", "100"}));
  std::thread stopper([&] {
    while (recorder.status().instructions < 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    recorder.stop();
  });
  const auto result = recorder.run();
  stopper.join();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().interrupted);
  EXPECT_EQ(result.value().exit_status, 128 + SIGINT);
  EXPECT_TRUE(formats::open(scratch.at("out.ptk"), {}).ok());
}

TEST(StepRecorder, ProgramContinuesAfterMaxInstructions) {
  const Scratch scratch;
  auto one = options(scratch, {"sh", "-c", "exit 4"});
  one.max_instructions = 100;
  const auto result = StepRecorder(one).run();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.value().limited);
  EXPECT_EQ(result.value().exit_status, 4);
  EXPECT_GE(result.value().instructions, 100U);
}

TEST(Tracee, ReadsMappings) {
  const auto maps = read_maps(::getpid());
  const auto here = reinterpret_cast<std::uint64_t>(&read_maps);
  bool found = false;
  for (const Mapping& mapping : maps) {
    EXPECT_LT(mapping.begin, mapping.end);
    if (mapping.begin > here || mapping.end <= here) continue;
    found = true;
    EXPECT_TRUE(mapping.executable);
    EXPECT_FALSE(mapping.writable);
    EXPECT_FALSE(mapping.shared);
    EXPECT_EQ(mapping.path, program_path(::getpid()));
  }
  EXPECT_TRUE(found);
}

TEST(Tsc, ConvertsToMonotonicTime) {
  const TscCalibration calibration;
  trace::Clock clock;
  calibration.calibrate(clock);
  timespec now{};
  const std::uint64_t before = read_tsc();
  ASSERT_EQ(::clock_gettime(CLOCK_MONOTONIC, &now), 0);
  const auto ns =
      static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
  const std::uint64_t converted = trace::perf_ns_from_tsc(clock, before);
  EXPECT_LT(converted < ns ? ns - converted : converted - ns, 50000000U);
  EXPECT_NEAR(static_cast<double>(trace::perf_tsc_from_ns(clock, converted)), static_cast<double>(before),
              8.0);
  EXPECT_TRUE(this_processor().known);
  EXPECT_FALSE(processor_name().empty());
}

}  // namespace
}  // namespace ptkit::capture
