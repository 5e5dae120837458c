// The address filter of `perf record --filter`, as AUXTRACE_INFO has it (tools/perf/util/auxtrace.c,
// addr_filters__parse_bare_filter()). For .cpp files of this folder only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::perf {

// A part of a filter: "filter 0x1006/0xc@/opt/app/p".
struct FilterClause {
  trace::RangeKind kind = trace::RangeKind::FILTER;
  std::uint64_t address = 0;  // offset in the file, or a kernel address
  std::uint64_t size = 0;     // 0: not given
  std::string file{};         // empty: the kernel
  std::string text{};         // as it was written
};

struct ParsedFilter {
  std::vector<FilterClause> clauses;
  std::string left;     // text from the first part on that cannot be read
  std::string problem;  // of that part; empty: all was read
};
[[nodiscard]] ParsedFilter parse_filter(std::string_view text);

// Sets the configuration's ranges by the mappings of the filter's files, which must be in the bundle. Parts
// that cannot be used give a warning; if one of them is a filter range, no filter range is set.
void apply_filter(std::string_view text, trace::TraceBundle& bundle);

}  // namespace ptkit::formats::perf
