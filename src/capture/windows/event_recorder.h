// Events of ETW in a recording: the threads of each CPU, and the end of images.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/windows/buffer.h"
#include "capture/windows/event_session.h"
#include "capture/windows/images.h"
#include "capture/windows/switches.h"
#include "formats/ptk/writer.h"

namespace ptkit::capture {

class EventRecorder {
 public:
  struct Options {
    std::vector<std::uint32_t> cpus;
    std::int64_t pid = 0;  // as WindowsSwitches has them
    bool kernel = false;
    std::uint64_t tsc_khz = 0;
    bool branch_records = false;  // streams are not of packets
    std::string left_out;         // why no session is to be started; empty: start one
  };

  // Starts the session.
  EventRecorder(EventSession& session, WindowsImages& images, Options options);

  // A record of the driver: of a thread, or of any time of the TSC.
  void add(const WindowsRecord& record);
  // Writes what is new to the streams of the buffers.
  void drain(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers);
  // Ends the session, and writes all.
  void end(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers);

  // The session delivers context switches.
  [[nodiscard]] bool has_switches() const noexcept { return refusal_.empty(); }
  // Sentences about missing events and context switches.
  void warn(std::vector<std::string>& out) const;

 private:
  void apply(const KernelEvent& event);
  [[nodiscard]] bool is_tsc(std::uint64_t time) const;
  void warn_of_losses(std::vector<std::string>& out) const;
  void write(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers, bool all);

  EventSession* session_;
  WindowsImages* images_;
  Options options_;
  WindowsSwitches switches_;
  std::optional<std::uint64_t> begin_;  // TSC of the driver's first record
  std::uint64_t other_clock_ = 0;       // events with times of another clock
  std::string refusal_;                 // empty: the session delivers events
};

}  // namespace ptkit::capture
