// Files in the layouts of other systems' recorders.
#include <gtest/gtest.h>

#include "formats/registry.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/missing.h"
#include "unit/support/traces/stream_maker.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using test::Scratch;
using test::StreamMaker;

std::string le(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8U) text += static_cast<char>(value & 0xff);
  return text;
}

trace::TraceBundle opened(const std::string& path, const OpenOptions& options = {}) {
  const auto bundle = open(path, options);
  EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
  return bundle.ok() ? bundle.value() : trace::TraceBundle{};
}

std::string failure_of(const std::string& path, const OpenOptions& options = {}) {
  const auto bundle = open(path, options);
  return bundle.ok() ? "(it opened)" : bundle.failure().detail;
}

std::string text_of(const trace::Stream& stream) {
  const base::Bytes bytes = stream.data.bytes();
  return {bytes.begin(), bytes.end()};
}

std::string stream() { return StreamMaker().psb().run(0x1000, 0x1001).text(); }

// --- ipttool

struct Ring {
  std::uint64_t thread = 7;
  std::uint32_t timing = 1;
  std::uint32_t mtc = 3;
  std::string older;  // bytes from the newest byte to the end of the ring
  std::string newer;
};

std::string record(const Ring& ring) {
  constexpr std::size_t kPage = 4096;
  std::string bytes = le(ring.thread, 8) + le(ring.timing, 4) + le(ring.mtc, 4) + le(99, 4) +
                      le(ring.newer.size(), 4) + le(kPage, 4);
  bytes += ring.newer;
  bytes += std::string(kPage - ring.newer.size() - ring.older.size(), '\0') + ring.older;
  return bytes;
}

TEST(Ipttool, ReadsARingForEachThread) {
  const Scratch scratch;
  const Ring filled{0x1234, 1, 3, stream() + "\x99", std::string("\x01") + stream()};
  const auto bundle = opened(scratch.write("notepad.pt", record({7, 1, 3, "", stream()}) + record(filled)));
  EXPECT_EQ(bundle.format, "ipttool");
  EXPECT_TRUE(bundle.warnings.empty());
  ASSERT_EQ(bundle.streams.size(), 2u);
  EXPECT_EQ(bundle.streams[0].tid, 7);
  EXPECT_EQ(text_of(bundle.streams[0]), stream());
  EXPECT_TRUE(bundle.streams[0].losses.empty());
  // A packet continues from the end of the ring at its begin.
  EXPECT_EQ(bundle.streams[1].tid, 0x1234);
  const std::string unrolled = text_of(bundle.streams[1]);
  EXPECT_EQ(unrolled.substr(unrolled.size() - filled.newer.size() - filled.older.size()),
            filled.older + filled.newer);
  ASSERT_EQ(bundle.streams[1].losses.size(), 1u);
  EXPECT_EQ(bundle.streams[1].losses[0].offset, 0u);
  EXPECT_TRUE(bundle.configuration.clock.mtc_period_known);
  EXPECT_EQ(bundle.configuration.clock.mtc_period, 3);
}

TEST(Ipttool, ReadsTheDriversHeader) {
  const Scratch scratch;
  const std::string records = record({7, 0, 0, "", stream()});
  const std::string head = le(1, 2) + le(1, 2) + le(records.size(), 4);
  const auto bundle = opened(scratch.write("a", head + records + std::string(500, '\0')));
  EXPECT_EQ(bundle.format, "ipttool");
  EXPECT_EQ(bundle.streams.size(), 1u);
  EXPECT_FALSE(bundle.configuration.clock.mtc_period_known);
  EXPECT_TRUE(bundle.warnings.empty());
}

TEST(Ipttool, WarnsOfMissingThreads) {
  const Scratch scratch;
  const std::string two = record({7, 1, 3, "", stream()}) + record({8, 2, 4, "", stream()});
  const auto settings = opened(scratch.write("settings", two));
  EXPECT_TRUE(warns(settings, WarningCode::IPTTOOL_MTC_PERIODS));
  EXPECT_FALSE(settings.configuration.clock.mtc_period_known);
  const std::string cut = scratch.write("cut", two.substr(0, two.size() - 100));
  EXPECT_EQ(opened(cut).format, "ipttool");
  EXPECT_EQ(opened(cut).streams.size(), 1u);
  EXPECT_TRUE(warns(opened(cut), WarningCode::IPTTOOL_CUT, 4124));
  EXPECT_NE(failure_of(scratch.write("raw", stream()), {.format = "ipttool"}).find("28 bytes"),
            std::string::npos);
  EXPECT_EQ(opened(scratch.at("raw")).format, "raw");
}

// A cut header, or a header at the end of the file. Zeros are unused buffer.
TEST(Ipttool, WarnsOfHeadersWithoutTrace) {
  const Scratch scratch;
  const std::string one = record({7, 1, 3, "", stream()});
  for (const std::size_t left : {8u, 27u, 28u}) {
    SCOPED_TRACE(left);
    const auto cut = opened(scratch.write("cut", one + record({8, 1, 3, "", stream()}).substr(0, left)));
    EXPECT_EQ(cut.format, "ipttool");
    EXPECT_EQ(cut.streams.size(), 1u);
    EXPECT_TRUE(warns(cut, WarningCode::IPTTOOL_CUT, 4124));
    const auto room = opened(scratch.write("room", one + std::string(left, '\0')));
    EXPECT_EQ(room.streams.size(), 1u);
    EXPECT_TRUE(room.warnings.empty());
  }
}

// --- libipt's scripts

std::string mmap2(std::uint32_t pid, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
                  const std::string& path, const std::string& trailer) {
  std::string name = path + '\0';
  name.resize((name.size() + 7) / 8 * 8, '\0');
  const std::string body = le(pid, 4) + le(pid, 4) + le(address, 8) + le(size, 8) + le(offset, 8) +
                           std::string(24, '\0') + le(5, 4) + le(2, 4) + name + trailer;
  return le(10, 4) + le(2, 2) + le(body.size() + 8, 2) + body;
}

TEST(LibiptScript, ReadsBuffersAndMappings) {
  const Scratch scratch;
  const std::string program = scratch.write("program", std::string(0x3000, 'c'));
  scratch.write("my.perf-aux-idx0.bin", stream());
  scratch.write("my.perf-aux-idx10.bin", stream());
  scratch.write(
      "my.perf-sideband-cpu0.pevent",
      mmap2(100, 0x400000, 0x2000, 0x1000, program, std::string(16, 'x')) + mmap2(0, 1, 2, 3, "/x", ""));
  const auto bundle = opened(scratch.path());
  EXPECT_EQ(bundle.format, "libipt-script");
  ASSERT_EQ(bundle.streams.size(), 2u);
  EXPECT_EQ(bundle.streams[1].name, "idx 10");
  EXPECT_EQ(bundle.streams[0].pid, 100);
  ASSERT_EQ(bundle.code.size(), 1u);
  EXPECT_EQ(bundle.code[0].address, 0x400000u);
  EXPECT_EQ(bundle.code[0].file_offset, 0x1000u);
  EXPECT_EQ(bundle.code[0].size, 0x2000u);
  EXPECT_TRUE(bundle.warnings.empty());
  EXPECT_EQ(opened(scratch.at("my.perf-aux-idx0.bin")).format, "libipt-script");
}

TEST(LibiptScript, JoinsSnapshots) {
  const Scratch scratch;
  scratch.write("p-aux-idx1.2.bin", std::string("22") + stream());
  scratch.write("p-aux-idx1.10.bin", std::string("10") + stream());
  scratch.write("p-sideband.pevent", mmap2(1, 0, 16, 0, "/a", "") + mmap2(2, 0, 16, 0, "/b", "") + "torn");
  const auto bundle = opened(scratch.path());
  ASSERT_EQ(bundle.streams.size(), 1u);
  EXPECT_EQ(text_of(bundle.streams[0]), std::string("22") + stream() + std::string("10") + stream());
  ASSERT_EQ(bundle.streams[0].losses.size(), 1u);
  EXPECT_EQ(bundle.streams[0].losses[0].offset, stream().size() + 2);
  EXPECT_TRUE(warns(bundle, WarningCode::LIBIPT_PROCESS_CONFLICT, 2));
  EXPECT_TRUE(warns(bundle, WarningCode::LIBIPT_SIDEBAND_CUT));
  EXPECT_TRUE(bundle.code.empty());
}

// `perf record -S`: two snapshots of a ring overlap if it did not wrap in between.
TEST(LibiptScript, UsesOverlapsOnce) {
  const Scratch scratch;
  std::string older;
  for (std::uint64_t i = 0; older.size() < 8192; ++i)
    older += StreamMaker().psb().run(0x1000 + i, 0x1001 + i).text();
  const std::string newer = older.substr(older.size() / 4) + stream();
  scratch.write("p-aux-idx0.0.bin", older);
  scratch.write("p-aux-idx0.1.bin", newer);
  const auto bundle = opened(scratch.path());
  ASSERT_EQ(bundle.streams.size(), 1u);
  EXPECT_TRUE(bundle.streams[0].losses.empty());
  EXPECT_EQ(text_of(bundle.streams[0]), older + stream());
}

TEST(LibiptScript, WarnsOfConflictingMappingsOfTwoCpus) {
  const Scratch scratch;
  scratch.write("p-aux-idx0.bin", stream());
  scratch.write("p-sideband-cpu0.pevent", mmap2(7, 0x400000, 0x2000, 0, "/a", ""));
  scratch.write("p-sideband-cpu1.pevent", mmap2(7, 0x401000, 0x1000, 0x1000, "/a", ""));  // the same mapping
  EXPECT_FALSE(warns(opened(scratch.path()), WarningCode::LIBIPT_MAPPING_CONFLICT));
  scratch.write("p-sideband-cpu1.pevent", mmap2(7, 0x401000, 0x1000, 0, "/b", ""));
  EXPECT_TRUE(warns(opened(scratch.path()), WarningCode::LIBIPT_MAPPING_CONFLICT, "/a", "/b"));
  scratch.write("p-sideband-cpu1.pevent", mmap2(7, 0x402000, 0x1000, 0, "/b", ""));
  EXPECT_FALSE(warns(opened(scratch.path()), WarningCode::LIBIPT_MAPPING_CONFLICT));
}

TEST(LibiptScript, RecognisesFilesByName) {
  const Scratch scratch;
  scratch.write("one-aux-idx0.bin", stream());
  scratch.write("two-aux-idx0.bin", stream());
  scratch.write("two-aux-idx1.bin", stream());
  const std::string other = scratch.write("notes.txt", "notes");
  EXPECT_NE(failure_of(other, {.format = "libipt-script"}).find("expected files NAME-aux-idx0.bin"),
            std::string::npos);
  // One stream's path opens all streams of its recording.
  EXPECT_EQ(opened(scratch.at("two-aux-idx1.bin")).streams.size(), 2u);
}

TEST(LibiptScript, LeavesOutDataMappings) {
  const Scratch scratch;
  const std::string program = scratch.write("program", std::string(0x3000, 'c'));
  std::string data = mmap2(7, 0x400000, 0x1000, 0, program, "");
  data[8 + 56] = 3;  // readable and writable
  scratch.write("a-aux-idx0.bin", stream());
  scratch.write("a-sideband.pevent", data + mmap2(7, 0x600000, 0x5000, 0x2000, program, ""));
  const auto bundle = opened(scratch.path());
  ASSERT_EQ(bundle.code.size(), 1u);
  EXPECT_EQ(bundle.code[0].address, 0x600000u);
  EXPECT_EQ(bundle.code[0].size, 0x5000u);          // mapped bytes
  EXPECT_EQ(bundle.code[0].bytes.size(), 0x1000u);  // bytes of the file
}

}  // namespace
}  // namespace ptkit::formats
