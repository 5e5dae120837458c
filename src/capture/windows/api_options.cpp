#include "capture/windows/api_options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/common/errors.h"

namespace ptkit::capture {

namespace {

using Problem = std::optional<base::Failure>;

// Why the Windows driver does not have an option, and the remedy.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kReasons{{
    {"per_thread",
     "Windows calls no driver at a context switch, so that a buffer cannot follow a thread; leave it out: "
     "rows have their threads by ETW's context switches"},
    {"event", "these are terms of Linux perf; use timing, packets, psb_period and cyc_threshold"},
    {"branch_stack", "the Windows driver takes no samples; record packets, or each branch (bts=True)"},
    {"triggers",
     "a processor does not count calls, and Windows has no signals; use filters, or a ring with snapshots "
     "(Recorder.snapshot())"},
    {"with_debug",
     "the recorder for Windows keeps no debug information; leave it out, and give the PDB when the trace is "
     "read"},
    {"owner", "files of Windows have no user and group by number; leave it out, and use icacls"},
}};

Problem check_options(const RecordOptions& options) {
  const OptionInfo* missing = missing_option(options, kWindows);
  if (missing == nullptr) return {};
  const auto* reason = std::find_if(kReasons.begin(), kReasons.end(),
                                    [missing](const auto& one) { return one.first == missing->name; });
  return unsupported(std::string(missing->name) + ": " +
                     std::string(reason != kReasons.end()
                                     ? reason->second
                                     : "the Windows driver does not have it; leave it out"));
}

constexpr const char* kFilterHint =
    "; give addresses (\"filter ADDRESS/SIZE\", \"tracestop ADDRESS/SIZE\") or a kernel driver (\"filter * @ "
    "DRIVER.sys\")";

bool covers_file(const FilterRequest& filter) {
  return filter.kind == FilterRequest::Kind::FILTER && !filter.file.empty() && filter.first == 0 &&
         filter.last == std::numeric_limits<std::uint64_t>::max();
}

Problem add_filter(const FilterRequest& filter, WindowsOptions& out) {
  using Kind = FilterRequest::Kind;
  if (!filter.symbol.empty()) {
    return unsupported("filters: the function " + filter.symbol +
                       " is not looked up by the recorder for Windows" + kFilterHint);
  }
  if (filter.kind == Kind::START || filter.kind == Kind::STOP) {
    return unsupported(std::string("filters: a trace unit has ranges, and neither start nor stop addresses") +
                       kFilterHint);
  }
  if (covers_file(filter)) {
    if (!out.module.empty())
      return unsupported("filters: expected one kernel driver, found " + out.module + " and " + filter.file +
                         "; record one after the other");
    out.module = filter.file;
    return {};
  }
  if (!filter.file.empty()) {
    return unsupported("filters: offsets in a file (" + filter.file + ") are not resolved on Windows" +
                       kFilterHint);
  }
  out.record.filters.push_back(filter);
  return {};
}

}  // namespace

base::Result<WindowsOptions> windows_options(RecordOptions given) {
  given.children = true;  // false is accepted, too: the driver never follows children
  if (auto failure = check_options(given)) return *failure;
  WindowsOptions out;
  const std::vector<FilterRequest> filters = std::exchange(given.filters, {});
  out.record = std::move(given);
  for (const FilterRequest& filter : filters) {
    if (auto failure = add_filter(filter, out)) return *failure;
  }
  if (!out.module.empty() && (out.record.levels.user || !out.record.whole_cpus())) {
    return invalid_option("filters: the kernel driver " + out.module +
                          " is kernel code of all processes; give levels=\"kernel\" and cpus=\"all\", too");
  }
  return out;
}

}  // namespace ptkit::capture
