// perf.data that is written: its bytes, and what reading it gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "formats/perf_record.h"
#include "formats/perf_write.h"
#include "formats/perf_write_made.h"
#include "formats/perf_write_records.h"
#include "formats/registry.h"
#include "image/elf.h"
#include "trace/clock.h"
#include "unit/formats/scratch.h"

namespace ptkit::formats {
namespace {

using test::Scratch;

constexpr std::uint64_t kTscOnly = 0x2408;  // BranchEn, TSCEn, User

trace::TraceBuffer buffer(const std::string& bytes) {
  return trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
}

std::string text(const trace::TraceBuffer& bytes) { return {bytes.bytes().begin(), bytes.bytes().end()}; }

// A PSB+ with a TSC, and something behind it.
std::string trace_of(std::uint8_t tsc, std::size_t pads) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += "\x02\x82";
  bytes += '\x19';
  bytes += static_cast<char>(tsc);
  bytes += std::string(6, '\0') + "\x02\x23" + std::string(pads, '\0');
  return bytes;
}

trace::TraceBundle small_bundle() {
  trace::TraceBundle bundle;
  bundle.configuration.rtit_ctl = kTscOnly;
  bundle.configuration.rtit_ctl_known = true;
  bundle.spaces.push_back({.pid = 10});
  trace::Stream stream;
  stream.pid = stream.tid = 10;
  stream.space = 1;
  stream.data = buffer(trace_of(5, 3));
  bundle.streams.push_back(std::move(stream));
  return bundle;
}

trace::CodeRegion region(std::uint64_t address, const std::string& bytes, std::uint64_t from = 0,
                         std::int32_t file = -1, std::uint64_t offset = 0) {
  trace::CodeRegion one;
  one.space = 1;
  one.address = address;
  one.bytes = buffer(bytes);
  one.size = bytes.size();
  one.tsc_from = from;
  one.file = file;
  one.file_offset = offset;
  return one;
}

class PerfWrite : public ::testing::Test {
 protected:
  PerfDataWritten write(const trace::TraceBundle& bundle, const PerfDataOptions& options = {}) {
    auto written = write_perf_data(bundle, path(), options);
    EXPECT_TRUE(written.ok()) << written.failure().detail;
    return written.ok() ? std::move(written.value()) : PerfDataWritten{};
  }
  trace::TraceBundle write_and_read(const trace::TraceBundle& bundle, const PerfDataOptions& options = {}) {
    static_cast<void>(write(bundle, options));
    auto read = open(path(), {});
    EXPECT_TRUE(read.ok()) << read.failure().detail;
    return read.ok() ? std::move(read.value()) : trace::TraceBundle{};
  }
  std::string failure(const trace::TraceBundle& bundle) {
    const auto written = write_perf_data(bundle, path(), {});
    return written.ok() ? "(it was written)" : written.failure().detail;
  }
  std::string path() { return scratch_.at("out.data"); }
  std::string contents() { return test::read_all(path()); }
  // Of the data section, in the file's order.
  std::vector<perf::Record> records() {
    bytes_ = contents();
    const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes_.data());
    std::vector<perf::Record> found;
    static_cast<void>(perf::walk({from + base::load_le<8>(from + 40), base::load_le<8>(from + 48)}, 0, false,
                                 [&](const perf::Record& record) {
                                   found.push_back(record);
                                   return true;
                                 }));
    return found;
  }
  std::vector<perf::Record> records(std::uint32_t type) {
    std::vector<perf::Record> found = records();
    std::erase_if(found, [type](const perf::Record& record) { return record.type != type; });
    return found;
  }
  Scratch scratch_;
  std::string bytes_;
};

TEST_F(PerfWrite, Header) {
  const PerfDataWritten written = write(small_bundle());
  const std::string bytes = contents();
  EXPECT_EQ(written.bytes, bytes.size());
  EXPECT_FALSE(written.is_folder);
  EXPECT_TRUE(written.code_folder.empty());
  EXPECT_EQ(bytes.substr(0, 8), "PERFILE2");
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  EXPECT_EQ(base::load_le<8>(from + 8), 104U);
  EXPECT_EQ(base::load_le<8>(from + 16), 144U);  // an attribute and where its ids are
  const std::uint64_t attr = base::load_le<8>(from + 24);
  EXPECT_EQ(base::load_le<4>(from + attr), 8U);
  EXPECT_EQ(base::load_le<4>(from + attr + 4), 128U);
  EXPECT_EQ(base::load_le<8>(from + attr + 8), 0x2401U);  // pt, tsc, branch
  // exclude_kernel, not exclude_user.
  EXPECT_EQ(base::load_le<8>(from + attr + 40) >> 4U & 3U, 2U);
  const std::uint64_t ids = base::load_le<8>(from + attr + 128);
  EXPECT_EQ(base::load_le<8>(from + ids), perf::kEventId);
  // Features lie behind the data, end with the file, and the index has each piece.
  const std::uint64_t features = base::load_le<8>(from + 40) + base::load_le<8>(from + 48);
  const std::uint64_t bitmap = base::load_le<8>(from + 72);
  std::uint64_t end = 0;
  std::uint64_t at = features;
  for (unsigned number = 0; number < 64; ++number) {
    if ((bitmap >> number & 1U) == 0) continue;
    end = base::load_le<8>(from + at) + base::load_le<8>(from + at + 8);
    if (number == 18) {
      const auto* const index = from + base::load_le<8>(from + at);
      EXPECT_EQ(base::load_le<8>(index), 1U);
      const std::uint64_t place = base::load_le<8>(index + 8);
      EXPECT_EQ(base::load_le<4>(from + place), 71U);
      EXPECT_EQ(base::load_le<8>(index + 16), 48U);
      EXPECT_EQ(base::load_le<2>(from + place + 6), 48U);
    }
    at += 16;
  }
  EXPECT_NE(bitmap >> 18U & 1U, 0U);
  EXPECT_EQ(end, bytes.size());
}

TEST_F(PerfWrite, ReadBackItIsEqual) {
  trace::TraceBundle bundle = small_bundle();
  bundle.configuration.cpu = {.known = true, .intel = true, .family = 6, .model = 142, .stepping = 9};
  trace::Clock& clock = bundle.configuration.clock;
  clock.tsc_ctc_numerator = 168;
  clock.tsc_ctc_denominator = 2;
  clock.mtc_period_known = true;
  clock.mtc_period = 5;
  clock.max_nonturbo_ratio = 24;
  clock.perf_time_known = true;
  clock.time_shift = 31;
  clock.time_mult = 827188994;
  clock.time_zero = ~std::uint64_t{0} - 5'000;
  bundle.metadata = R"({"command": ["a.out", "x y"], "kernel": "6.1", "perf": "6.1.0", "machine": "host"})";
  bundle.threads.push_back({10, 10, "main"});
  const trace::TraceBundle back = write_and_read(bundle);
  EXPECT_EQ(back.format, "perf.data");
  ASSERT_EQ(back.streams.size(), 1U);
  EXPECT_EQ(text(back.streams[0].data), trace_of(5, 3));
  EXPECT_EQ(back.streams[0].tid, 10);
  EXPECT_EQ(back.streams[0].pid, 10);
  EXPECT_TRUE(back.streams[0].losses.empty());
  const trace::Configuration& found = back.configuration;
  EXPECT_EQ(found.cpu.model, 142);
  EXPECT_EQ(found.cpu.stepping, 9);
  EXPECT_EQ(found.clock.tsc_ctc_numerator, 168U);
  EXPECT_EQ(found.clock.tsc_ctc_denominator, 2U);
  EXPECT_EQ(found.clock.mtc_period, 5);
  EXPECT_EQ(found.clock.max_nonturbo_ratio, 24);
  EXPECT_EQ(found.clock.time_shift, 31);
  EXPECT_EQ(found.clock.time_mult, 827188994U);
  EXPECT_EQ(found.clock.time_zero, clock.time_zero);
  ASSERT_EQ(back.threads.size(), 1U);
  EXPECT_EQ(back.threads[0].name, "main");
  for (const char* word : {"\"a.out\"", "\"x y\"", "\"6.1\"", "\"6.1.0\"", "\"host\""})
    EXPECT_NE(back.metadata.find(word), std::string::npos) << word << " " << back.metadata;
}

TEST_F(PerfWrite, SeveralStreamsOfOneThreadStayApart) {
  trace::TraceBundle bundle = small_bundle();
  bundle.streams.push_back(bundle.streams[0]);
  bundle.streams[1].data = buffer(trace_of(9, 6));
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.streams.size(), 2U);
  EXPECT_EQ(text(back.streams[0].data), trace_of(5, 3));
  EXPECT_EQ(text(back.streams[1].data), trace_of(9, 6));
  EXPECT_EQ(back.streams[0].pid, 10);
  EXPECT_EQ(back.streams[1].pid, 10);
}

TEST_F(PerfWrite, Losses) {
  using base::Status;
  trace::TraceBundle bundle = small_bundle();
  std::string all;
  std::vector<trace::KnownLoss>& losses = bundle.streams[0].losses;
  // At the beginning; of each kind; behind pieces of every size modulo eight; behind the last byte.
  losses.push_back({0, Status::BUFFER_FULL, 0});
  for (std::size_t i = 0; i < 16; ++i) {
    all += trace_of(static_cast<std::uint8_t>(i), i);
    const bool wrapped = i % 2 == 0;
    losses.push_back({all.size(), wrapped ? Status::RING_WRAPPED : Status::BUFFER_FULL,
                      i % 4 < 2 ? 0U : static_cast<std::uint64_t>(100 + i)});
  }
  bundle.streams[0].data = buffer(all);
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.streams.size(), 1U);
  EXPECT_EQ(text(back.streams[0].data), all);
  ASSERT_EQ(back.streams[0].losses.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(back.streams[0].losses[i].offset, losses[i].offset);
    EXPECT_EQ(back.streams[0].losses[i].cause, losses[i].cause);
    // How much is missing is told by where the next piece begins.
    if (losses[i].offset == all.size()) continue;
    EXPECT_EQ(back.streams[0].losses[i].lost_bytes, losses[i].lost_bytes);
  }
}

// perf's decoder goes on across a loss unless it finds an OVF, and takes what it can before the next PSB.
TEST_F(PerfWrite, BehindALossStandsAnOverflow) {
  for (std::size_t size = 0; size < 8; ++size) {
    trace::TraceBundle bundle = small_bundle();
    const std::string first = trace_of(1, size);
    bundle.streams[0].data = buffer(first + "\x71\x01\x02" + trace_of(2, 0));
    bundle.streams[0].losses.push_back({first.size(), base::Status::BUFFER_FULL, 0});
    static_cast<void>(write(bundle));
    const auto pieces = records(perf::AUXTRACE);
    ASSERT_EQ(pieces.size(), 2U);
    const base::Bytes payload = pieces[0].payload;
    EXPECT_EQ(payload.size() % 8, 0U);
    const auto padding = payload.subspan(first.size());
    EXPECT_GE(padding.size(), 11U);
    EXPECT_LE(padding.size(), 18U);
    EXPECT_TRUE(std::ranges::all_of(padding.first(padding.size() - 2), [](auto byte) { return byte == 0; }));
    EXPECT_EQ(padding[padding.size() - 2], 0x02);
    EXPECT_EQ(padding[padding.size() - 1], 0xf3);
    const base::Bytes second = pieces[1].payload;
    EXPECT_TRUE(std::ranges::all_of(second.first(3), [](auto byte) { return byte == 0; }));
    EXPECT_EQ(second[3], 0x02);
  }
}

TEST_F(PerfWrite, AGuestIsWrittenAsIfItWereNone) {
  const std::string guest = "\x02\x43\x01\x4a\xee\x01" + std::string(2, '\0');
  const std::string host = "\x02\x43" + std::string(1, '\0') + "\x4a\xee\x01" + std::string(2, '\0');
  // What looks like a PIP within another packet is none.
  const std::string other = "\x19\x02\x43\x01" + std::string(4, '\0');
  trace::TraceBundle bundle = small_bundle();
  bundle.streams[0].data = buffer(trace_of(1, 0) + other + guest + "\xd9" + trace_of(2, 0) + guest);
  EXPECT_EQ(text(write_and_read(bundle).streams.at(0).data),
            trace_of(1, 0) + other + host + "\xd9" + trace_of(2, 0) + host);
  const std::string both = trace_of(1, 0) + guest + host;
  bundle.streams[0].data = buffer(both);
  EXPECT_EQ(text(write_and_read(bundle).streams.at(0).data), both);
}

TEST_F(PerfWrite, LongStreamsAreWrittenInPieces) {
  trace::TraceBundle bundle = small_bundle();
  const std::string all = trace_of(1, (std::size_t{20} << 20U) + 5);
  bundle.streams[0].data = buffer(all);
  const trace::TraceBundle back = write_and_read(bundle);
  EXPECT_TRUE(text(back.streams.at(0).data) == all);
  EXPECT_TRUE(back.streams[0].losses.empty());
  EXPECT_EQ(records(perf::AUXTRACE).size(), 3U);
}

TEST_F(PerfWrite, SwitchesOfAProcessor) {
  trace::TraceBundle bundle = small_bundle();
  bundle.spaces.push_back({.pid = 20});
  trace::Stream& stream = bundle.streams[0];
  stream.cpu = 3;
  stream.pid = stream.tid = trace::kNoId;
  stream.space = trace::kAnySpace;
  stream.switches = {{100, 10, 11, 1}, {200, 20, 20, 2}, {300}, {400, 10, 11, 1}};
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.streams.size(), 1U);
  EXPECT_EQ(back.streams[0].cpu, 3);
  const auto& found = back.streams[0].switches;
  ASSERT_EQ(found.size(), 4U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tsc, stream.switches[i].tsc);
    EXPECT_EQ(found[i].pid, stream.switches[i].pid);
    EXPECT_EQ(found[i].tid, stream.switches[i].tid);
    EXPECT_EQ(back.spaces.at(found[i].space).pid, found[i].pid);
  }
}

TEST_F(PerfWrite, ProcessesBeginAndEnd) {
  using trace::SidebandKind;
  trace::TraceBundle bundle = small_bundle();
  bundle.spaces.push_back({.pid = 20});
  const auto tell = [&](SidebandKind kind, std::uint64_t tsc, std::int64_t value) {
    trace::Sideband record;
    record.kind = kind;
    record.tsc = tsc;
    record.pid = record.tid = 20;
    record.value = value;
    bundle.sideband.push_back(record);
  };
  tell(SidebandKind::PROCESS, 100, 0);
  bundle.sideband.back().parent = 10;
  tell(SidebandKind::EXEC, 200, 0);
  bundle.sideband.back().text = "/usr/bin/a-name-that-is-too-long";
  tell(SidebandKind::SIGNAL, 250, 9);
  tell(SidebandKind::EXIT, 300, 137);
  const PerfDataWritten written = write(bundle);
  EXPECT_TRUE(std::ranges::any_of(written.notes, [](const std::string& note) {
    return note == "perf.data has no records of signals; 1 are left out.";
  }));
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.sideband.size(), 3U);
  EXPECT_EQ(back.sideband[0].kind, SidebandKind::PROCESS);
  EXPECT_EQ(back.sideband[0].tsc, 100U);
  EXPECT_EQ(back.sideband[0].pid, 20);
  EXPECT_EQ(back.sideband[0].parent, 10);
  EXPECT_EQ(back.sideband[1].kind, SidebandKind::EXEC);
  EXPECT_EQ(back.sideband[1].text, "a-name-that-is-");
  EXPECT_EQ(back.sideband[2].kind, SidebandKind::EXIT);
  EXPECT_EQ(back.sideband[2].tsc, 300U);
}

// exec() makes a new space, which is in use a little before the record of it.
TEST_F(PerfWrite, SpacesOfAProcessorsStreamBeginWithTheirProcess) {
  using trace::SidebandKind;
  trace::TraceBundle bundle = small_bundle();
  bundle.spaces = {{}, {.pid = 20}, {.pid = 20}};
  for (const auto& [kind, tsc] :
       {std::pair(SidebandKind::PROCESS, 100U), {SidebandKind::EXEC, 300U}, {SidebandKind::EXEC, 301U}}) {
    trace::Sideband record;
    record.kind = kind;
    record.tsc = tsc;
    record.pid = record.tid = 20;
    if (kind == SidebandKind::PROCESS) record.parent = 10;
    bundle.sideband.push_back(record);
  }
  trace::Stream& stream = bundle.streams[0];
  stream.cpu = 0;
  stream.pid = stream.tid = trace::kNoId;
  stream.space = trace::kAnySpace;
  stream.switches = {{110, 20, 20, 1}, {290, 20, 20, 2}};
  bundle.code = {region(0x1000, "abcd"), region(0x1000, "efgh")};
  bundle.code[1].space = 2;
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.code.size(), 2U);
  EXPECT_EQ(back.code[0].tsc_from, 100U);
  EXPECT_EQ(text(back.code[0].bytes), "abcd");
  EXPECT_EQ(back.code[1].tsc_from, 300U);
  EXPECT_EQ(text(back.code[1].bytes), "efgh");
}

TEST_F(PerfWrite, FiltersAreSaidToBeMissing) {
  trace::TraceBundle bundle = small_bundle();
  const auto said = [&] {
    const PerfDataWritten written = write(bundle);
    return std::ranges::any_of(written.notes, [](const std::string& note) {
      return note.starts_with("Address ranges of the trace unit are not written");
    });
  };
  EXPECT_FALSE(said());
  bundle.configuration.ranges[1] = {trace::RangeKind::FILTER, 0x1000, 0x1fff};
  EXPECT_TRUE(said());
}

TEST_F(PerfWrite, CodeThatLiesInNoFile) {
  trace::TraceBundle bundle = small_bundle();
  // Two versions of one place; the second one takes along what is before it.
  bundle.code = {region(0x1000, "abcdefgh"), region(0x1008, "ijkl"), region(0x1004, "EF", 50)};
  const PerfDataWritten written = write(bundle);
  EXPECT_EQ(written.code_folder, path() + ".debug");
  const auto maps = records(perf::MMAP2);
  ASSERT_EQ(maps.size(), 2U);
  const auto where = [](const perf::Record& record) {
    return std::pair(base::load_le<8>(record.body.data() + 8), base::load_le<8>(record.body.data() + 16));
  };
  EXPECT_EQ(where(maps[0]), std::pair(std::uint64_t{0x1000}, std::uint64_t{12}));
  EXPECT_EQ(where(maps[1]), std::pair(std::uint64_t{0x1000}, std::uint64_t{6}));
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.code.size(), 2U);
  EXPECT_EQ(text(back.code[0].bytes), "abcdefghijkl");
  EXPECT_EQ(text(back.code[1].bytes), "abcdEF");
  EXPECT_EQ(back.code[1].tsc_from, 50U);
  ASSERT_EQ(back.files.size(), 1U);
  EXPECT_EQ(back.files[0].path, "code-10-1");
  EXPECT_EQ(image::elf_build_id(back.files[0].contents.bytes()), back.files[0].build_id);
}

TEST_F(PerfWrite, CodeOfAFileThatIsGone) {
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"/gone/a.so", std::string(40, 'a'), {}, {{"work", 0x2002, 4}}});
  trace::CodeRegion whole = region(0x7000, "", 0, 0, 0x2000);
  whole.size = 0x1000;
  bundle.code = {whole, region(0x7000, "abcd", 0, 0, 0x2000), region(0x7010, "efgh", 0, 0, 0x2010),
                 region(0x7000, "XY", 70, 0, 0x2000)};  // changed in memory
  const trace::TraceBundle back = write_and_read(bundle);
  EXPECT_EQ(records(perf::MMAP2).size(), 2U);
  ASSERT_EQ(back.code.size(), 2U);
  EXPECT_EQ(back.code[0].address, 0x7000U);
  EXPECT_EQ(back.code[0].size, 0x1000U);
  EXPECT_EQ(text(back.code[0].bytes).substr(0, 4), "abcd");
  EXPECT_EQ(text(back.code[0].bytes).substr(0x10, 4), "efgh");
  EXPECT_EQ(back.files.at(0).path, "/gone/a.so");
  EXPECT_EQ(back.files[0].build_id, std::string(40, 'a'));
  EXPECT_EQ(text(back.code[1].bytes), "XY");
  EXPECT_EQ(back.code[1].tsc_from, 70U);
  const auto symbols = image::read_symbols(back.files[0].contents.bytes());
  ASSERT_EQ(symbols.size(), 1U);
  EXPECT_EQ(symbols[0].name, "work");
  EXPECT_EQ(symbols[0].file_offset, 0x2002U);
  // perf's table of build-ids has both files.
  const std::string table = std::string("\xff\xff\xff\xff", 4) + std::string(20, '\xaa') +
                            std::string("\x14\0\0\0", 4) + "/gone/a.so" + '\0';
  EXPECT_NE(contents().find(table), std::string::npos);
}

TEST_F(PerfWrite, CodeWhereAHeaderWouldBe) {
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"/memfd:code (deleted)", "", {}, {}});
  bundle.code = {region(0x7000, "abcd", 0, 0, 0)};
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.code.size(), 1U);
  EXPECT_EQ(text(back.code[0].bytes), "abcd");
}

TEST_F(PerfWrite, HostileNamesStayInTheFolder) {
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"/../../../../tmp/ptkit-escape", "../../../../../../tmp/ptkit", {}, {}});
  bundle.files.push_back({std::string(100'000, 'x'), "zz", {}, {}});
  bundle.code = {region(0x7000, "abcd", 0, 0, 0x1000), region(0x8000, "abcd", 0, 1, 0x1000)};
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.code.size(), 2U);
  EXPECT_EQ(text(back.code[0].bytes), "abcd");
  EXPECT_FALSE(std::filesystem::exists("/tmp/ptkit-escape"));
}

TEST_F(PerfWrite, TheKernelMakesAFolder) {
  trace::TraceBundle bundle = small_bundle();
  constexpr std::uint64_t kKernel = 0xffffffff81000000;
  bundle.files.push_back({"[kernel]", "", {}, {{"_stext", 0, 4}, {"work", 6, 2}}});
  bundle.code = {region(kKernel, "abcdefgh", 0, 0, 0), region(kKernel + 8, "ijkl", 0, 0, 8),
                 region(kKernel + 2, "CD", 90, 0, 2), region(kKernel + 0x5000, "module")};
  for (trace::CodeRegion& one : bundle.code) one.space = trace::kAnySpace;
  EXPECT_TRUE(write(bundle).is_folder);
  auto opened = open(path(), {});
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  const trace::TraceBundle& back = opened.value();
  ASSERT_EQ(back.code.size(), 2U);
  EXPECT_EQ(back.code[0].address, kKernel);
  EXPECT_EQ(text(back.code[0].bytes), "abCDefghijkl");  // as it was at the end
  EXPECT_EQ(back.code[1].address, kKernel + 0x5000);
  EXPECT_EQ(text(back.code[1].bytes), "module");
  const auto& symbols = back.files.at(0).symbols;
  ASSERT_EQ(symbols.size(), 2U);
  EXPECT_EQ(symbols[1].name, "work");
  // And once more: what ptkit wrote is replaced.
  EXPECT_TRUE(write(bundle).is_folder);
}

TEST_F(PerfWrite, Refused) {
  EXPECT_NE(failure({}).find("there is no trace"), std::string::npos);
  trace::TraceBundle bundle = small_bundle();
  bundle.streams[0].kind = trace::StreamKind::BRANCH_RECORDS;
  EXPECT_NE(failure(bundle).find("branch records"), std::string::npos);
  bundle = small_bundle();
  bundle.streams[0].switches_by_offset = true;
  EXPECT_NE(failure(bundle).find("places in the stream"), std::string::npos);
  std::filesystem::create_directory(path());
  EXPECT_NE(failure(small_bundle()).find("Is a directory"), std::string::npos);
  std::filesystem::create_directory(path() + ".debug");
  std::filesystem::remove(path());
  bundle = small_bundle();
  bundle.code = {region(0x1000, "abc")};
  EXPECT_NE(failure(bundle).find("a folder that ptkit did not write"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(PerfWrite, NothingIsLeftOfWhatIsInterrupted) {
  trace::TraceBundle bundle = small_bundle();
  bundle.code = {region(0x1000, "abc")};
  const auto written = write_perf_data(bundle, path(), {.go_on = [] { return false; }});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.failure().status, base::Status::INTERRUPTED);
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path()).parent_path()));
}

// Whatever a bundle says: it is written or refused, and what was written can be read.
TEST_F(PerfWrite, OddBundles) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::initializer_list<std::uint64_t> values) {
    return values.begin()[random() % values.size()];
  };
  const auto address = [&] {
    return pick({0, 1, 0x1000, 0x1ff8, 0x7fff'ffff'ffff'f000, 0x8000'0000'0000'0000, 0xffff'ffff'8100'0000,
                 0xffff'ffff'ffff'fff0, ~std::uint64_t{0}}) +
           random() % 3;
  };
  const auto id = [&] { return static_cast<std::int64_t>(random() % 4) - 1; };
  const auto tsc = [&] { return pick({0, 5, 90, 1'000, ~std::uint64_t{0} - 1, ~std::uint64_t{0}}); };
  int count = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    trace::TraceBundle bundle = small_bundle();
    bundle.configuration.rtit_ctl_known = random() % 2 == 0;
    bundle.configuration.clock.tsc_hz = pick({0, 1, 999, 2'500'000'000, ~std::uint64_t{0}});
    bundle.spaces.push_back({.pid = id()});
    bundle.files = {{"/a", "abcd", {}, {{"name", address(), 4}}}, {"[vdso]", "", {}, {}}, {"", "zz", {}, {}}};
    for (std::size_t i = random() % 8; i > 0; --i) {
      trace::CodeRegion one = region(address(), std::string(random() % 40, static_cast<char>(random() % 3)),
                                     tsc(), static_cast<std::int32_t>(random() % 4) - 1, address());
      one.size = pick({one.size, one.size, 0, 0x2000, ~std::uint64_t{0}});
      one.tsc_to = tsc();
      one.space = static_cast<trace::SpaceId>(random() % 3);
      bundle.code.push_back(std::move(one));
    }
    for (std::size_t i = random() % 6; i > 0; --i) {
      trace::Sideband record;
      record.kind = static_cast<trace::SidebandKind>(random() % 6);
      record.tsc = tsc();
      record.pid = id();
      record.tid = id();
      record.parent = id();
      record.text = std::string(random() % 5000, 'x');
      bundle.sideband.push_back(std::move(record));
    }
    trace::Stream& stream = bundle.streams[0];
    stream.cpu = id();
    stream.pid = id();
    stream.tid = id();
    for (std::size_t i = random() % 4; i > 0; --i) {
      stream.switches.push_back({tsc(), id(), id(), static_cast<trace::SpaceId>(random() % 3)});
      stream.losses.push_back({random() % 40, base::Status::BUFFER_FULL, tsc()});
    }
    std::filesystem::remove_all(path());
    const auto written = write_perf_data(bundle, path(), {});
    if (!written.ok()) continue;
    ++count;
    const auto back = open(path(), {});
    ASSERT_TRUE(back.ok()) << back.failure().detail;
    EXPECT_EQ(back.value().streams.size(), 1U);
  }
  EXPECT_GT(count, 100);
}

// ---- clocks

TEST(PerfWriteClock, TimesComeBackAsTheyWere) {
  for (const auto& [shift, mult] : {std::pair(31U, 827188994U), {10U, 512U}, {0U, 1U}, {27U, 2684354560U}}) {
    trace::Clock clock;
    clock.perf_time_known = true;
    clock.time_shift = static_cast<std::uint16_t>(shift);
    clock.time_mult = mult;
    clock.time_zero = 12345;
    const perf::Records records(clock);
    for (std::uint64_t ns = 1'000'000; ns < 1'002'000; ++ns) {
      const std::uint64_t tsc = trace::perf_tsc_from_ns(clock, ns);
      EXPECT_EQ(trace::perf_tsc_from_ns(clock, records.ns(tsc)), tsc);
      EXPECT_GE(trace::perf_tsc_from_ns(clock, records.ns(tsc + 1)), tsc + 1);
    }
  }
}

TEST(PerfWriteClock, WhatIsNotKnownIsMade) {
  trace::Clock ticks = perf::written_clock({});
  EXPECT_EQ(ticks.time_mult, 1U);
  EXPECT_EQ(ticks.time_shift, 0U);
  trace::Clock known;
  known.tsc_hz = 2'500'000'000;
  const trace::Clock made = perf::written_clock(known);
  EXPECT_NEAR(static_cast<double>(trace::perf_ns_from_tsc(made, 2'500'000'000)), 1e9, 2);
}

TEST(PerfWriteMade, HiddenCodeIsToldAgainAndForgottenCodeIsNot) {
  const std::vector<std::uint8_t> bytes(64, 0x90);
  perf::MadeCode made;
  made.put(0x1000, bytes);
  made.put(0x1040, bytes);
  ASSERT_EQ(made.take().size(), 1U);
  made.hidden(0x1000, 0x1010);
  made.hidden(0x1070, 0x2000);
  const auto again = made.take();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[1].address + again[1].size, 0x1080U);
  made.forget(0x1000, 0x1040);
  made.hidden(0x0, 0x1048);
  const auto rest = made.take();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].address, 0x1040U);
  EXPECT_EQ(rest[0].size, 8U);
}

}  // namespace
}  // namespace ptkit::formats
