#include <gtest/gtest.h>

#include "formats/registry.h"
#include "unit/support/scratch.h"

namespace ptkit::formats {
namespace {

using test::Scratch;

std::string failure_of(const std::string& path, const OpenOptions& options = {}) {
  const auto bundle = open(path, options);
  if (bundle.ok()) return "(it opened)";
  EXPECT_NE(bundle.failure().status, base::Status::OK);
  return bundle.failure().detail;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Registry, TriesRawLast) { EXPECT_STREQ(formats().back().name, "raw"); }

TEST(Registry, OpensARawStream) {
  const Scratch scratch;
  const auto path = scratch.write("stream.pt", test::small_stream() + "\x99");
  const auto bundle = open(path, {});
  ASSERT_TRUE(bundle.ok());
  EXPECT_EQ(bundle.value().format, "raw");
  EXPECT_EQ(bundle.value().source, path);
  ASSERT_EQ(bundle.value().streams.size(), 1U);
  EXPECT_EQ(bundle.value().streams[0].data.size(), test::small_stream().size() + 1);
}

TEST(Registry, FindsFormatsByContent) {
  const Scratch scratch;
  EXPECT_STREQ(find_format(scratch.write("stream.pt", test::small_stream()))->name, "raw");
  EXPECT_STREQ(find_format(scratch.write("perf.data", "PERFILE2"))->name, "perf.data");
  EXPECT_EQ(find_format(scratch.path()), nullptr);
  const std::string head = "PERFILE2";
  const base::Bytes bytes(reinterpret_cast<const std::uint8_t*>(head.data()), head.size());
  EXPECT_STREQ(find_format_of_bytes(bytes)->name, "perf.data");
}

TEST(Registry, DescribesFilesThatAreNoTrace) {
  const Scratch scratch;
  EXPECT_TRUE(has(failure_of(scratch.write("empty", "")), "an empty file"));
  EXPECT_TRUE(has(failure_of(scratch.write("elf",
                                           "\x7f"
                                           "ELF and so on")),
                  "an ELF file"));
  EXPECT_TRUE(has(failure_of(scratch.write("perf.data", "PERFILE2........")), "the header is cut"));
  EXPECT_TRUE(
      has(failure_of(scratch.write("perf.data", "PERFILE2........"), {.format = "raw"}), "a perf.data file"));
  EXPECT_TRUE(has(failure_of(scratch.write("notes", "Dear diary,\n")),
                  "is not a trace: it is a text file without a PSB packet"));
  EXPECT_TRUE(has(failure_of(scratch.write("noise", "\x01\x02\x03\xff")), "4 bytes of unknown form"));
  EXPECT_TRUE(has(failure_of(scratch.write("late", std::string(70000, '\0') + test::small_stream())),
                  "first 64 KiB"));
  EXPECT_TRUE(
      has(failure_of(scratch.path()), ": no trace in this folder (formats of folders: docs/formats.md)"));
}

TEST(Registry, NamesUnreadablePaths) {
  const Scratch scratch;
  const auto missing = open(scratch.at("missing"), {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.failure().status, base::Status::IO_ERROR);
  EXPECT_TRUE(has(missing.failure().detail, scratch.at("missing")));
  const auto below_file = open(scratch.write("file", "x") + "/inside", {});
  ASSERT_FALSE(below_file.ok());
  EXPECT_EQ(below_file.failure().status, base::Status::IO_ERROR);
}

TEST(Registry, ForcesAFormat) {
  const Scratch scratch;
  const auto path = scratch.write("stream.pt", test::small_stream());
  OpenOptions options;
  options.format = "raw";
  EXPECT_TRUE(open(path, options).ok());
  options.format = "lldb";
  EXPECT_TRUE(has(failure_of(path, options), "expected JSON"));
  options.format = "libxdc";
  EXPECT_TRUE(has(failure_of(path, options), "member trace is missing"));
  options.format = "ptk";
  EXPECT_TRUE(has(failure_of(path, options), "expected a ptkit bundle"));
  options.format = "etm";
  EXPECT_TRUE(
      has(failure_of(path, options),
          "unknown format 'etm'; known formats: ptk, perf.data, lldb, libxdc, libipt-script, ipttool, bts, "
          "bts32, raw"));
}

}  // namespace
}  // namespace ptkit::formats
