// Names of threads over time in written perf.data.
#include <gtest/gtest.h>

#include <algorithm>

#include "writing.h"

namespace ptkit::formats {
namespace {

using test::small_bundle;

class PerfWriteNames : public test::PerfWriting {};

// A name at the time of exec() belongs to the program before.
TEST_F(PerfWriteNames, WritesNamesWithTheirTimes) {
  using trace::SidebandKind;
  trace::TraceBundle bundle = small_bundle();
  bundle.spaces.push_back({.pid = 20});
  bundle.threads.push_back({20, 20, "worker"});
  const auto add = [&](SidebandKind kind, std::uint64_t tsc, const std::string& text) {
    trace::Sideband record;
    record.kind = kind;
    record.tsc = tsc;
    record.pid = record.tid = 20;
    record.text = text;
    bundle.sideband.push_back(record);
  };
  add(SidebandKind::EXEC, 100, "/bin/bash");
  add(SidebandKind::EXEC, 200, "/usr/bin/sort");
  add(SidebandKind::THREAD, 200, "bash");
  add(SidebandKind::THREAD, 250, "worker");
  const trace::TraceBundle back = write_and_read(bundle);
  std::vector<std::pair<SidebandKind, std::string>> names;
  for (const trace::Sideband& record : back.sideband) {
    if (record.pid == 20) names.emplace_back(record.kind, record.text);
  }
  EXPECT_EQ(names, (std::vector<std::pair<SidebandKind, std::string>>{{SidebandKind::THREAD, "bash"},
                                                                      {SidebandKind::EXEC, "bash"},
                                                                      {SidebandKind::THREAD, "bash"},
                                                                      {SidebandKind::EXEC, "sort"},
                                                                      {SidebandKind::THREAD, "worker"}}));
  const auto named =
      std::ranges::find_if(back.threads, [](const trace::Thread& one) { return one.tid == 20; });
  ASSERT_NE(named, back.threads.end());
  EXPECT_EQ(named->name, "worker");
}

}  // namespace
}  // namespace ptkit::formats
