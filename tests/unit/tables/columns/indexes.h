// Indexes of recordings, in memory.
#pragma once

#include <span>

#include "flow/index/builder.h"
#include "unit/tables/columns/recordings.h"

namespace ptkit::tables::columns {

// `claimed`: numbers of branches that it says of the streams from the second on.
inline std::vector<std::uint8_t> build_index(const std::shared_ptr<trace::TraceBundle>& bundle,
                                             std::size_t segment, std::size_t threads,
                                             std::span<const std::uint64_t> claimed = {}) {
  const code::image::Image image(bundle);
  flow::CodeCachePool pool(image);
  const std::atomic<bool> cancelled{false};
  std::vector<flow::index::BuiltStream> streams;
  for (const trace::Stream& stream : bundle->streams) {
    const auto make = flow::roundtrip::maker_of(stream, *bundle, image, pool);
    flow::index::StreamBuilder builder({*bundle, stream, {}, make, segment, threads, cancelled});
    auto built = builder.build();
    EXPECT_TRUE(built.has_value());
    streams.push_back(std::move(*built));
  }
  for (std::size_t i = 0; i < claimed.size(); ++i) streams[i + 1].index.rows.branches = claimed[i];
  return flow::index::to_bytes(std::move(streams), flow::index::identity_of(*bundle, flow::Resync::IP), {});
}

inline base::Result<std::shared_ptr<const flow::index::Index>> open_index(std::vector<std::uint8_t> bytes,
                                                                          const trace::TraceBundle& bundle) {
  return flow::index::Index::read(trace::TraceBuffer::from_vector(std::move(bytes)), bundle, flow::Resync::IP,
                                  {});
}

}  // namespace ptkit::tables::columns
