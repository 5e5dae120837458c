// Filters as a trace unit has them: a few ranges of addresses, found before tracing begins.
#pragma once

#include <vector>

#include "capture/kernel_code.h"
#include "capture/record_options.h"
#include "capture/symbol_finder.h"
#include "ptkit/ptkit_ioctl.h"

namespace ptkit::capture {

// What is wrong with them whatever the addresses are. `most`: how many ranges the processor has.
[[nodiscard]] std::optional<base::Failure> check_filters(const RecordOptions& options, unsigned most);

// Whether a filter is of a file that a program's loader maps: it is to be looked for at the entry point.
[[nodiscard]] bool needs_libraries(const RecordOptions& options, const std::string& program);

// Ranges of all filters. `pid` 0: there is no process, and only the kernel has symbols.
[[nodiscard]] base::Result<std::vector<ptkit_range>> find_ranges(const RecordOptions& options, int pid,
                                                                 const KernelCode& kernel);

}  // namespace ptkit::capture
