// The kernel's code as perf record --kcore keeps it. For .cpp files of this folder only.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "formats/perf_write_records.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

[[nodiscard]] bool has_kernel(const trace::TraceBundle& bundle);
// kcore_dir in `folder`, and the record that says where the kernel was.
[[nodiscard]] std::optional<base::Failure> write_kernel(const trace::TraceBundle& bundle,
                                                        const std::string& folder, Records& records);

}  // namespace ptkit::formats::perf
