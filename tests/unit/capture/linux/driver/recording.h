// Fixture: one recording by the driver back end with a fake device and a fake perf.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/linux/driver/backend.h"
#include "capture/linux/session/recorder.h"
#include "fake_driver.h"
#include "formats/registry.h"
#include "unit/capture/common/unit_options.h"
#include "unit/capture/linux/perf/fake_perf.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {

using Bytes = std::vector<std::uint8_t>;

inline std::unique_ptr<HardwareRecorder> driver_recorder(const RecordOptions& options, OpenDriver open,
                                                         FakeKernel& kernel) {
  return std::make_unique<HardwareRecorder>(
      Backend::DRIVER, options, std::make_unique<DriverBackend>(std::move(open), perf_opener(kernel)()));
}

class DriverRecording : public ::testing::Test {
 protected:
  DriverRecording() {
    options_.cpus.all = true;
    options_.seconds = std::chrono::milliseconds(300);
    options_.output = path_;
    options_.timing = {.cyc = true};
    options_.mtc_period = 3;
  }
  ~DriverRecording() override { std::filesystem::remove(path_); }
  DriverRecording(const DriverRecording&) = delete;
  DriverRecording& operator=(const DriverRecording&) = delete;

  // Waits until the script has ended.
  base::Result<RecordResult> record() {
    if (!device_.script.empty() && options_.seconds.count() != 0) {
      options_.seconds = std::chrono::milliseconds(30'000);
      device_.script.emplace_back([this](FakeDevice&) { recorder_->stop(); });
    }
    recorder_ = driver_recorder(options_, opener(device_), kernel_);
    return recorder_->run();
  }

  std::shared_ptr<const trace::TraceBundle> read() {
    auto bundle = formats::open(path_, {});
    EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
    return std::make_shared<trace::TraceBundle>(std::move(bundle.value()));
  }

  std::string refused() {
    const auto result = record();
    EXPECT_FALSE(result.ok());
    return result.ok() ? "" : result.failure().detail;
  }

  FakeDevice device_;
  FakeKernel kernel_;
  RecordOptions options_;
  std::string path_ = "/tmp/ptkit-driver-" + std::to_string(::getpid()) + "-" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".ptk";
  std::unique_ptr<HardwareRecorder> recorder_;
};

}  // namespace ptkit::capture::test
