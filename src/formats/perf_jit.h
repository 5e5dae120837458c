// Code that programs made while perf recorded: jit-PID.dump files, which have its bytes and times
// (tools/perf/Documentation/jitdump-specification.txt), and perf-PID.map files, which have names alone. Live
// recordings read dumps, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/perf_sideband.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// A program with a dump maps a page of it, so that the recording tells when and where it is.
[[nodiscard]] bool is_jit_dump(std::string_view path);

// Functions of a dump become JIT_LOAD events of the process that has mapped it at `marker`; names and the
// file go to the bundle. What is wrong with the dump, or empty.
[[nodiscard]] std::string read_jit_dump(trace::TraceBundle& bundle, const trace::TraceBuffer& dump,
                                        const Event& marker, std::vector<Event>& out);

// Lines "START SIZE name", in hex. An address stands for its place in the file.
[[nodiscard]] std::vector<trace::SymbolEntry> read_jit_map(std::string_view text);

}  // namespace ptkit::formats::perf
