// Fixture: one recording by the perf back end with a fake kernel.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <type_traits>

#include "capture/perf/recorder.h"
#include "fake_perf.h"
#include "formats/registry.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {

using Bytes = std::vector<std::uint8_t>;

class PerfRecording : public ::testing::Test {
 protected:
  PerfRecording() {
    options_.hardware.all_cpus = true;
    options_.hardware.limit_ms = 150;
    options_.output = path_;
    options_.cyc = false;
    options_.mtc_period = 3;
  }
  ~PerfRecording() override { std::filesystem::remove(path_); }
  PerfRecording(const PerfRecording&) = delete;
  PerfRecording& operator=(const PerfRecording&) = delete;

  // Waits until the script has ended.
  base::Result<RecordResult> record() {
    if (!kernel_.script.empty() && options_.hardware.limit_ms != 0) {
      options_.hardware.limit_ms = 30'000;
      kernel_.script.emplace_back([this](FakeKernel&) { recorder_->request_stop(); });
    }
    recorder_ = std::make_unique<PerfRecorder>(options_, perf_opener(kernel_));
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
  std::unique_ptr<PerfRecorder> recorder_;
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

inline Bytes ids(std::initializer_list<int> numbers) {
  Bytes out;
  for (const int one : numbers) FakeKernel::put(out, static_cast<std::uint32_t>(one), 4);
  return out;
}

constexpr int kFirst = 1 << 23;  // above the largest possible PID

// The body of an MMAP2 record of executable memory.
inline Bytes mapping(int pid, std::uint64_t address, std::uint64_t bytes, const std::string& path) {
  Bytes out;
  FakeKernel::put(out, static_cast<std::uint32_t>(pid), 4);
  FakeKernel::put(out, static_cast<std::uint32_t>(pid), 4);
  FakeKernel::put(out, address, 8);
  FakeKernel::put(out, bytes, 8);
  FakeKernel::put(out, 0, 8);
  struct stat file {};
  static_cast<void>(::stat(path.c_str(), &file));
  for (const unsigned one : {major(file.st_dev), minor(file.st_dev)}) FakeKernel::put(out, one, 4);
  for (const std::uint64_t one : {std::uint64_t{file.st_ino}, std::uint64_t{0}}) FakeKernel::put(out, one, 8);
  FakeKernel::put(out, 5, 4);  // PROT_READ | PROT_EXEC
  FakeKernel::put(out, 0, 4);
  out.insert(out.end(), path.begin(), path.end());
  out.push_back(0);
  return out;
}
constexpr std::uint16_t kOut = formats::perf::kMiscSwitchOut;

}  // namespace ptkit::capture::test
