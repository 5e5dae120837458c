#include <gtest/gtest.h>

#include <limits>

#include "capture/windows/api_options.h"

namespace ptkit::capture {
namespace {

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

RecordOptions plain() {
  RecordOptions options;
  options.argv = {"a.exe"};
  options.owner = std::nullopt;
  return options;
}

RecordOptions with_filter(FilterRequest filter) {
  RecordOptions options = plain();
  options.filters.push_back(std::move(filter));
  return options;
}

void expect_refused(RecordOptions options, const std::string& begin) {
  const auto result = windows_options(std::move(options));
  ASSERT_FALSE(result.ok()) << begin;
  EXPECT_TRUE(result.failure().detail.starts_with(begin)) << result.failure().detail;
  EXPECT_NE(result.failure().detail.find("; "), std::string::npos) << "a remedy";
}

TEST(WindowsApiOptions, TakesWhatTheDriverHas) {
  RecordOptions given = plain();
  given.ring = 65536;
  given.redact = given.quiet = true;
  given.seconds = std::chrono::milliseconds(500);
  given.children = false;  // the driver follows none
  const auto result = windows_options(given);
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const RecordOptions& record = result.value().record;
  EXPECT_EQ(record.argv, given.argv);
  EXPECT_EQ(record.ring, 65536U);
  EXPECT_TRUE(record.redact && record.quiet);
  EXPECT_EQ(record.seconds, std::chrono::milliseconds(500));
  EXPECT_TRUE(result.value().switches);
}

TEST(WindowsApiOptions, NamesWhatTheDriverLacks) {
  const auto refused = [](const char* name, auto change) {
    RecordOptions options = plain();
    change(options);
    expect_refused(std::move(options), std::string(name) + ": ");
  };
  refused("per_thread", [](RecordOptions& o) { o.per_thread = true; });
  refused("event", [](RecordOptions& o) { o.event = "cyc"; });
  refused("branch_stack", [](RecordOptions& o) { o.branch_stack = "any"; });
  refused("triggers", [](RecordOptions& o) { o.triggers.emplace_back(); });
  refused("with_debug", [](RecordOptions& o) { o.with_debug = true; });
  refused("owner", [](RecordOptions& o) { o.owner = base::Owner{}; });
}

TEST(WindowsApiOptions, TakesRangesOfAddresses) {
  using Kind = FilterRequest::Kind;
  RecordOptions given = plain();
  given.filters = {{Kind::FILTER, "", "", 0x1000, 0x1fff}, {Kind::TRACESTOP, "", "", 0x3000, 0x3000}};
  const auto result = windows_options(given);
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  ASSERT_EQ(result.value().record.filters.size(), 2U);
  EXPECT_EQ(result.value().record.filters[1].first, 0x3000U);
  EXPECT_TRUE(result.value().module.empty());
}

TEST(WindowsApiOptions, TakesAWholeFileAsAKernelDriver) {
  RecordOptions given = with_filter({FilterRequest::Kind::FILTER, "ntfs.sys", "", 0, kLast});
  given.argv.clear();
  given.levels.user = false;
  given.levels.kernel = given.cpus.all = true;
  const auto result = windows_options(given);
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(result.value().module, "ntfs.sys");
  EXPECT_TRUE(result.value().record.filters.empty());
  given.filters.push_back({FilterRequest::Kind::FILTER, "disk.sys", "", 0, kLast});
  expect_refused(given, "filters: expected one kernel driver, found ntfs.sys and disk.sys");
  given.filters.pop_back();
  given.levels.user = true;
  expect_refused(given, "filters: the kernel driver ntfs.sys is kernel code");
}

TEST(WindowsApiOptions, RefusesOtherFilters) {
  using Kind = FilterRequest::Kind;
  expect_refused(with_filter({Kind::FILTER, "", "main", 0, 0}), "filters: the function main");
  expect_refused(with_filter({Kind::START, "", "", 0x1000, 0x1000}), "filters: a trace unit has ranges");
  expect_refused(with_filter({Kind::STOP, "", "", 0x1000, 0x1000}), "filters: a trace unit has ranges");
  expect_refused(with_filter({Kind::FILTER, "a.dll", "", 0x10, 0x20}), "filters: offsets in a file (a.dll)");
  expect_refused(with_filter({Kind::TRACESTOP, "a.dll", "", 0, kLast}), "filters: offsets in a file (a.dll)");
}

}  // namespace
}  // namespace ptkit::capture
