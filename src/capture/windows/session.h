// One recording with the Windows driver. Calls of Windows itself (processes, files, waiting) are the
// caller's: src/capture/windows/win32 on Windows, tests elsewhere.
//
//   prepare -> [the program is created, and is suspended] -> begin -> [it runs] -> drain ... -> stop ->
//   finish
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/common/record_options.h"
#include "capture/windows/buffer.h"
#include "capture/windows/event_recorder.h"
#include "capture/windows/images.h"
#include "capture/windows/port.h"
#include "formats/ptk/writer.h"

namespace ptkit::capture {

// Options that Windows adds to those of all recorders.
struct WindowsOptions {
  RecordOptions record;
  std::string module;    // a kernel driver, by the name of its file: only its code is traced
  bool switches = true;  // ETW's context switches and unloaded images are recorded
};

// Name and processors of this Windows, from the caller.
struct WindowsMachine {
  std::string name;                             // system and processor, as text
  std::vector<std::uint32_t> group_processors;  // active processors of each processor group
};

class WindowsSession {
 public:
  using Problem = std::optional<base::Failure>;

  WindowsSession(WindowsPort& port, ImageSource& source, EventSession& events, WindowsOptions options,
                 WindowsMachine machine)
      : port_(&port),
        source_(&source),
        events_(&events),
        options_(std::move(options)),
        machine_(std::move(machine)) {}

  // Checks options, driver and processor, and creates the bundle.
  [[nodiscard]] Problem prepare();
  // Configures and starts tracing, of process `pid` (0: of processors). `now`: for the bundle.
  [[nodiscard]] Problem begin(int pid, const formats::ClockSample& now);
  // Writes what is new to the bundle.
  [[nodiscard]] Problem drain();
  // Ring: writes the rings to the bundle. Tracing goes on.
  [[nodiscard]] Problem snapshot();
  // Traces nothing until resume().
  [[nodiscard]] Problem pause() { return simple(PTKIT_WINDOWS_PAUSE, "pause"); }
  [[nodiscard]] Problem resume() { return simple(PTKIT_WINDOWS_RESUME, "resume"); }
  // Stops tracing, and writes the last bytes. `now`: the end of the recording.
  [[nodiscard]] Problem stop(const formats::ClockSample& now);
  // Finishes the bundle after stop(). `exit_status` of the program, if it is known.
  [[nodiscard]] base::Result<RecordResult> finish(std::optional<int> exit_status);

  // begin() has succeeded: the bundle has something.
  [[nodiscard]] bool began() const noexcept { return began_; }
  void flush() { writer_->flush(); }
  [[nodiscard]] std::uint64_t trace_bytes() const noexcept;
  [[nodiscard]] const ptkit_windows_query& query() const noexcept { return query_; }
  // Sentences about what is missing or doubtful.
  [[nodiscard]] std::vector<std::string> warnings() const;
  // All buffers have stopped for a reason that stays.
  [[nodiscard]] bool failed() const noexcept;

 private:
  [[nodiscard]] Problem check_system() const;
  [[nodiscard]] bool stores_branches() const noexcept { return options_.record.recorded() == Recorded::BTS; }
  [[nodiscard]] Problem set_target(int pid);
  [[nodiscard]] Problem set_ranges();
  [[nodiscard]] Problem open_buffers();
  [[nodiscard]] Problem simple(std::uint32_t code, const char* what);
  [[nodiscard]] Problem drain_buffers();
  [[nodiscard]] Problem drain_sideband();
  [[nodiscard]] Problem collect();
  void begin_events(int pid);
  void warn_of_buffers(std::vector<std::string>& out) const;
  void warn_of_images(std::vector<std::string>& out) const;
  void write_configuration(const formats::ClockSample& now);

  WindowsPort* port_;
  ImageSource* source_;
  EventSession* events_;
  WindowsOptions options_;
  WindowsMachine machine_;
  ptkit_windows_query query_{};
  ptkit_windows_config config_{};
  std::optional<formats::PtkWriter> writer_;
  std::optional<WindowsImages> images_;
  std::optional<EventRecorder> recorder_;
  std::vector<WindowsBuffer> buffers_;
  formats::RecordingInfo info_;
  std::uint64_t sideband_tail_ = 0;
  std::uint64_t lost_records_ = 0;
  std::uint64_t bad_bytes_ = 0;
  std::uint32_t snapshots_ = 0;
  bool began_ = false;
  std::vector<trace::Warning> warnings_;  // of the configuration
};

}  // namespace ptkit::capture
