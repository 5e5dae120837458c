// Writes the kernel's code in the layout of perf record --kcore. For .cpp files of this folder only.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "formats/perf_export/records.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

[[nodiscard]] bool has_kernel(const trace::TraceBundle& bundle);
// Writes kcore_dir in `folder`, and the MMAP2 record of the kernel.
[[nodiscard]] std::optional<base::Failure> write_kernel(const trace::TraceBundle& bundle,
                                                        const std::string& folder, Records& records);

}  // namespace ptkit::formats::perf
