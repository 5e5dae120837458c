// The recorder of the Python package on Windows.
#include <atomic>
#include <utility>

#include "capture/common/errors.h"
#include "capture/common/recorder.h"
#include "capture/windows/api_options.h"
#include "capture/windows/win32/recorder.h"

namespace ptkit::capture {
namespace {

class WindowsRecorder final : public Recorder, public win32::Listener {
 public:
  explicit WindowsRecorder(WindowsOptions options) : options_(std::move(options)) {}

  [[nodiscard]] base::Result<RecordResult> run() override {
    auto outcome = win32::record(options_, requests_, *this, win32::ProgramEnd::AWAITED);
    if (!outcome.ok()) return outcome.failure();
    return std::move(outcome.value().result);
  }
  void stop() noexcept override { requests_.stop(); }
  [[nodiscard]] Problem detach() override {
    requests_.detach();
    return {};
  }
  [[nodiscard]] Problem snapshot() override {
    requests_.snapshot();
    return {};
  }
  [[nodiscard]] Problem pause() override {
    requests_.set_paused(true);
    return {};
  }
  [[nodiscard]] Problem resume() override {
    requests_.set_paused(false);
    return {};
  }
  [[nodiscard]] RecordStatus status() const noexcept override { return progress_.status(); }

  void began(int pid) override {
    progress_.pid = pid;
    progress_.started = true;
  }
  void progress(std::uint64_t trace_bytes) override { progress_.trace_bytes = trace_bytes; }

 private:
  WindowsOptions options_;
  win32::Requests requests_;
  RecordProgress progress_;
};

}  // namespace

base::Result<std::unique_ptr<Recorder>> make_recorder(RecordOptions options) {
  if (options.backend != Backend::DRIVER)
    return unsupported("backend: Windows has the back end \"driver\" alone; use it, or Linux");
  auto windows = windows_options(std::move(options));
  if (!windows.ok()) return windows.failure();
  return std::unique_ptr<Recorder>(std::make_unique<WindowsRecorder>(std::move(windows.value())));
}

}  // namespace ptkit::capture
