// The recorder for machines without Processor Trace. It runs a program in QEMU's user mode emulation. A QEMU
// plugin (src/capture/linux/emulator/plugin) reports the executed blocks, and the recorder encodes them as
// Processor Trace. The recorder follows threads, children and exec(). It writes a .ptk bundle.
// docs/emulator.md has the design.
//
// The thread that calls run() starts the program, accepts processes, detects their exits, and ends the
// recording. Workers read and encode the lines.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/common/recorder.h"
#include "capture/linux/emulator/channel_server.h"
#include "capture/linux/emulator/emulator_recording.h"
#include "capture/linux/emulator/launcher.h"
#include "capture/linux/emulator/workers.h"
#include "capture/linux/process/tsc_clock.h"

namespace ptkit::capture {

class EmulatorRecorder final : public RequestedRecorder {
 public:
  explicit EmulatorRecorder(RecordOptions options) : options_(std::move(options)) {
    options_.backend = Backend::EMULATOR;
  }

  [[nodiscard]] base::Result<RecordResult> run() override;

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
