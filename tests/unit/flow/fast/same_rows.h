// Compares the rows of the fast path with those of the simple decoder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "unit/flow/tables.h"

namespace ptkit::flow {

// Seeds of a test: PTKIT_LARGE_TESTS times as many.
inline std::uint64_t seeds(std::uint64_t usual) {
  const char* const factor = std::getenv("PTKIT_LARGE_TESTS");
  return factor == nullptr ? usual : usual * std::max<std::uint64_t>(1, std::strtoul(factor, nullptr, 10));
}

// All tables of a bundle. The fast decoders share a pool: the first builds the path caches that the others
// use.
inline void expect_same(const std::shared_ptr<trace::TraceBundle>& bundle, FlowOptions options,
                        decoded::Reading reading = {}) {
  const code::image::Image image(bundle);
  CodeCachePool pool(image);
  for (const tables::columns::TableId table : decoded::kFlowTables) {
    reading.table = table;
    options.fast = true;
    const decoded::Tables fast = read(bundle, image, options, &pool, reading);
    options.fast = false;
    decoded::Reading plain = reading;
    plain.threads = 1;
    const decoded::Tables simple = read(bundle, image, options, nullptr, plain);
    EXPECT_EQ(difference(fast, simple), "") << "table " << static_cast<int>(table);
  }
}

}  // namespace ptkit::flow
