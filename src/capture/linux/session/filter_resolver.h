// Resolves filters and triggers (symbols, files, addresses) to address ranges before tracing begins. The
// trace unit has few ranges: IA32_RTIT_ADDRn_A and _B (SDM Vol. 3C, "Filtering by IP").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/common/record_options.h"
#include "capture/linux/files/symbol_finder.h"
#include "capture/linux/sideband/kernel_code.h"

namespace ptkit::capture {

// One address range of a filter.
struct ResolvedFilter {
  FilterRequest::Kind kind = FilterRequest::Kind::FILTER;
  std::uint64_t first = 0;  // virtual addresses of the recorded process or the kernel
  std::uint64_t last = 0;   // inclusive
  // The mapping that contains the range. An empty path: the range is kernel code, or no mapping is known.
  Mapping mapping;
  std::uint64_t file_offset = 0;
};

// The event of a trigger: an executed address (hardware breakpoint) or a delivered signal (tracepoint).
struct Breakpoint {
  std::uint32_t trigger = 0;  // index in RecordOptions::triggers
  std::uint64_t address = 0;  // 0: the event is a signal
  int signal = 0;             // 0: the event is an address
};

// Checks what does not depend on addresses. `most`: the number of address ranges of the processor.
[[nodiscard]] std::optional<base::Failure> check_filters(const RecordOptions& options, unsigned most);

// Whether a filter or trigger names a shared library. The loader maps libraries before the program's entry
// point, so such names are resolved there.
[[nodiscard]] bool needs_libraries(const RecordOptions& options, const std::string& program);

// Resolves all filters. `pid` 0: no process is recorded, and only the kernel's symbols are searched.
[[nodiscard]] base::Result<std::vector<ResolvedFilter>> resolve_filters(const RecordOptions& options, int pid,
                                                                        const KernelCode& kernel,
                                                                        FileParser& parser);
// Resolves all triggers. One symbol name may resolve to several functions.
[[nodiscard]] base::Result<std::vector<Breakpoint>> resolve_breakpoints(const RecordOptions& options, int pid,
                                                                        const KernelCode& kernel,
                                                                        FileParser& parser);
// The failure for more address ranges than the processor has.
[[nodiscard]] base::Failure too_many_filters(std::size_t needed, unsigned most);

}  // namespace ptkit::capture
