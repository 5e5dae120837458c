// A scene, read by every decoder: the simple one, the fast path with cold and warm caches, segments on
// threads.
#pragma once

#include "unit/flow/tables.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {

// Compares all tables with those of the simple decoder.
inline void expect_all_decoders_equal(Scene& scene, std::size_t segment = 256) {
  const auto bundle = std::make_shared<trace::TraceBundle>(scene.bundle());
  bundle->configuration = scene.configuration;
  trace::Stream stream = scene.stream();
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  bundle->streams.push_back(stream);
  const code::image::Image image(bundle);
  CodeCachePool pool(image);
  for (const tables::columns::TableId table : decoded::kFlowTables) {
    SCOPED_TRACE(static_cast<int>(table));
    FlowOptions options = scene.options;
    options.fast = false;
    decoded::Reading reading;
    reading.table = table;
    const decoded::Tables simple = decoded::read(bundle, image, options, nullptr, reading);
    options.fast = true;
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(difference(simple, decoded::read(bundle, image, options, &pool, reading)), "");
    reading.threads = 3;
    reading.segment = segment;
    EXPECT_EQ(difference(simple, decoded::read(bundle, image, options, &pool, reading)), "");
  }
}

}  // namespace ptkit::flow
