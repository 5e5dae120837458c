// What ETW adds to a recording: the threads of each CPU, and the end of images.
#pragma once

#include <cstdint>
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
    std::int64_t pid = 0;  // as WindowsSwitches has them
    bool kernel = false;
    bool branch_records = false;  // their marks name threads
    std::string left_out;         // why no session is to be started; empty: start one
  };

  // Starts the session.
  EventRecorder(EventSession& session, WindowsImages& images, Options options);

  // A thread, as the driver tells of it.
  void add_thread(const WindowsRecord& record);
  // Writes what is new to the streams of the buffers.
  void drain(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers);
  // Ends the session, and writes all.
  void end(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers);

  // The session delivers context switches.
  [[nodiscard]] bool has_switches() const noexcept { return refusal_.empty(); }
  // What is missing, as sentences.
  void warn(std::vector<std::string>& out) const;

 private:
  void apply(const KernelEvent& event);
  void warn_of_losses(std::vector<std::string>& out) const;
  void write(formats::PtkWriter& writer, std::vector<WindowsBuffer>& buffers, bool all);

  EventSession* session_;
  WindowsImages* images_;
  Options options_;
  WindowsSwitches switches_;
  std::string refusal_;  // empty: the session delivers events
};

}  // namespace ptkit::capture
