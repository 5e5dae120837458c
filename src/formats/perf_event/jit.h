// JIT code: jit-PID.dump files have its bytes and times (tools/perf/Documentation/jitdump-specification.txt),
// perf-PID.map files have names only. Live recordings read jitdumps, too.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "formats/perf_event/sideband.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Functions of a dump become JIT_LOAD events of the process that has mapped it at `marker`; names and the
// file go to the bundle. A warning names no file yet.
[[nodiscard]] std::optional<trace::Warning> read_jit_dump(trace::TraceBundle& bundle,
                                                          const trace::TraceBuffer& dump, const Event& marker,
                                                          std::vector<Event>& out);

// A line of a perf-PID.map: "START SIZE name", with hexadecimal numbers. The name may have blanks in it.
struct JitMapLine {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::string_view name;
  std::uint64_t end = 0;  // of the line in the file
};
[[nodiscard]] std::vector<JitMapLine> read_jit_map_lines(std::string_view text);
// File offsets of the symbols are addresses.
[[nodiscard]] std::vector<trace::SymbolEntry> read_jit_map(std::string_view text);

}  // namespace ptkit::formats::perf
