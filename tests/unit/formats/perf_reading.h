// What tests of perf.data have in common: a file that was made byte by byte is opened.
#pragma once

#include <gtest/gtest.h>

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
  Scratch scratch_;
};

}  // namespace ptkit::formats::test
