// Fixture: one recording by the perf back end with a fake kernel.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <type_traits>

#include "capture/linux/perf/backend.h"
#include "capture/linux/session/recorder.h"
#include "fake_perf.h"
#include "formats/registry.h"
#include "record_bodies.h"
#include "unit/capture/common/unit_options.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {

class PerfRecording : public ::testing::Test {
 protected:
  PerfRecording() {
    options_.cpus.all = true;
    options_.seconds = std::chrono::milliseconds(150);
    options_.output = path_;
    options_.timing.emplace();
    options_.mtc_period = 3;
  }
  ~PerfRecording() override { std::filesystem::remove(path_); }
  PerfRecording(const PerfRecording&) = delete;
  PerfRecording& operator=(const PerfRecording&) = delete;

  // Waits until the script has ended.
  base::Result<RecordResult> record() {
    if (!kernel_.script.empty() && options_.seconds.count() != 0) {
      options_.seconds = std::chrono::milliseconds(30'000);
      kernel_.script.emplace_back([this](FakeKernel&) { recorder_->stop(); });
    }
    recorder_ = std::make_unique<HardwareRecorder>(Backend::PERF, options_,
                                                   std::make_unique<PerfBackend>(perf_opener(kernel_)));
    return recorder_->run();
  }

  trace::TraceBundle read() {
    auto bundle = formats::open(path_, {});
    EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
    return std::move(bundle.value());
  }

  std::string refused() {
    const auto result = record();
    EXPECT_FALSE(result.ok());
    return result.ok() ? "" : result.failure().detail;
  }

  FakeKernel kernel_;
  RecordOptions options_;
  std::string path_ = "/tmp/ptkit-perf-" + std::to_string(::getpid()) + "-" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".ptk";
  std::unique_ptr<HardwareRecorder> recorder_;
};

inline Bytes data_of(const trace::Stream& stream) {
  const base::Bytes bytes = stream.data.bytes();
  return {bytes.begin(), bytes.end()};
}

template <typename T>
void append(std::vector<T>& to, const std::type_identity_t<std::vector<T>>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

using Losses = std::vector<std::pair<std::uint64_t, base::Status>>;

inline Losses losses_of(const trace::Stream& stream) {
  Losses out;
  for (const trace::KnownLoss& loss : stream.losses) out.emplace_back(loss.offset, loss.cause);
  return out;
}

constexpr std::uint16_t kOut = formats::perf::kMiscSwitchOut;

}  // namespace ptkit::capture::test
