// Written perf.data: its bytes, and the result of reading it.
#include <gtest/gtest.h>

#include <algorithm>

#include "code/image/elf/elf.h"
#include "code/image/files/code_file.h"
#include "formats/perf_event/record.h"
#include "formats/perf_export/jit_elf.h"
#include "formats/perf_export/records.h"
#include "trace/clock.h"
#include "unit/support/warned.h"
#include "writing.h"

namespace ptkit::formats {
namespace {

using test::buffer;
using test::region;
using test::small_bundle;
using test::text;
using test::trace_of;

class PerfWrite : public test::PerfWriting {};

TEST_F(PerfWrite, WritesHeaderAndFeatures) {
  const PerfDataWritten written = write(small_bundle());
  const std::string bytes = contents();
  EXPECT_EQ(written.bytes, bytes.size());
  EXPECT_FALSE(written.is_folder);
  EXPECT_TRUE(written.code_folder.empty());
  EXPECT_EQ(bytes.substr(0, 8), "PERFILE2");
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  EXPECT_EQ(base::load_le<8>(from + 8), 104U);
  EXPECT_EQ(base::load_le<8>(from + 16), 144U);  // attribute, offset and size of its ids
  const std::uint64_t attr = base::load_le<8>(from + 24);
  EXPECT_EQ(base::load_le<4>(from + attr), 8U);
  EXPECT_EQ(base::load_le<4>(from + attr + 4), 128U);
  EXPECT_EQ(base::load_le<8>(from + attr + 8), 0x2401U);  // pt, tsc, branch
  // exclude_kernel, not exclude_user.
  EXPECT_EQ(base::load_le<8>(from + attr + 40) >> 4U & 3U, 2U);
  const std::uint64_t ids = base::load_le<8>(from + attr + 128);
  EXPECT_EQ(base::load_le<8>(from + ids), perf::kEventId);
  // Features follow the data and end with the file. The index has each AUXTRACE record.
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
      const std::uint64_t offset = base::load_le<8>(index + 8);
      EXPECT_EQ(base::load_le<4>(from + offset), 71U);
      EXPECT_EQ(base::load_le<8>(index + 16), 48U);
      EXPECT_EQ(base::load_le<2>(from + offset + 6), 48U);
    }
    at += 16;
  }
  EXPECT_NE(bitmap >> 18U & 1U, 0U);
  EXPECT_EQ(end, bytes.size());
}

TEST_F(PerfWrite, ReadsBackEqual) {
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
  clock.time_cycles = 77;
  clock.time_mask = 0xffff'ffff'ffff;
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
  EXPECT_EQ(found.clock.time_cycles, clock.time_cycles);
  EXPECT_EQ(found.clock.time_mask, clock.time_mask);
  ASSERT_EQ(back.threads.size(), 1U);
  EXPECT_EQ(back.threads[0].name, "main");
  for (const char* word : {"\"a.out\"", "\"x y\"", "\"6.1\"", "\"6.1.0\"", "\"host\""})
    EXPECT_NE(back.metadata.find(word), std::string::npos) << word << " " << back.metadata;
}

TEST_F(PerfWrite, WritesTheKindOfIpPayloads) {
  trace::TraceBundle bundle = small_bundle();
  for (const auto payloads :
       {trace::IpPayloads::UNKNOWN, trace::IpPayloads::LINEAR, trace::IpPayloads::EFFECTIVE}) {
    bundle.configuration.ip_payloads = payloads;
    EXPECT_EQ(write_and_read(bundle).configuration.ip_payloads, payloads);
  }
}

// perf crashes without these: docs/export.md.
TEST_F(PerfWrite, WritesRatioAndReferenceTime) {
  trace::TraceBundle bundle = small_bundle();
  static_cast<void>(write(bundle));
  EXPECT_EQ(base::load_le<8>(records(perf::AUXTRACE).at(0).body.data() + 16), 5U);
  bundle.streams[0].data = buffer(test::small_stream());
  static_cast<void>(write(bundle));
  EXPECT_EQ(base::load_le<8>(records(perf::AUXTRACE).at(0).body.data() + 16), 1U);
  const auto ratio = [&](std::uint64_t hz) {
    bundle.configuration.clock.tsc_hz = hz;
    return write_and_read(bundle).configuration.clock.max_nonturbo_ratio;
  };
  EXPECT_EQ(ratio(2'400'000'000), 0);
  EXPECT_EQ(ratio(51'000'000), 0);
  EXPECT_EQ(ratio(40'000'000), 1);
  bundle.configuration.clock.max_nonturbo_ratio = 7;
  EXPECT_EQ(ratio(40'000'000), 7);
}

TEST_F(PerfWrite, SeparatesStreamsOfOneThread) {
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

TEST_F(PerfWrite, WritesLosses) {
  using base::Status;
  trace::TraceBundle bundle = small_bundle();
  std::string all;
  std::vector<trace::KnownLoss>& losses = bundle.streams[0].losses;
  // At the beginning; of each kind; after chunks of every size modulo eight; after the last byte.
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
    // The next chunk's AUX offset shows the number of lost bytes.
    if (losses[i].offset == all.size()) continue;
    EXPECT_EQ(back.streams[0].losses[i].lost_bytes, losses[i].lost_bytes);
  }
}

// perf's decoder continues across a loss unless it finds an OVF, and decodes bytes before the next PSB.
TEST_F(PerfWrite, WritesAnOverflowAfterALoss) {
  for (std::size_t size = 0; size < 8; ++size) {
    trace::TraceBundle bundle = small_bundle();
    const std::string first = trace_of(1, size);
    bundle.streams[0].data = buffer(first + "\x71\x01\x02" + trace_of(2, 0));
    bundle.streams[0].losses.push_back({first.size(), base::Status::BUFFER_FULL, 0});
    static_cast<void>(write(bundle));
    const auto chunks = records(perf::AUXTRACE);
    ASSERT_EQ(chunks.size(), 2U);
    const base::Bytes payload = chunks[0].payload;
    EXPECT_EQ(payload.size() % 8, 0U);
    const auto padding = payload.subspan(first.size());
    EXPECT_GE(padding.size(), 11U);
    EXPECT_LE(padding.size(), 18U);
    EXPECT_TRUE(std::ranges::all_of(padding.first(padding.size() - 2), [](auto byte) { return byte == 0; }));
    EXPECT_EQ(padding[padding.size() - 2], 0x02);
    EXPECT_EQ(padding[padding.size() - 1], 0xf3);
    const base::Bytes second = chunks[1].payload;
    EXPECT_TRUE(std::ranges::all_of(second.first(3), [](auto byte) { return byte == 0; }));
    EXPECT_EQ(second[3], 0x02);
  }
}

// After an OVF perf takes tracing as disabled, whatever IP the PSB+ has.
TEST_F(PerfWrite, EnablesTracingAfterAnOverflow) {
  const std::string ip("\x10\x32\x54\x76\x98\xba\x00\x00", 8);
  std::string psb;
  for (int i = 0; i < 8; ++i) psb += "\x02\x82";
  for (const std::size_t unread : {std::size_t{0}, std::size_t{2}}) {  // bytes before the PSB
    trace::TraceBundle bundle = small_bundle();
    const std::string after = psb + "\xdd" + ip + "\x02\x23";
    bundle.streams[0].data = buffer(trace_of(1, 0) + std::string(unread, '\x71') + after);
    bundle.streams[0].losses.push_back({trace_of(1, 0).size(), base::Status::BUFFER_FULL, 0});
    static_cast<void>(write(bundle));
    const auto chunks = records(perf::AUXTRACE);
    ASSERT_EQ(chunks.size(), 2U);
    const base::Bytes payload = chunks[0].payload;
    EXPECT_EQ(payload.size() % 8, 0U);
    const base::Bytes padding = payload.last(11);
    EXPECT_EQ(std::string(padding.begin(), padding.end()), "\x02\xf3\xd1" + ip);
    const trace::TraceBundle back = write_and_read(bundle);
    EXPECT_EQ(text(back.streams[0].data), trace_of(1, 0) + std::string(unread, '\0') + after);
    EXPECT_EQ(back.streams[0].losses.size(), 1U);
  }
}

TEST_F(PerfWrite, WritesAGuestWithoutNonRootPips) {
  const std::string guest = "\x02\x43\x01\x4a\xee\x01" + std::string(2, '\0');
  const std::string host = "\x02\x43" + std::string(1, '\0') + "\x4a\xee\x01" + std::string(2, '\0');
  // Bytes within another packet that look like a PIP stay.
  const std::string other = "\x19\x02\x43\x01" + std::string(4, '\0');
  trace::TraceBundle bundle = small_bundle();
  bundle.streams[0].data = buffer(trace_of(1, 0) + other + guest + "\xd9" + trace_of(2, 0) + guest);
  EXPECT_EQ(text(write_and_read(bundle).streams.at(0).data),
            trace_of(1, 0) + other + host + "\xd9" + trace_of(2, 0) + host);
  EXPECT_TRUE(warns(write(bundle).notes, WarningCode::EXPORT_GUEST_AS_HOST));
  const std::string both = trace_of(1, 0) + guest + host;
  bundle.streams[0].data = buffer(both);
  EXPECT_EQ(text(write_and_read(bundle).streams.at(0).data), both);
}

TEST_F(PerfWrite, SplitsLongStreamsBeforePsbs) {
  trace::TraceBundle bundle = small_bundle();
  constexpr std::size_t kApart = 100'003;  // bytes; so that chunks have all sizes modulo eight
  std::string all;
  while (all.size() < std::size_t{20} << 20U) all += trace_of(1, kApart);
  bundle.streams[0].data = buffer(all);
  const trace::TraceBundle back = write_and_read(bundle);
  EXPECT_TRUE(text(back.streams.at(0).data) == all);
  EXPECT_TRUE(back.streams[0].losses.empty());
  const auto chunks = records(perf::AUXTRACE);
  ASSERT_EQ(chunks.size(), 3U);
  const std::string psb = trace_of(1, 0).substr(0, 16);
  for (const auto& chunk : chunks)
    EXPECT_EQ(std::string(chunk.payload.begin(), chunk.payload.begin() + 16), psb);
}

TEST_F(PerfWrite, KeepsStreamsWithoutPsbsInOneChunk) {
  trace::TraceBundle bundle = small_bundle();
  const std::string all = trace_of(1, (std::size_t{20} << 20U) + 5);
  bundle.streams[0].data = buffer(all);
  EXPECT_TRUE(text(write_and_read(bundle).streams.at(0).data) == all);
  EXPECT_EQ(records(perf::AUXTRACE).size(), 1U);
}

TEST_F(PerfWrite, WritesSwitchesOfACpu) {
  trace::TraceBundle bundle = small_bundle();
  bundle.spaces.push_back({.pid = 20});
  trace::Stream& stream = bundle.streams[0];
  stream.cpu = 3;
  stream.pid = stream.tid = trace::kNoId;
  stream.space = trace::kAnySpace;
  stream.switches = {{100, 10, 11, 1}, {200, 20, 20, 2}, {300}, {400, 10, 11, 1}};
  stream.switches[1].departure = trace::Departure::PREEMPTED;
  stream.switches[2].departure = trace::Departure::WAITS;
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
  EXPECT_EQ(found[1].departure, trace::Departure::PREEMPTED);
  EXPECT_EQ(found[2].departure, trace::Departure::WAITS);
}

// perf looks up context switches by CPU.
TEST_F(PerfWrite, WritesSwitchesWithoutACpuToAFreeCpu) {
  trace::TraceBundle bundle = small_bundle();
  bundle.spaces.push_back({.pid = 20});
  bundle.streams.push_back(bundle.streams[0]);
  bundle.streams[0].cpu = 3;
  trace::Stream& stream = bundle.streams[1];
  stream.name = "unit 1";
  stream.pid = stream.tid = trace::kNoId;
  stream.space = trace::kAnySpace;
  stream.switches = {{100, 10, 11, 1}, {200, 20, 20, 2}, {300}, {400, 10, 11, 1}};
  const PerfDataWritten written = write(bundle);
  EXPECT_TRUE(warns_at(written.notes, "Stream 'unit 1'", WarningCode::EXPORT_STREAM_WITHOUT_CPU, 4));
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.streams.size(), 2U);
  EXPECT_EQ(back.streams[1].cpu, 4);
  ASSERT_EQ(back.streams[1].switches.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(back.streams[1].switches[i].tid, stream.switches[i].tid);
}

// If all switches name one thread, the stream belongs to it.
TEST_F(PerfWrite, AssignsSwitchesOfOneThreadToIt) {
  trace::TraceBundle bundle = small_bundle();
  trace::Stream& stream = bundle.streams[0];
  stream.pid = stream.tid = trace::kNoId;
  stream.space = trace::kAnySpace;
  stream.switches = {{100, 10, 11, 1}, {300}, {400, 10, 11, 1}};
  const PerfDataWritten written = write(bundle);
  EXPECT_FALSE(warns(written.notes, WarningCode::EXPORT_STREAM_WITHOUT_CPU));
  const trace::TraceBundle back = write_and_read(bundle);
  EXPECT_EQ(back.streams.at(0).cpu, trace::kNoId);
  EXPECT_EQ(back.streams[0].tid, 11);
  EXPECT_EQ(back.streams[0].pid, 10);
  // No switch has a thread.
  stream.switches = {{100}, {200}};
  EXPECT_TRUE(warns(write(bundle).notes, WarningCode::EXPORT_STREAM_WITHOUT_TID, 1));
}

TEST_F(PerfWrite, WritesForksAndExits) {
  using trace::SidebandKind;
  trace::TraceBundle bundle = small_bundle();
  bundle.spaces.push_back({.pid = 20});
  const auto add = [&](SidebandKind kind, std::uint64_t tsc, std::int64_t value) {
    trace::Sideband record;
    record.kind = kind;
    record.tsc = tsc;
    record.pid = record.tid = 20;
    record.value = value;
    bundle.sideband.push_back(record);
  };
  add(SidebandKind::PROCESS, 100, 0);
  bundle.sideband.back().parent = 10;
  add(SidebandKind::EXEC, 200, 0);
  bundle.sideband.back().text = "/usr/bin/a-name-that-is-too-long";
  add(SidebandKind::SIGNAL, 250, 9);
  add(SidebandKind::EXIT, 300, 137);
  const PerfDataWritten written = write(bundle);
  EXPECT_TRUE(warns(written.notes, WarningCode::EXPORT_SIGNALS, 1));
  trace::TraceBundle back = write_and_read(bundle);
  std::erase_if(back.sideband, [](const trace::Sideband& record) { return record.pid != 20; });
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

// exec() makes a new space, which is used a little before its record.
TEST_F(PerfWrite, MatchesSpacesOfACpuToForksAndExecs) {
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

// A recording by perf has one space for a process. exec() ends its code, which the same code may follow.
TEST_F(PerfWrite, KeepsCodeFromBeforeAnExecInOneSpace) {
  using trace::SidebandKind;
  for (const bool is_late : {false, true}) {
    trace::TraceBundle bundle = small_bundle();
    bundle.spaces = {{}, {.pid = 20}};
    for (const auto& [kind, tsc] : {std::pair(SidebandKind::PROCESS, 100U), {SidebandKind::EXEC, 300U}}) {
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
    stream.switches = {{is_late ? 290U : 110U, 20, 20, 1}};
    bundle.code = {region(0x1000, "abcd"), region(0x2000, "same"), region(0x1000, "efgh"),
                   region(0x2000, "same")};
    for (std::size_t i = 0; i < bundle.code.size(); ++i) {
      bundle.code[i].space = 1;
      (i < 2 ? bundle.code[i].tsc_to : bundle.code[i].tsc_from) = 300;
    }
    const trace::TraceBundle back = write_and_read(bundle);
    std::vector<std::string> found;
    for (const trace::CodeRegion& one : back.code) {
      const std::string end = one.tsc_to == trace::kTscMax ? "" : std::to_string(one.tsc_to);
      found.push_back(text(one.bytes) + " " + std::to_string(one.tsc_from) + ".." + end);
    }
    std::ranges::sort(found);
    EXPECT_EQ(found,
              (std::vector<std::string>{"abcd 100..300", "efgh 300..", "same 100..300", "same 300.."}));
  }
}

// perf's filters use files and offsets; filters of the kernel have no file.
TEST_F(PerfWrite, WritesAddressRangesAsFilters) {
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"/gone/a.so", std::string(40, 'a'), {}, {}});
  bundle.code = {region(0x7000, "abcdefgh", 0, 0, 0x2000), region(0x9000, "code")};
  using trace::RangeKind;
  bundle.configuration.ranges = {{{RangeKind::FILTER, 0x7002, 0x9001},
                                  {RangeKind::TRACE_STOP, 0x7006, 0x7006},
                                  {RangeKind::OFF, 0x7000, 0x7008},
                                  {RangeKind::FILTER, 0xffffffff81000000, 0xffffffff81000fff}}};
  EXPECT_FALSE(warns(write(bundle).notes, WarningCode::EXPORT_FILTER));
  const std::string expected =
      "filter 0xffffffff81000000/0x1000,filter 0x1000/0x2@code-10-1,filter 0x2002/0x6@/gone/a.so,"
      "tracestop 0x2006/0x1@/gone/a.so";
  EXPECT_NE(write_and_read(bundle).metadata.find("\"filter\":\"" + expected + "\""), std::string::npos);
}

TEST_F(PerfWrite, NotesWhatPerfDataCannotHold) {
  trace::TraceBundle bundle = small_bundle();
  EXPECT_TRUE(warns(write(bundle).notes, WarningCode::EXPORT_TSC_AS_NS));
  EXPECT_EQ(write(bundle).notes.size(), 1U);
  bundle.configuration.rtit_ctl_known = false;
  bundle.configuration.clock.tsc_hz = 2'000'000'000;
  bundle.metadata = R"({"backend": "emulator", "instructions": 7})";
  bundle.spaces.push_back({});
  bundle.code = {region(0x7000, "abcd")};
  bundle.code[0].space = 2;
  const std::vector<trace::Warning> notes = write(bundle).notes;
  EXPECT_TRUE(warns(notes, WarningCode::EXPORT_CLOCK_UNKNOWN));
  EXPECT_TRUE(warns(notes, WarningCode::EXPORT_CONFIG_UNKNOWN));
  EXPECT_TRUE(warns(notes, WarningCode::EXPORT_METADATA, "instructions"));
  EXPECT_TRUE(warns(notes, WarningCode::EXPORT_SPACES_UNUSED, 1));
}

TEST_F(PerfWrite, NotesFiltersThatCannotBeWritten) {
  trace::TraceBundle bundle = small_bundle();
  const auto said = [&] { return warns(write(bundle).notes, WarningCode::EXPORT_FILTER); };
  EXPECT_FALSE(said());
  bundle.configuration.ranges[1] = {trace::RangeKind::FILTER, 0x1000, 0x1fff};
  EXPECT_TRUE(said());  // no code is known there
  bundle.code = {region(0x1000, "abcd")};
  EXPECT_FALSE(said());
  // A blank would end the file's name.
  bundle.files.push_back({"/gone/a b", std::string(40, 'a'), {}, {}});
  bundle.code.push_back(region(0x1010, "abcd", 0, 0, 0x2000));
  EXPECT_TRUE(said());
}

TEST_F(PerfWrite, SaysThatThereWasNoFilterOnlyWhereThatIsKnown) {
  trace::TraceBundle bundle = small_bundle();
  EXPECT_FALSE(write_and_read(bundle).configuration.ranges_known);
  bundle.configuration.ranges_known = true;
  EXPECT_TRUE(write_and_read(bundle).configuration.ranges_known);
  bundle.configuration.ranges[0] = {trace::RangeKind::FILTER, 0x1000, 0x1fff};  // no code is known there
  EXPECT_FALSE(write_and_read(bundle).configuration.ranges_known);
}

TEST_F(PerfWrite, WritesJitCode) {
  trace::TraceBundle bundle = small_bundle();
  // Two versions at one address; the second one includes the bytes before it.
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
  EXPECT_EQ(code::image::elf_build_id(back.files[0].contents.bytes()), back.files[0].build_id);
}

TEST_F(PerfWrite, WritesCodeOfADeletedFile) {
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
  const auto symbols = code::image::read_symbols(back.files[0].contents.bytes());
  ASSERT_EQ(symbols.size(), 1U);
  EXPECT_EQ(symbols[0].name, "work");
  EXPECT_EQ(symbols[0].file_offset, 0x2002U);
  // The feature BUILD_ID has both files.
  const std::string table = std::string("\xff\xff\xff\xff", 4) + std::string(20, '\xaa') +
                            std::string("\x14\0\0\0", 4) + "/gone/a.so" + '\0';
  EXPECT_NE(contents().find(table), std::string::npos);
}

TEST_F(PerfWrite, WritesCodeInTheRangeOfAnElfHeader) {
  trace::TraceBundle bundle = small_bundle();
  bundle.files.push_back({"/memfd:code (deleted)", "", {}, {}});
  bundle.code = {region(0x7000, "abcd", 0, 0, 0)};
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.code.size(), 1U);
  EXPECT_EQ(text(back.code[0].bytes), "abcd");
}

TEST_F(PerfWrite, WritesAFolderForKernelCode) {
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
  EXPECT_EQ(text(back.code[0].bytes), "abCDefghijkl");  // the last bytes
  EXPECT_EQ(back.code[1].address, kKernel + 0x5000);
  EXPECT_EQ(text(back.code[1].bytes), "module");
  const auto& symbols = back.files.at(0).symbols;
  ASSERT_EQ(symbols.size(), 2U);
  EXPECT_EQ(symbols[1].name, "work");
  // A second write replaces the folder that ptkit wrote.
  EXPECT_TRUE(write(bundle).is_folder);
}

// Shells append a slash to folders. The output's paths have none.
TEST_F(PerfWrite, IgnoresASlashAtTheEnd) {
  trace::TraceBundle bundle = small_bundle();
  bundle.code = {region(0x1000, "abcd"), region(0xffffffff81000000, "kernel")};
  bundle.code[1].space = trace::kAnySpace;
  const auto written = write_perf_data(bundle, path() + "//", {});
  ASSERT_TRUE(written.ok()) << written.failure().detail;
  EXPECT_EQ(written.value().code_folder, path() + ".debug");
  EXPECT_TRUE(std::filesystem::exists(path() + ".debug/.build-id"));
  const auto back = open(path() + "/", {});
  ASSERT_TRUE(back.ok()) << back.failure().detail;
  ASSERT_EQ(back.value().code.size(), 2U);
  EXPECT_EQ(text(back.value().code[1].bytes), "abcd");
}

// ---- clocks

TEST(PerfWriteClock, ConvertsTimesBackUnchanged) {
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

// A guest's perf clock may begin seconds after its TSC.
TEST(PerfWriteClock, IsZeroBeforePerfClockBegan) {
  trace::Clock clock;
  clock.perf_time_known = true;
  clock.time_mult = 1;
  clock.time_zero = std::uint64_t{0} - 5000;
  const perf::Records records(clock);
  EXPECT_EQ(records.ns(1), 0U);
  EXPECT_EQ(records.ns(4999), 0U);
  EXPECT_EQ(records.ns(5001), 1U);
}

TEST(PerfWriteClock, MakesAConversionForUnknownClocks) {
  trace::Clock ticks = perf::written_clock({});
  EXPECT_EQ(ticks.time_mult, 1U);
  EXPECT_EQ(ticks.time_shift, 0U);
  trace::Clock known;
  known.tsc_hz = 2'500'000'000;
  const trace::Clock written = perf::written_clock(known);
  EXPECT_NEAR(static_cast<double>(trace::perf_ns_from_tsc(written, 2'500'000'000)), 1e9, 2);
}

// Code that is covered and mapped again a thousand times is in the file once.
TEST(JitElf, StoresUnchangedCodeOnce) {
  std::vector<std::uint8_t> bytes(8192);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  perf::JitElf jit;
  jit.put(0x1000, bytes);
  const std::uint64_t first = jit.take_changes().at(0).offset;
  const std::vector<std::uint8_t> other(16, 0xcc);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    jit.remap(0x1400 + i, 0x2000 + i);
    const auto again = jit.take_changes();
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].address, 0x1300 + i);  // with the bytes before it
    EXPECT_EQ(again[0].offset, first + 0x300 + i);
  }
  // Changed bytes get another offset.
  jit.put(0x1800, other);
  const std::uint64_t changed = jit.take_changes().at(0).offset;
  jit.remap(0x1800, 0x1808);
  EXPECT_EQ(jit.take_changes().at(0).offset, changed);
  jit.remap(0x1000, 0x3000);
  EXPECT_NE(jit.take_changes().at(0).offset, first);
  jit.remap(0x1000, 0x3000);
  static_cast<void>(jit.take_changes());
  const std::vector<std::uint8_t> file = jit.release();
  EXPECT_LT(file.size(), 3 * bytes.size());
}

TEST(JitElf, RemapsCoveredCodeButNotForgottenCode) {
  const std::vector<std::uint8_t> bytes(64, 0x90);
  perf::JitElf jit;
  jit.put(0x1000, bytes);
  jit.put(0x1040, bytes);
  ASSERT_EQ(jit.take_changes().size(), 1U);
  jit.remap(0x1000, 0x1010);
  jit.remap(0x1070, 0x2000);
  const auto again = jit.take_changes();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[1].address + again[1].size, 0x1080U);
  jit.forget(0x1000, 0x1040);
  jit.remap(0x0, 0x1048);
  const auto rest = jit.take_changes();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].address, 0x1040U);
  EXPECT_EQ(rest[0].size, 8U);
}

}  // namespace
}  // namespace ptkit::formats
