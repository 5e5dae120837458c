#include <gtest/gtest.h>

#include "base/fields.h"
#include "formats/perf_event/switch_record.h"
#include "formats/registry.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/corpus.h"
#include "unit/support/traces/missing.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using test::Scratch;

constexpr const char* kCpuInfo =
    R"("cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 79, "stepping": 1})";

std::string document(const std::string& rest) {
  return std::string("{\"type\": \"intel-pt\", ") + kCpuInfo + ", " + rest + "}";
}

// A SWITCH_CPU_WIDE record.
std::string switch_record(bool out, std::uint32_t pid, std::uint32_t tid, std::uint64_t time) {
  std::vector<std::uint8_t> bytes;
  base::append_le(bytes, std::uint32_t{15});
  base::append_le(bytes, static_cast<std::uint16_t>(out ? 0x2000 : 0));
  base::append_le(bytes, std::uint16_t{32});
  base::append_le(bytes, std::uint64_t{0});
  base::append_le(bytes, pid);
  base::append_le(bytes, tid);
  base::append_le(bytes, time);
  return {bytes.begin(), bytes.end()};
}

class Lldb : public ::testing::Test {
 protected:
  base::Result<trace::TraceBundle> open_document(const std::string& text) {
    return open(scratch_.write("trace.json", text), {});
  }
  std::string failure(const std::string& text) {
    const auto bundle = open_document(text);
    return bundle.ok() ? "(it opened)" : bundle.failure().detail;
  }
  void expect_failure(const std::string& text, const std::string& part) {
    const std::string detail = failure(text);
    EXPECT_NE(detail.find(part), std::string::npos) << detail;
    EXPECT_EQ(detail.find(scratch_.path()), 0U) << detail;  // the file is named
  }
  Scratch scratch_;
};

TEST_F(Lldb, ReadsStreamsOfThreads) {
  scratch_.write("t.trace", test::small_stream());
  const auto bundle = open_document(
      document(R"("processes": [{"pid": 10, "threads": [{"tid": 11, "iptTrace": "t.trace"}, {"tid": 12}],
                 "modules": [{"systemPath": "/nowhere/lib.so", "loadAddress": "0x400000"}]}])"));
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_EQ(bundle.value().format, "lldb");
  ASSERT_EQ(bundle.value().streams.size(), 1U);
  EXPECT_EQ(bundle.value().streams[0].tid, 11);
  EXPECT_EQ(bundle.value().streams[0].pid, 10);
  EXPECT_EQ(bundle.value().threads.size(), 2U);
  EXPECT_EQ(bundle.value().configuration.cpu.model, 79);
  ASSERT_EQ(bundle.value().files.size(), 1U);  // missing, but its name is known
  EXPECT_EQ(bundle.value().files[0].path, "/nowhere/lib.so");
  EXPECT_TRUE(bundle.value().warnings.empty());
  ASSERT_EQ(ptkit::test::missing_files(bundle.value()).size(), 1U);
  EXPECT_EQ(ptkit::test::missing_files(bundle.value())[0].path, "/nowhere/lib.so");
  EXPECT_NE(ptkit::test::missing_files(bundle.value())[0].reason.find("/nowhere/lib.so"), std::string::npos);
}

TEST_F(Lldb, OpensAFolderByItsDocument) {
  scratch_.write("t.trace", test::small_stream());
  scratch_.write("trace.json", document(R"("processes": [{"pid": 1, "modules": [],
                 "threads": [{"tid": 1, "iptTrace": "t.trace"}]}])"));
  EXPECT_TRUE(open(scratch_.path(), {}).ok());
}

TEST_F(Lldb, ReadsContextSwitches) {
  scratch_.write("0.trace", test::small_stream());
  scratch_.write("0.switches", switch_record(false, 10, 11, 1000) + switch_record(true, 10, 11, 1500) +
                                   switch_record(false, 0, 0, 1600) + switch_record(false, 77, 78, 2000));
  // One tick is 512 / 1024 ns here: tsc = (ns - 500) * 2.
  const auto bundle = open_document(document(
      R"("processes": [{"pid": 10, "threads": [{"tid": 11}], "modules": []}],
         "cpus": [{"id": 3, "iptTrace": "0.trace", "contextSwitchTrace": "0.switches"}],
         "tscPerfZeroConversion": {"timeMult": 512, "timeShift": 10, "timeZero": "500"})"));
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  ASSERT_EQ(bundle.value().streams.size(), 1U);
  const trace::Stream& stream = bundle.value().streams[0];
  EXPECT_EQ(stream.cpu, 3);
  ASSERT_EQ(stream.switches.size(), 4U);
  EXPECT_EQ(stream.switches[0].tsc, 1000U);
  EXPECT_EQ(stream.switches[0].tid, 11);
  EXPECT_EQ(stream.switches[0].space, 1U);
  EXPECT_EQ(stream.switches[1].tsc, 2000U);
  EXPECT_EQ(stream.switches[1].tid, trace::kNoId);  // out
  EXPECT_EQ(stream.switches[2].tid, trace::kNoId);  // idle
  EXPECT_EQ(stream.switches[3].tid, 78);            // of a process that the bundle does not list
  EXPECT_EQ(stream.switches[3].space, trace::kAnySpace);
}

TEST_F(Lldb, SortsSwitches) {
  scratch_.write("0.trace", test::small_stream());
  scratch_.write("0.switches", switch_record(false, 10, 11, 2000) + switch_record(false, 10, 12, 1000));
  const auto bundle = open_document(document(
      R"("processes": [], "cpus": [{"id": 3, "iptTrace": "0.trace", "contextSwitchTrace": "0.switches"}],
         "tscPerfZeroConversion": {"timeMult": 512, "timeShift": 10, "timeZero": "500"})"));
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_EQ(bundle.value().streams.at(0).switches.at(0).tid, 12);
  EXPECT_TRUE(warns_at(bundle.value().warnings, scratch_.at("trace.json") + ": cpus[0].contextSwitchTrace",
                       WarningCode::SWITCHES_UNSORTED));
}

TEST_F(Lldb, WarnsOfDamagedSwitches) {
  const std::string good = switch_record(false, 1, 2, 3);
  const auto bytes = [](const std::string& text) {
    return base::Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  EXPECT_FALSE(read_perf_switches(bytes(good)).damaged_offset);
  EXPECT_EQ(read_perf_switches(bytes(good + "\x0f")).damaged_offset, 32U);
  EXPECT_EQ(read_perf_switches(bytes(good + good.substr(0, 20))).damaged_offset, 32U);
  EXPECT_EQ(read_perf_switches(bytes(good + std::string(8, '\0') + good)).damaged_offset, 32U);
  EXPECT_EQ(read_perf_switches(bytes(good + good.substr(0, 20))).records.size(), 1U);
}

TEST_F(Lldb, NamesMalformedMembers) {
  expect_failure("{\"type\": \"intel-pt\",", "expected JSON, found something else at byte");
  expect_failure("{}", "type: expected text, found nothing: the member is missing");
  expect_failure(R"({"type": "etm"})", "type: expected \"intel-pt\", found \"etm\"");
  expect_failure(R"({"type": "intel-pt", "cpuInfo": 5})", "cpuInfo: expected an object, found number 5");
  expect_failure(document(R"("processes": [123])"), "processes[0]: expected an object, found number 123");
  expect_failure(document(R"("processes": [{"pid": "x"}])"), "processes[0].pid: expected a number");
  expect_failure(document(R"("processes": [])"), "contains no Intel PT data");
  expect_failure(
      document(R"("processes": [{"pid": 1, "threads": [{"tid": 2, "iptTrace": "gone"}], "modules": []}])"),
      "processes[0].threads[0].iptTrace");
  expect_failure(
      document(
          R"("processes": [{"pid": 1, "threads": [], "modules": [{"systemPath": "a", "loadAddress": "0xg"}]}])"),
      "processes[0].modules[0].loadAddress: expected a number");
  expect_failure(document(R"("processes": [], "cpus": [])"), "tscPerfZeroConversion: is missing");
  expect_failure(
      document(
          R"("processes": [], "cpus": 4, "tscPerfZeroConversion": {"timeMult": 0, "timeShift": 1, "timeZero": 1})"),
      "timeMult: expected a number above 0");
  expect_failure(document(R"("processes": [], "kernel": {"file": "vmlinux"})"), "kernel: needs cpus");
  expect_failure(document("\"processes\": " + std::string(100000, '[') + std::string(100000, ']')),
                 "the JSON has more than 100 nested arrays and objects");
}

class LldbCorpus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ptkit::test::corpus().empty())
      GTEST_SKIP() << "no corpus: set PTKIT_CORPUS to the folder that holds lldb/";
  }
  static base::Result<trace::TraceBundle> open_member(const std::string& name) {
    return open(ptkit::test::corpus() + "/lldb/" + name, {});
  }
};

TEST_F(LldbCorpus, OpensGoodBundles) {
  const auto one = open_member("intelpt-trace");
  ASSERT_TRUE(one.ok()) << one.failure().detail;
  EXPECT_EQ(one.value().warnings, std::vector<trace::Warning>());
  EXPECT_FALSE(one.value().code.empty());
  const auto many = open_member("intelpt-trace-multi-file/multi-file-no-ld.json");
  ASSERT_TRUE(many.ok()) << many.failure().detail;
  EXPECT_EQ(many.value().warnings, std::vector<trace::Warning>());
  EXPECT_EQ(many.value().files.size(), 3U);
}

TEST_F(LldbCorpus, NamesMembersOfBadBundles) {
  const std::pair<const char*, const char*> cases[] = {
      {"trace_bad.json", "processes[0]: expected an object"},
      {"trace_bad2.json", "cpuInfo.family: expected a number, found string \"123\""},
      {"trace_bad3.json", "processes[1].pid: expected a number of 63 bits, found nothing"},
      {"trace_bad4.json", "cpuInfo.family: expected a number, found nothing"},
      {"trace_bad5.json", "processes[0].modules[0].loadAddress"},
      {"trace_bad_image.json", "processes[0].modules[0].loadAddress"},
  };
  for (const auto& [name, part] : cases) {
    const auto bundle = open_member(std::string("intelpt-trace/") + name);
    ASSERT_FALSE(bundle.ok()) << name;
    EXPECT_NE(bundle.failure().detail.find(part), std::string::npos) << bundle.failure().detail;
  }
}

TEST_F(LldbCorpus, OpensOddBundlesWithAWarning) {
  const auto cpu = open_member("intelpt-trace/trace_wrong_cpu.json");
  ASSERT_TRUE(cpu.ok()) << cpu.failure().detail;
  EXPECT_FALSE(cpu.value().configuration.cpu.known);
  EXPECT_EQ(cpu.value().warnings.size(), 1U);
  EXPECT_TRUE(warns(cpu.value(), WarningCode::LLDB_CPU_INVALID, 2123123));
  const auto twice = open_member("intelpt-trace/trace_2threads.json");
  ASSERT_TRUE(twice.ok()) << twice.failure().detail;
  EXPECT_EQ(twice.value().streams.size(), 2U);
  EXPECT_EQ(twice.value().warnings.size(), 1U);
  EXPECT_TRUE(warns(twice.value(), WarningCode::LLDB_TRACE_SHARED));
}

}  // namespace
}  // namespace ptkit::formats
