// Finds the overlap of two snapshots of an AUX buffer (perf record -S, --aux-sample). For .cpp files of this
// folder only.
#pragma once

#include <optional>

#include "base/bytes.h"

namespace ptkit::formats::perf {

struct Overlap {
  std::size_t repeated = 0;  // bytes at the newer snapshot's begin that the older one has, too
  std::size_t padding = 0;   // zeros at the older snapshot's end that were never in the AUX buffer
};

// Finds the overlap of an older and a newer snapshot. nullopt: no proof of an overlap, so that trace may be
// missing between the two. Proof is one of these:
// - The newer one contains the last 4 KiB of the older one.
// - A suffix of the older one is a prefix of the newer one and contains a PSB. (Packets before the first PSB
// are
//   not decoded, so that none is decoded twice.)
[[nodiscard]] std::optional<Overlap> find_overlap(base::Bytes older, base::Bytes newer);

}  // namespace ptkit::formats::perf
