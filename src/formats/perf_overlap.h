// Copies of a ring that repeat each other (perf record -S, --aux-sample). For .cpp files of this folder only.
#pragma once

#include <optional>

#include "base/bytes.h"

namespace ptkit::formats::perf {

struct Overlap {
  std::size_t repeated = 0;  // bytes at the newer one's begin that the older one has, too
  std::size_t padding = 0;   // zeros at the older one's end that never were in the ring
};

// How a copy of a ring goes on where an older one ended; empty: that cannot be shown, so something may be
// missing between the two. What is shown: the newer one has the last 4 KiB of the older one, or begins with
// bytes that it ends with, a PSB among them (what lies in front of a PSB is not decoded twice).
[[nodiscard]] std::optional<Overlap> find_overlap(base::Bytes older, base::Bytes newer);

}  // namespace ptkit::formats::perf
