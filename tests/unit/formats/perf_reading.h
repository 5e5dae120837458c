// What tests of perf.data have in common: a file that was made byte by byte is opened.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "formats/registry.h"
#include "unit/formats/scratch.h"

namespace ptkit::formats::test {

class PerfReading : public ::testing::Test {
 protected:
  trace::TraceBundle read(const std::string& contents) {
    auto bundle = open(scratch_.write("perf.data", contents), {});
    EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
    return bundle.ok() ? std::move(bundle.value()) : trace::TraceBundle{};
  }
  // Why it is refused.
  std::string failure(const std::string& contents) {
    const auto bundle = open(scratch_.write("perf.data", contents), {});
    return bundle.ok() ? "(it opened)" : bundle.failure().detail;
  }
  Scratch scratch_;
};

inline bool warns(const trace::TraceBundle& bundle, const std::string& words) {
  return std::ranges::any_of(bundle.warnings,
                             [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

inline std::string text(const trace::Stream& stream) {
  const base::Bytes bytes = stream.data.bytes();
  return {bytes.begin(), bytes.end()};
}

}  // namespace ptkit::formats::test
