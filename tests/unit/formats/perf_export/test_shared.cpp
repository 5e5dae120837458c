// Code of all address spaces that no file has, in written perf.data.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "writing.h"

namespace ptkit::formats {
namespace {

using test::region;
using test::small_bundle;
using test::text;

class PerfWriteShared : public test::PerfWriting {
 protected:
  // Processes 10, 11, ... in spaces 1, 2, ...
  static trace::TraceBundle processes(std::size_t count) {
    trace::TraceBundle bundle = small_bundle();
    for (std::size_t i = 1; i < count; ++i)
      bundle.spaces.push_back({.pid = static_cast<std::int64_t>(10 + i)});
    return bundle;
  }
  static trace::CodeRegion of_all(trace::CodeRegion one) {
    one.space = trace::kAnySpace;
    return one;
  }
  static trace::Sideband born(std::int64_t pid, std::uint64_t tsc) {
    trace::Sideband record;
    record.kind = trace::SidebandKind::PROCESS;
    record.tsc = tsc;
    record.pid = record.tid = pid;
    record.parent = 10;
    return record;
  }
  // Returns each process' code as read back, such as "50:1000=abcd@code-all-1".
  static std::map<std::int64_t, std::string> code_of(const trace::TraceBundle& back) {
    std::map<std::int64_t, std::string> out;
    for (const trace::CodeRegion& one : back.code) {
      std::ostringstream words;
      words << one.tsc_from << ':' << std::hex << one.address << '=' << text(one.bytes) << '@'
            << back.files.at(static_cast<std::size_t>(one.file)).path << ' ';
      out[back.spaces.at(one.space).pid] += words.str();
    }
    return out;
  }
};

TEST_F(PerfWriteShared, WritesOneFileForAllProcesses) {
  trace::TraceBundle bundle = processes(3);
  bundle.code = {of_all(region(0x1000, "abcdefgh")), of_all(region(0x9000, "klmn")),
                 of_all(region(0x1004, "EF", 50))};
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.files.size(), 1U);
  const std::string all = "0:1000=abcdefgh@code-all-1 0:9000=klmn@code-all-1 50:1000=abcdEF@code-all-1 ";
  const auto found = code_of(back);
  ASSERT_EQ(found.size(), 3U);
  for (const auto& [pid, code] : found) EXPECT_EQ(code, all) << pid;
  std::size_t written = 0;
  for (const auto& one : std::filesystem::recursive_directory_iterator(path() + ".debug"))
    written += one.is_regular_file() ? 1U : 0U;
  EXPECT_EQ(written, 1U);
}

// perf reads an instruction from one file.
TEST_F(PerfWriteShared, IsNotUsedNextToOtherJitCode) {
  trace::TraceBundle bundle = processes(4);
  bundle.code = {of_all(region(0x1000, "abcdefgh")), region(0x1008, "ijkl"), region(0x3008, "far")};
  bundle.code[2].space = 2;
  const auto found = code_of(write_and_read(bundle));
  EXPECT_EQ(found.at(10), "0:1000=abcdefghijkl@code-10-1 ");
  EXPECT_EQ(found.at(11), "0:1000=abcdefgh@code-all-1 0:3008=far@code-11-1 ");
  EXPECT_EQ(found.at(12), "0:1000=abcdefgh@code-all-1 ");
  EXPECT_EQ(found.at(13), found.at(12));
}

TEST_F(PerfWriteShared, IsNotUsedForASingleProcess) {
  trace::TraceBundle bundle = processes(2);
  bundle.code = {of_all(region(0x1000, "abcd")), region(0x1008, "ijkl")};
  const auto found = code_of(write_and_read(bundle));
  EXPECT_EQ(found.at(10), "0:1000=abcd@code-10-1 0:1008=ijkl@code-10-1 ");
  EXPECT_EQ(found.at(11), "0:1000=abcd@code-11-1 ");
}

// A later mapping hides the shared code, which would not be mapped again.
TEST_F(PerfWriteShared, IsNotUsedWhereAProcessMapsAFile) {
  trace::TraceBundle bundle = processes(3);
  bundle.files.push_back({"/gone/a.so", std::string(40, 'a'), {}, {}});
  trace::CodeRegion whole = region(0x1000, "", 70, 0, 0x2000);
  whole.size = 0x1000;
  bundle.code = {of_all(region(0x1000, "abcd")), whole, region(0x8000, "own", 0, 0, 0x9000)};
  bundle.code[2].space = 3;
  const auto found = code_of(write_and_read(bundle));
  EXPECT_NE(found.at(10).find("70:1000=abcd@code-10-1 "), std::string::npos) << found.at(10);
  EXPECT_EQ(found.at(11), "0:1000=abcd@code-all-1 ");
  EXPECT_EQ(found.at(12), "0:1000=abcd@code-all-1 0:8000=own@/gone/a.so ");
  // The same if all processes map the file.
  bundle.code[1].space = trace::kAnySpace;
  for (const auto& [pid, code] : code_of(write_and_read(bundle)))
    EXPECT_NE(code.find("70:1000=abcd@code-" + std::to_string(pid) + "-1 "), std::string::npos) << code;
}

TEST_F(PerfWriteShared, IsNotUsedForProcessesThatBeginLater) {
  trace::TraceBundle bundle = processes(3);
  bundle.code = {of_all(region(0x1000, "abcd")), of_all(region(0x1000, "ABCD", 60))};
  bundle.code[0].tsc_to = 60;
  bundle.sideband.push_back(born(12, 80));
  const auto found = code_of(write_and_read(bundle));
  EXPECT_EQ(found.at(10), "0:1000=abcd@code-all-1 60:1000=ABCD@code-all-1 ");
  EXPECT_EQ(found.at(11), found.at(10));
  EXPECT_EQ(found.at(12).find("abcd@"), std::string::npos) << found.at(12);
  EXPECT_NE(found.at(12).find("1000=ABCD@"), std::string::npos) << found.at(12);
}

TEST_F(PerfWriteShared, HasASizeIndependentOfTheNumberOfProcesses) {
  trace::TraceBundle bundle = processes(50);
  for (std::uint64_t i = 1; i < 50; ++i)
    bundle.sideband.push_back(born(static_cast<std::int64_t>(10 + i), i));
  for (std::size_t i = 0; i < 10; ++i)
    bundle.code.push_back(of_all(region(0x10000 * (i + 1), std::string(5000, static_cast<char>('a' + i)))));
  const PerfDataWritten written = write(bundle);
  std::uintmax_t bytes = 0;
  for (const auto& one : std::filesystem::recursive_directory_iterator(written.code_folder))
    bytes += one.is_regular_file() ? one.file_size() : 0;
  EXPECT_GT(bytes, 50'000U);
  EXPECT_LT(bytes, 70'000U);
}

}  // namespace
}  // namespace ptkit::formats
