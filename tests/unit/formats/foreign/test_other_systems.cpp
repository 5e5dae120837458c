// Files in the layouts of other systems' recorders.
#include <gtest/gtest.h>

#include "formats/ptk/layout.h"
#include "formats/registry.h"
#include "trace/branch_record.h"
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

// --- WindowsIntelPT

constexpr const char* kWindowsLog =
    "Intel PT Trace file. Version 1.0.\r\nCPU ID : 2\r\nExecutable name: C:\\work\\Target.exe\r\n"
    "Base address: 0x00007FF612340000 - Size 0x0000C000\r\n\r\nBegin Trace Dump:\r\n"
    "Executable name: not this\r\n0000 psb\r\n";

TEST(WindowsIntelPt, ReadsCpusAndTheModule) {
  const Scratch scratch;
  scratch.write("cpu02_bin.bin", stream());
  scratch.write("cpu11_bin.bin", stream() + std::string(4096 - stream().size(), '\0'));
  scratch.write("cpu12_bin.bin", "");
  scratch.write("cpu02_text.log", kWindowsLog);
  scratch.write("cpu11_text.log", kWindowsLog);
  const auto bundle = opened(scratch.path());
  EXPECT_EQ(bundle.format, "windows-intelpt");
  ASSERT_EQ(bundle.streams.size(), 2u);
  EXPECT_EQ(bundle.streams[0].cpu, 2);
  EXPECT_EQ(bundle.streams[1].cpu, 11);
  ASSERT_EQ(bundle.files.size(), 1u);
  EXPECT_EQ(bundle.files[0].path, "C:\\work\\Target.exe");
  ASSERT_EQ(bundle.code.size(), 1u);
  EXPECT_EQ(bundle.code[0].address, 0x7ff612340000u);
  EXPECT_EQ(bundle.code[0].size, 0xc000u);
  EXPECT_EQ(bundle.code[0].bytes.size(), 0u);
  ASSERT_EQ(ptkit::test::missing_files(bundle).size(), 1U);
  EXPECT_EQ(ptkit::test::missing_files(bundle)[0].path, "C:\\work\\Target.exe");
  EXPECT_TRUE(warns(bundle, WarningCode::WINDOWS_BUFFER_CUT, 1));
  EXPECT_EQ(opened(scratch.at("cpu02_bin.bin")).streams.size(), 1u);
  scratch.write("Target.exe", "no PE file");
  EXPECT_TRUE(warns(opened(scratch.path()), WarningCode::IMAGE_UNREADABLE));
}

TEST(WindowsIntelPt, ReadsStreamsWithoutLog) {
  const Scratch scratch;
  scratch.write("cpu00_bin.bin", stream());
  scratch.write("cpu00_text.log",
                "Intel PT Trace file\r\nBase address: 0xFFFFFFFFFFFFF000 - Size 0x2000\r\n");
  EXPECT_TRUE(opened(scratch.path()).code.empty());
  EXPECT_NE(
      failure_of(scratch.write("other.bin", stream()), {.format = "windows-intelpt"}).find("cpuNN_bin.bin"),
      std::string::npos);
}

// --- simple-pt

TEST(SimplePt, ReadsNumbersInTheirRadix) {
  const Scratch scratch;
  const std::string program = scratch.write("program", std::string(0x1000, 'h') + std::string(0x2000, 'c'));
  const std::string sideband =
      "meta family 6\nmeta model 61\nmeta stepping 4\nmeta mtc_freq 4\nmeta nom_freq 27\nmeta tsc_ratio 2 "
      "168\n"
      // Mappings from before the recording: hexadecimal offset, decimal size. Later ones: decimal offset,
      // hexadecimal size.
      "0.0 100 1a2b3000 400000 00001000 4096 \t" +
      program + "\n" + "12.345678 100 1a2b3000 500000 4096 2000\t" + program + "\n" +
      "13.5 200 77777000 7f0000000000 0\t/no/such_file\n" + "bad line\nmeta unknown 3\n";
  scratch.write("ptout.sideband", sideband);
  scratch.write("ptout.0", stream());
  scratch.write("ptout.3", stream());
  scratch.write("ptout.cpuid", "Family: 6\n");
  const auto bundle = opened(scratch.path());
  EXPECT_EQ(bundle.format, "simple-pt");
  ASSERT_EQ(bundle.streams.size(), 2u);
  EXPECT_EQ(bundle.streams[1].cpu, 3);
  EXPECT_EQ(bundle.streams[0].space, trace::kAnySpace);  // two processes: PIPs name them
  const auto& clock = bundle.configuration.clock;
  EXPECT_EQ(bundle.configuration.cpu.model, 61);
  EXPECT_TRUE(bundle.configuration.cpu.known);
  EXPECT_EQ(clock.mtc_period, 3);
  EXPECT_EQ(clock.max_nonturbo_ratio, 27);
  EXPECT_EQ(clock.tsc_hz, 2'700'000'000u);
  EXPECT_EQ(clock.tsc_ctc_numerator, 168u);
  EXPECT_EQ(clock.tsc_ctc_denominator, 2u);
  ASSERT_EQ(bundle.code.size(), 2u);
  EXPECT_EQ(bundle.code[0].file_offset, 0x1000u);
  EXPECT_EQ(bundle.code[0].size, 0x1000u);
  EXPECT_EQ(bundle.code[0].bytes.bytes()[0], 'c');
  EXPECT_EQ(bundle.code[1].file_offset, 0x1000u);
  EXPECT_EQ(bundle.code[1].size, 0x2000u);
  ASSERT_EQ(bundle.spaces.size(), 3u);
  EXPECT_EQ(bundle.spaces[1].cr3, 0x1a2b3000u);
  EXPECT_EQ(bundle.spaces[1].pid, 100);
  EXPECT_TRUE(warns(bundle, WarningCode::SIMPLE_PT_LINES_SKIPPED, 2));
  ASSERT_EQ(ptkit::test::missing_files(bundle).size(), 1U);
  EXPECT_EQ(ptkit::test::missing_files(bundle)[0].path, "/no/such_file");
  scratch.write("copies/such_file", std::string(0x1000, 'n'));
  EXPECT_EQ(opened(scratch.path(), {.binaries = {scratch.at("copies")}}).code.size(), 3u);
}

// The sideband has a line of exec(), which is no mapping, and CR3 with the PCID of the moment.
TEST(SimplePt, TakesLinesOfExecForNoMapping) {
  const Scratch scratch;
  ptkit::test::Elf64Maker maker;
  maker.type = ET_DYN;
  maker.segments.push_back({PT_LOAD, 0, 0, 0x800, 0x800, 0x1000, PF_R});
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x2000, 0x2000, 0x1000, PF_R | PF_X});
  ptkit::test::ByteVector bytes = maker.make();
  bytes.resize(0x3000);
  const std::string program = scratch.write("program", {bytes.begin(), bytes.end()});
  scratch.write("ptout.0", stream());
  scratch.write("ptout.sideband", "12.0 100 1a2b3000 0 0\t" + program +
                                      "\n12.1 100 1a2b3001 401000 4096 1000\t" + program +
                                      "\n12.2 100 1a2b3002 402000 8192 1000\t" + program + "\n");
  const auto bundle = opened(scratch.path());
  EXPECT_FALSE(warns(bundle, WarningCode::FILES_CONTRADICT));
  EXPECT_TRUE(ptkit::test::missing_files(bundle).empty());
  ASSERT_EQ(bundle.code.size(), 2u);
  EXPECT_EQ(bundle.code[0].bytes.size(), 0x1000u);
}

TEST(SimplePt, AssignsStreamsToTheOnlyProcess) {
  const Scratch scratch;
  scratch.write("ptout.0", stream());
  scratch.write("ptout.sideband", "0.0 100 1a2b3000 400000 0 4096 \t/no/file\nmeta mtc_freq 0\n");
  const auto bundle = opened(scratch.at("ptout.0"));
  EXPECT_EQ(bundle.format, "simple-pt");
  EXPECT_EQ(bundle.streams[0].space, 1u);
  EXPECT_EQ(bundle.streams[0].pid, 100);
  EXPECT_FALSE(bundle.configuration.clock.mtc_period_known);
  const Scratch bare;
  bare.write("ptout.0", stream());
  EXPECT_TRUE(warns(opened(bare.path()), WarningCode::SIMPLE_PT_NO_SIDEBAND));
  EXPECT_EQ(opened(bare.at("ptout.0")).format, "raw");  // without sideband: a raw stream
}

// --- Xen

TEST(Xen, ReadsNamedFormat) {
  const Scratch scratch;
  const std::string path = scratch.write("guest", stream());
  EXPECT_EQ(opened(path).format, "raw");
  const auto bundle = opened(path, {.format = "xen"});
  EXPECT_EQ(bundle.format, "xen");
  EXPECT_EQ(bundle.configuration.rtit_ctl, 0x240du);  // TraceEn, OS, User, TSCEn, BranchEn
  EXPECT_TRUE(warns(bundle, WarningCode::XEN_RING_LAPPED));
  EXPECT_NE(failure_of(scratch.write("no", "x"), {.format = "xen"}), "(it opened)");
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

// --- gdb

std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

TEST(GdbBtrace, ReadsProcessorTrace) {
  const Scratch scratch;
  const std::string head =
      "<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<!-- <raw>00</raw> -->\n<btrace "
      "version=\"1.0\">\n<pt><pt-config>\n"
      "<cpu vendor=\"GenuineIntel\" family=\"6\" model='158' stepping=\"10\"/></pt-config>\n<raw>";
  const auto bundle = opened(scratch.write("a.xml", head + hex(stream()) + "\n</raw></pt></btrace>\n"));
  EXPECT_EQ(bundle.format, "gdb-btrace");
  ASSERT_EQ(bundle.streams.size(), 1u);
  EXPECT_EQ(text_of(bundle.streams[0]), stream());
  EXPECT_EQ(bundle.streams[0].kind, trace::StreamKind::PROCESSOR_TRACE);
  EXPECT_TRUE(bundle.configuration.cpu.known);
  EXPECT_EQ(bundle.configuration.cpu.model, 158);
  EXPECT_EQ(bundle.configuration.cpu.stepping, 10);
  EXPECT_TRUE(bundle.warnings.empty());
  EXPECT_EQ(opened(scratch.write("reply", "l" + head + hex(stream()) + "</raw></pt></btrace>")).format,
            "gdb-btrace");
  EXPECT_TRUE(warns(opened(scratch.write("cut.xml", head + hex(stream()))), WarningCode::GDB_BTRACE_CUT));
}

TEST(GdbBtrace, ConvertsBlocksToBranches) {
  const Scratch scratch;
  // The newest block is still running, the oldest has no known begin, and one in between has no end.
  const std::string blocks =
      "<btrace version=\"1.0\">\n<block begin=\"0x60\" end=\"0x0\"/>\n<block begin=\"0x40\" end=\"0x4f\"/>\n"
      "<block begin=\"0x30\" end=\"0x0\"/>\n<block begin=\"0x20\" end=\"0x2f\"/>\n"
      "<block begin=\"0x0\" end=\"0x1e\"/></btrace>";
  const auto bundle = opened(scratch.write("b.xml", blocks));
  ASSERT_EQ(bundle.streams.size(), 1u);
  EXPECT_EQ(bundle.streams[0].kind, trace::StreamKind::BRANCH_RECORDS);
  const base::Bytes bytes = bundle.streams[0].data.bytes();
  struct Branch {
    std::uint64_t from;
    std::uint64_t to;
    bool first;
  };
  const std::vector<Branch> oldest_first{{0x1e, 0x20, true}, {0x2f, 0x30, false}, {0x4f, 0x60, true}};
  ASSERT_EQ(bytes.size(), oldest_first.size() * sizeof(trace::BranchRecord));
  for (std::size_t i = 0; i < oldest_first.size(); ++i) {
    const std::uint8_t* record = bytes.data() + i * sizeof(trace::BranchRecord);
    EXPECT_EQ(base::load_le<8>(record), oldest_first[i].from);
    EXPECT_EQ(base::load_le<8>(record + 8), oldest_first[i].to);
    EXPECT_EQ(base::load_le<4>(record + 24), oldest_first[i].first ? trace::RECORD_FIRST : 0u);
  }
}

TEST(GdbBtrace, NamesMalformedParts) {
  const Scratch scratch;
  const auto failure = [&](const std::string& text) {
    return failure_of(scratch.write("x.xml", text), {.format = "gdb-btrace"});
  };
  EXPECT_NE(failure("<btrace><raw>0</raw></btrace>").find("pairs of hexadecimal digits"), std::string::npos);
  EXPECT_NE(failure("<btrace><raw>zz</raw></btrace>").find("pairs of hexadecimal digits"), std::string::npos);
  EXPECT_NE(failure("<btrace><block begin='0x1'/></btrace>").find("begin and end"), std::string::npos);
  EXPECT_NE(failure("<btrace></btrace>").find("neither"), std::string::npos);
  EXPECT_NE(failure("<other/>").find("btrace element"), std::string::npos);
  EXPECT_NE(failure("<btrace a=b c= \">").find("neither"), std::string::npos);
  EXPECT_NE(failure("<").find("btrace element"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::formats
