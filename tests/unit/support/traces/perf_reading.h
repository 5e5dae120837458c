// Fixture of tests of perf.data: opens a generated file.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "formats/registry.h"
#include "unit/support/scratch.h"
#include "unit/support/warned.h"

namespace ptkit::formats::test {

class PerfReading : public ::testing::Test {
 protected:
  trace::TraceBundle read(const std::string& contents) {
    auto bundle = open(scratch_.write("perf.data", contents), {});
    EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
    return bundle.ok() ? std::move(bundle.value()) : trace::TraceBundle{};
  }
  // Returns the detail of the failure.
  std::string failure(const std::string& contents) {
    const auto bundle = open(scratch_.write("perf.data", contents), {});
    return bundle.ok() ? "(it opened)" : bundle.failure().detail;
  }
  Scratch scratch_;
};

inline std::string text(const trace::Stream& stream) {
  const base::Bytes bytes = stream.data.bytes();
  return {bytes.begin(), bytes.end()};
}

}  // namespace ptkit::formats::test
