#include "formats/common/stream_ring.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ptkit::formats {

std::optional<base::Failure> begin_at_offset(trace::TraceBuffer& ring, std::uint64_t offset) {
  if (offset > ring.size()) {
    return base::bad_config("ring_offset=" + std::to_string(offset) + ": the stream has " +
                            std::to_string(ring.size()) + " bytes");
  }
  const base::Bytes newer = ring.bytes().first(static_cast<std::size_t>(offset));
  const base::Bytes older = ring.bytes().subspan(newer.size());
  if (newer.empty() || older.empty()) return {};
  if (std::all_of(older.begin(), older.end(), [](std::uint8_t byte) { return byte == 0; })) {
    ring = ring.slice(0, newer.size());
    return {};
  }
  std::vector<std::uint8_t> ordered;
  ordered.reserve(ring.size());
  ordered.insert(ordered.end(), older.begin(), older.end());
  ordered.insert(ordered.end(), newer.begin(), newer.end());
  ring = trace::TraceBuffer::from_vector(std::move(ordered));
  return {};
}

}  // namespace ptkit::formats
