// Fixture: a bundle during its recording.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "capture/linux/output/bundle_output.h"
#include "formats/registry.h"

namespace ptkit::capture::test {

struct BundleFixture {
  BundleFixture() : output(writer(), 0, parser) {}
  ~BundleFixture() { std::filesystem::remove(path); }
  BundleFixture(const BundleFixture&) = delete;
  BundleFixture& operator=(const BundleFixture&) = delete;

  formats::PtkWriter writer() const {
    auto out = formats::PtkWriter::create(path);
    EXPECT_TRUE(out.ok());
    out.value().info({});
    return std::move(out.value());
  }
  trace::TraceBundle finish() {
    EXPECT_TRUE(output.finish().ok());
    auto bundle = formats::open(path, {});
    EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
    return std::move(bundle.value());
  }

  std::string path = "/tmp/ptkit-written-" + std::to_string(::getpid()) + "-" +
                     ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".ptk";
  FileParser parser;
  BundleOutput output;
};

}  // namespace ptkit::capture::test
