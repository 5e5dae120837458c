// Records: a program that is started, a process, or processors.
#pragma once

#include <optional>

#include "base/status.h"
#include "capture/windows/session.h"
#include "capture/windows/win32/requests.h"

namespace ptkit::capture::win32 {

// Callbacks of record(), on its thread.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void began(int pid) = 0;  // tracing is on; 0: no process
  virtual void progress(std::uint64_t trace_bytes) = 0;
};

// Fate of a started program when the recording ends before it.
enum class ProgramEnd : std::uint8_t {
  LEFT,    // it runs on. After a stop it has some seconds to end: Ctrl-C in its console reached it, too.
  AWAITED  // it is waited for. A stop tells it to end (Ctrl-Break), and ends it some seconds later.
};

struct Outcome {
  capture::RecordResult result;
  std::optional<int> exit_status;  // of a program that was started, and has ended
};

[[nodiscard]] base::Result<Outcome> record(const capture::WindowsOptions& options, Requests& requests,
                                           Listener& listener, ProgramEnd program_end);

}  // namespace ptkit::capture::win32
