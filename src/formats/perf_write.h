// Writes a recording as perf.data, for Linux perf and what reads its files (docs/export.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/bundle.h"

namespace ptkit::formats {

// Whose code is written beside the file, for perf to decode with.
enum class PerfCode : std::uint8_t {
  NEEDED = 0,  // what is not in a file of this machine with the same code
  ALL = 1,     // everything that is known, for another machine
  NONE = 2,
};

struct PerfDataOptions {
  PerfCode code = PerfCode::NEEDED;
  std::function<bool()> go_on;  // asked now and then; false: nothing is left behind
};

struct PerfDataWritten {
  std::uint64_t bytes = 0;         // of the file with the trace
  bool is_folder = false;          // it lies in a folder, with the kernel's code
  std::string code_folder;         // for `perf --buildid-dir`; empty: none was needed
  std::vector<std::string> notes;  // sentences: what perf.data has no place for, what was made up
};

// Files appear whole or not at all: an existing recording is replaced when the new one is complete.
[[nodiscard]] base::Result<PerfDataWritten> write_perf_data(const trace::TraceBundle& bundle,
                                                            const std::string& path,
                                                            const PerfDataOptions& options = {});

}  // namespace ptkit::formats
