// Records with the processor's trace unit: a program, a running process, or all processes of some CPUs. The
// thread that calls run() launches the program, starts tracing, drains buffers, handles requests and writes
// the bundle. docs/driver-backend.md and docs/perf-backend.md describe the design.
//
//   prepare -> launch or attach -> configure -> start -> loop: wait, drain, requests -> end -> align switches
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/common/recorder.h"
#include "capture/linux/output/bundle_output.h"
#include "capture/linux/process/tsc_clock.h"
#include "capture/linux/session/backend.h"
#include "capture/linux/session/target_process.h"
#include "capture/linux/session/trigger_counts.h"
#include "capture/linux/sideband/kernel_code.h"
#include "capture/linux/sideband/system_processes.h"

namespace ptkit::capture {

class HardwareRecorder : public RequestedRecorder {
 public:
  HardwareRecorder(Backend name, RecordOptions options, std::unique_ptr<HardwareBackend> backend)
      : options_(std::move(options)), backend_(std::move(backend)), triggers_(options_.triggers) {
    options_.backend = name;
  }

  [[nodiscard]] base::Result<RecordResult> run() override;

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] base::Result<RecordResult> record_and_finish(const sigset_t& mask);
  [[nodiscard]] Problem record(const sigset_t& mask);
  [[nodiscard]] Problem open_target(const sigset_t& mask);
  [[nodiscard]] Problem configure();
  void write_metadata();
  void make_streams();
  void save_processes();
  [[nodiscard]] Problem begin();
  [[nodiscard]] Problem start_backend();
  void on_trigger(std::uint32_t trigger);
  void find_kernel();
  void save_kernel(std::uint64_t tsc);
  void end_kernel();
  void apply_kernel_record(const SystemRecord& record);
  [[nodiscard]] Problem loop();
  [[nodiscard]] bool is_over();
  [[nodiscard]] Problem follow_requests();
  [[nodiscard]] Problem drain();
  [[nodiscard]] Problem drain_buffers();
  void drain_if_due();
  void close_backend();
  void apply_records(std::uint64_t before);
  void write_switches();
  [[nodiscard]] Problem write_snapshot();
  [[nodiscard]] Problem end();
  void wait_for_program();
  void write_info();
  void align_switches_to_pips();
  void save_missing_code();
  [[nodiscard]] base::Result<RecordResult> finish();

  RecordOptions options_;
  std::unique_ptr<HardwareBackend> backend_;
  TriggerCounts triggers_;

  TargetProcess target_;
  KernelCode kernel_;
  std::uint64_t kernel_found_ = 0;  // TSC, before the parts were found
  std::uint64_t kernel_saved_ = 0;  // TSC, before the code was saved
  std::optional<TscCalibration> calibration_;
  std::optional<FileParser> parser_;
  std::unique_ptr<BundleOutput> output_;
  std::unique_ptr<SystemProcesses> processes_;
  formats::RecordingInfo info_;
  trace::Configuration configuration_;
  std::vector<std::pair<std::uint32_t, trace::Stream>> streams_;  // by stream number
  std::vector<SidebandRecord> records_;                           // not applied yet
  std::uint64_t complete_before_ = 0;                             // TSC: all earlier records have been read
  bool paused_ = false;
  bool buffers_fill_ = false;  // the back end may write its buffers, so they must be drained
  bool interrupted_ = false;
  bool limited_ = false;
  bool records_lost_ = false;
  std::uint32_t snapshots_ = 0;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point last_flush_;
  Clock::time_point last_drain_;
  std::vector<trace::Warning> warnings_;
};

}  // namespace ptkit::capture
