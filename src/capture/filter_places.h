// Filters as a trace unit has them: a few ranges of addresses, found before tracing begins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/kernel_code.h"
#include "capture/record_options.h"
#include "capture/symbol_finder.h"

namespace ptkit::capture {

// One range of a filter.
struct FilterPlace {
  FilterRequest::Kind kind = FilterRequest::Kind::FILTER;
  std::uint64_t first = 0;  // addresses in the process that is recorded, or in the kernel
  std::uint64_t last = 0;
  Mapping mapping;  // that is there; its path is empty: the kernel, or not known
  std::uint64_t file_offset = 0;
};

// What a trigger waits for.
struct WatchPlace {
  std::uint32_t trigger = 0;  // its number among the options'
  std::uint64_t address = 0;  // that is executed; 0: none
  int signal = 0;             // that the program gets
};

// What is wrong with them whatever the addresses are. `most`: how many ranges the processor has.
[[nodiscard]] std::optional<base::Failure> check_filters(const RecordOptions& options, unsigned most);

// Whether a filter or a trigger is of a file that a program's loader maps: it is to be looked for at the
// entry point.
[[nodiscard]] bool needs_libraries(const RecordOptions& options, const std::string& program);

// Ranges of all filters. `pid` 0: there is no process, and only the kernel has symbols.
[[nodiscard]] base::Result<std::vector<FilterPlace>> find_filters(const RecordOptions& options, int pid,
                                                                  const KernelCode& kernel);
// The same for triggers: a name may stand for several functions.
[[nodiscard]] base::Result<std::vector<WatchPlace>> find_triggers(const RecordOptions& options, int pid,
                                                                  const KernelCode& kernel);
// They are more than the processor has.
[[nodiscard]] base::Failure too_many_filters(std::size_t needed, unsigned most);

}  // namespace ptkit::capture
