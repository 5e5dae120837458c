// One run of a back end that has the processor trace. The thread that calls run() does everything: it starts
// what is recorded and the trace, empties buffers, follows requests, and writes the bundle.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/bundle_output.h"
#include "capture/kernel_code.h"
#include "capture/system_processes.h"
#include "capture/target.h"
#include "capture/tsc.h"
#include "capture/unit_recorder.h"

namespace ptkit::capture {

class UnitRecorder::Session {
 public:
  Session(RecordOptions options, std::unique_ptr<TraceUnits> units)
      : options_(std::move(options)), units_(std::move(units)) {}

  [[nodiscard]] base::Result<RecordResult> run();

  void request_stop() noexcept { stop_asked_ = true; }
  void request_detach() noexcept { detach_asked_ = true; }
  void request_snapshot() noexcept { snapshot_asked_ = true; }
  void pause(bool paused) noexcept { pause_asked_ = paused; }
  [[nodiscard]] RecordProgress progress() const noexcept { return {0, trace_bytes_}; }
  [[nodiscard]] int pid() const noexcept { return pid_; }
  [[nodiscard]] bool started() const noexcept { return started_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Problem = TraceUnits::Problem;

  [[nodiscard]] Problem record(const sigset_t& mask);
  [[nodiscard]] Problem find_target(const sigset_t& mask);
  [[nodiscard]] Problem configure();
  void describe();
  void make_streams();
  void save_processes();
  [[nodiscard]] Problem begin();
  [[nodiscard]] Problem start_units();
  void hit(std::uint32_t trigger);
  void save_kernel(std::uint64_t tsc);
  void follow_kernel(const SystemRecord& record);
  [[nodiscard]] Problem loop();
  [[nodiscard]] bool over();
  [[nodiscard]] Problem follow_requests();
  [[nodiscard]] Problem drain();
  [[nodiscard]] Problem empty_buffers();
  void keep_up();
  void close_units();
  void take_records(std::uint64_t before);
  void tell_switches();
  [[nodiscard]] Problem snapshot();
  [[nodiscard]] Problem end();
  void wait_for_program();
  void write_info();
  void place_switches();
  [[nodiscard]] base::Result<RecordResult> finish();

  RecordOptions options_;
  std::unique_ptr<TraceUnits> units_;
  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> detach_asked_{false};
  std::atomic<bool> snapshot_asked_{false};
  std::atomic<bool> pause_asked_{false};
  std::atomic<bool> started_{false};
  std::atomic<int> pid_{0};
  std::atomic<std::uint64_t> trace_bytes_{0};

  Target target_;
  KernelCode kernel_;
  std::optional<TscCalibration> calibration_;
  std::unique_ptr<BundleOutput> output_;
  std::unique_ptr<SystemProcesses> processes_;
  formats::RecordingInfo info_;
  trace::Configuration configuration_;
  std::vector<std::pair<std::uint32_t, trace::Stream>> streams_;  // with their numbers
  std::vector<ToldRecord> records_;                               // that were not taken yet
  std::uint64_t horizon_ = 0;                                     // older ones are all there
  std::vector<std::uint64_t> hits_;                               // of each trigger
  bool waits_ = false;                                            // for a trigger that begins it
  bool paused_ = false;
  bool told_ = false;  // units fill their buffers
  bool interrupted_ = false;
  bool limited_ = false;
  bool records_lost_ = false;
  std::uint32_t snapshots_ = 0;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point last_flush_;
  Clock::time_point emptied_;
  std::vector<std::string> warnings_;
};

}  // namespace ptkit::capture
