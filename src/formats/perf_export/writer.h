// Writes a recording as perf.data, for Linux perf and other readers of perf.data (docs/export.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/bundle.h"

namespace ptkit::formats {

// Code that is written in addition to the file, which perf needs for decoding.
enum class PerfCode : std::uint8_t {
  NEEDED = 0,  // code that no file of this machine has
  ALL = 1,     // all known code, for another machine
  NONE = 2,
};

struct PerfDataOptions {
  PerfCode code = PerfCode::NEEDED;
  std::function<bool()> go_on;  // called repeatedly; false: stop, and leave no file
};

struct PerfDataWritten {
  std::uint64_t bytes = 0;            // size of the file with the trace
  bool is_folder = false;             // the output is a folder with the file and the kernel's code
  std::string code_folder;            // for `perf --buildid-dir`; empty: not needed
  std::vector<trace::Warning> notes;  // sentences: data that perf.data cannot hold, and made-up ids
};

// An existing recording is replaced when the new one is complete.
[[nodiscard]] base::Result<PerfDataWritten> write_perf_data(const trace::TraceBundle& bundle,
                                                            const std::string& path,
                                                            const PerfDataOptions& options = {});

}  // namespace ptkit::formats
