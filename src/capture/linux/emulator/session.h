// One run of the emulator back end. The thread that calls run() starts the program, accepts processes,
// detects their exits, and ends the recording. Workers read and encode the lines.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/linux/emulator/channel_server.h"
#include "capture/linux/emulator/emulator.h"
#include "capture/linux/emulator/emulator_recording.h"
#include "capture/linux/emulator/launcher.h"
#include "capture/linux/emulator/workers.h"
#include "capture/linux/process/tsc_clock.h"

namespace ptkit::capture {

class EmulatorRecorder::Session {
 public:
  explicit Session(RecordOptions options) : options_(std::move(options)) {}

  [[nodiscard]] base::Result<RecordResult> run();

  void request_stop() noexcept { stop_asked_ = true; }
  void request_detach() noexcept { detach_asked_ = true; }
  void request_snapshot() noexcept { snapshot_asked_ = true; }
  void pause(bool paused) noexcept { paused_ = paused; }
  [[nodiscard]] RecordProgress progress() const noexcept;
  [[nodiscard]] int pid() const noexcept { return child_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct TrackedProcess {
    std::shared_ptr<GuestProcess> process;
    std::uint64_t number = 0;  // of its shared memory
    Fd handle;                 // pidfd; none: the process is polled with kill()
    bool ended = false;
    Clock::time_point ended_at;
  };

  [[nodiscard]] base::Result<RecordResult> record(const EmulatedProgram& program);
  void begin(const EmulatedProgram& program);
  void loop(ChannelServer& server);
  [[nodiscard]] bool finished() const;
  void wait(const ChannelServer& server) const;
  void on_connect(ChannelServer& server, const ChannelServer::Client& client);
  void accept(const ChannelServer::Client& client);
  [[nodiscard]] TrackedProcess* find_memory(std::uint64_t number);
  void detect_exits();
  void end(TrackedProcess& tracked, GuestProcess::End reason, std::uint64_t tsc);
  void remove_finished();
  void reap_child();
  void handle_requests();
  void end_recording();
  void terminate_child();
  void look_at_names();
  void heartbeat();
  void write_configuration();
  [[nodiscard]] base::Result<RecordResult> finish(const EmulatedProgram& program);

  RecordOptions options_;
  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> detach_asked_{false};
  std::atomic<bool> paused_{false};
  std::atomic<bool> snapshot_asked_{false};
  std::atomic<int> child_{0};
  std::atomic<std::uint64_t> instructions_{0};
  std::atomic<std::uint64_t> trace_bytes_{0};

  std::optional<FileParser> parser_;
  std::unique_ptr<EmulatorRecording> recording_;
  std::unique_ptr<Workers> workers_;
  std::optional<TscCalibration> calibration_;
  formats::RecordingInfo info_;
  std::future<std::string> qemu_version_;
  sigset_t mask_{};  // the caller's signal mask
  std::vector<TrackedProcess> processes_;
  std::uint64_t memories_ = 0;
  Fd child_handle_;  // pidfd, if the kernel has pidfds
  bool child_ended_ = false;
  int exit_status_ = 0;
  bool recording_ended_ = false;
  bool interrupted_ = false;
  std::optional<Clock::time_point> signalled_;  // when SIGINT was sent to the program
  Clock::time_point last_heartbeat_;
  Clock::time_point last_look_;
};

}  // namespace ptkit::capture
