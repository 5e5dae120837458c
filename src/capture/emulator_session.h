// One run of the emulator back end: the thread that calls run() starts the program, lets processes in as they
// come, notices their end, and ends the recording when it is time. Workers do the rest.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/channel_server.h"
#include "capture/emulator.h"
#include "capture/launcher.h"
#include "capture/recording.h"
#include "capture/tsc.h"
#include "capture/workers.h"

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
  [[nodiscard]] int pid() const noexcept { return root_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    std::shared_ptr<GuestProcess> process;
    std::uint64_t number = 0;  // of its arena
    Fd handle;                 // pidfd; none: the process is looked for now and then
    bool ended = false;
    Clock::time_point ended_at;
  };

  [[nodiscard]] base::Result<RecordResult> record(const EmulatedProgram& program);
  void begin(const EmulatedProgram& program);
  void loop(ChannelServer& server);
  [[nodiscard]] bool over() const;
  void wait(const ChannelServer& server) const;
  void on_call(ChannelServer& server, const ChannelServer::Caller& caller);
  void let_in(const ChannelServer::Caller& caller);
  [[nodiscard]] Watched* find_arena(std::uint64_t number);
  void look_for_ends();
  void end(Watched& watched, GuestProcess::End how, std::uint64_t tsc);
  void drop_done();
  void reap_root();
  void follow_requests();
  void end_recording();
  void press_root();
  void beat();
  void write_configuration();
  [[nodiscard]] base::Result<RecordResult> finish(const EmulatedProgram& program);

  RecordOptions options_;
  std::atomic<bool> stop_asked_{false};
  std::atomic<bool> detach_asked_{false};
  std::atomic<bool> paused_{false};
  std::atomic<bool> snapshot_asked_{false};
  std::atomic<int> root_{0};
  std::atomic<std::uint64_t> instructions_{0};
  std::atomic<std::uint64_t> trace_bytes_{0};

  std::unique_ptr<Recording> recording_;
  std::unique_ptr<Workers> workers_;
  std::optional<TscCalibration> calibration_;
  formats::RecordingInfo info_;
  std::future<std::string> qemu_version_;
  sigset_t mask_{};  // of the caller
  std::vector<Watched> watched_;
  std::uint64_t arenas_ = 0;
  Fd root_handle_;  // pidfd, if there is one
  bool root_ended_ = false;
  int exit_status_ = 0;
  bool recording_ended_ = false;
  bool interrupted_ = false;
  std::optional<Clock::time_point> signalled_;  // the program was asked to end
  Clock::time_point last_beat_;
};

}  // namespace ptkit::capture
