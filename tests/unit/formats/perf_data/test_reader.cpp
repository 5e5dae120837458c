// perf.data: containers, streams and losses, processes, damage.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "formats/registry.h"
#include "unit/support/makers/perf_packed.h"
#include "unit/support/makers/perf_sample.h"
#include "unit/support/traces/missing.h"
#include "unit/support/traces/perf_reading.h"

namespace ptkit::formats {
namespace {

using test::Bytes;
using test::kEach;
using test::packed;
using test::SampleId;
using test::text;

class PerfData : public test::PerfReading {};

const std::string kStream = test::small_stream();

// A whole recording of one process on a CPU.
std::string one_cpu() {
  return test::auxtrace_info() + test::comm({}, "ls", true) +
         test::mmap2({.tsc = 100}, 0x400000, 0x1000, 0, "/nowhere/ls") + test::switched({.tsc = 200}, false) +
         test::aux({.tsc = 300}, 0, kStream.size(), 0) + test::auxtrace(0, kEach, 0, 0, kStream);
}

void expect_one_cpu(const trace::TraceBundle& bundle) {
  EXPECT_EQ(bundle.format, "perf.data");
  ASSERT_EQ(bundle.streams.size(), 1U);
  const trace::Stream& stream = bundle.streams[0];
  EXPECT_EQ(text(stream), kStream);
  EXPECT_EQ(stream.cpu, 0);
  EXPECT_TRUE(stream.losses.empty());
  ASSERT_EQ(stream.switches.size(), 1U);
  EXPECT_EQ(stream.switches[0].tsc, 200U);
  EXPECT_EQ(stream.switches[0].tid, 10);
  EXPECT_EQ(bundle.spaces.at(stream.switches[0].space).pid, 10);
  ASSERT_EQ(bundle.code.size(), 1U);
  EXPECT_EQ(bundle.code[0].address, 0x400000U);
  EXPECT_EQ(bundle.code[0].tsc_from, 100U);
  EXPECT_EQ(bundle.files.at(0).path, "/nowhere/ls");
  ASSERT_EQ(ptkit::test::missing_files(bundle).size(), 1U);
  EXPECT_EQ(ptkit::test::missing_files(bundle)[0].path, "/nowhere/ls");
  const trace::Configuration& configuration = bundle.configuration;
  EXPECT_TRUE(configuration.cpu.known);
  EXPECT_EQ(configuration.cpu.model, 142);
  EXPECT_EQ(configuration.clock.mtc_period, 3);
  EXPECT_EQ(configuration.clock.tsc_ctc_numerator, 84U);
  EXPECT_EQ(configuration.clock.max_nonturbo_ratio, 24U);
  EXPECT_EQ(configuration.clock.tsc_hz, 2'000'000'000U);
  EXPECT_EQ(configuration.rtit_ctl, 0xe709U);  // TraceEn, User, ToPA, MTCEn, TSCEn, BranchEn, MTCFreq 3
  ASSERT_EQ(bundle.threads.size(), 1U);
  EXPECT_EQ(bundle.threads[0].name, "ls");
}

TEST_F(PerfData, ReadsFiles) { expect_one_cpu(read(test::perf_file(one_cpu()))); }

TEST_F(PerfData, ReadsPipes) { expect_one_cpu(read(test::perf_pipe(one_cpu()))); }

TEST_F(PerfData, ReadsKernelTracing) {
  const auto bundle = read(test::perf_file(one_cpu(), test::kOsAndUser));
  EXPECT_EQ(bundle.configuration.rtit_ctl, 0xe70dU);
  EXPECT_TRUE(warns(bundle, WarningCode::KCORE_MISSING));
}

TEST_F(PerfData, UnpacksRecordsAcrossCompressedRecords) {
  const std::string sideband =
      test::comm({}, "ls", true) + test::mmap2({.tsc = 100}, 0x400000, 0x1000, 0, "/nowhere/ls") +
      test::switched({.tsc = 200}, false) + test::aux({.tsc = 300}, 0, kStream.size(), 0);
  for (const std::size_t step : {7U, 40U, 4000U}) {
    SCOPED_TRACE(step);
    for (const bool padded : {false, true}) {
      expect_one_cpu(read(test::perf_file(test::auxtrace_info() + packed(sideband, step, padded) +
                                          test::auxtrace(0, kEach, 0, 0, kStream))));
    }
  }
}

TEST_F(PerfData, LimitsTheRatioOfCompressedRecords) {
  const std::string zeros(std::size_t{64} << 20U, '\0');
  std::string room(ZSTD_compressBound(zeros.size()), '\0');
  room.resize(ZSTD_compress(room.data(), room.size(), zeros.data(), zeros.size(), 19));
  ASSERT_LT(room.size(), 60000U);
  std::string switches;
  while (switches.size() < zeros.size()) switches += test::switched({.tsc = 200}, false);
  std::string bomb(ZSTD_compressBound(switches.size()), '\0');
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), switches.data(), switches.size(), 3));
  ASSERT_LT(bomb.size(), 60000U);
  for (const auto& [one, code] : {std::pair(room, WarningCode::COMPRESSED_INVALID),
                                  std::pair(bomb, WarningCode::COMPRESSED_TOO_LARGE)}) {
    const auto bundle = read(test::perf_file(one_cpu() + test::record(81, 0, one)));
    EXPECT_EQ(bundle.streams.size(), 1U);
    EXPECT_TRUE(warns(bundle, code));
  }
}

TEST_F(PerfData, JoinsAuxChunksWithoutPadding) {
  // Ten bytes and then the rest: the first chunk is padded to sixteen.
  const std::string info = test::auxtrace_info();
  const auto bundle = read(test::perf_file(info + test::auxtrace(3, kEach, 1, 64, kStream.substr(0, 10)) +
                                           test::auxtrace(3, kEach, 1, 74, kStream.substr(10)) +
                                           test::auxtrace(4, kEach, 2, 0, kStream)));
  ASSERT_EQ(bundle.streams.size(), 2U);
  EXPECT_EQ(text(bundle.streams[0]).substr(0, kStream.size()), kStream);
  EXPECT_TRUE(bundle.streams[0].losses.empty());
  EXPECT_EQ(bundle.streams[0].cpu, 1);
  EXPECT_EQ(bundle.streams[1].cpu, 2);
}

TEST_F(PerfData, TakesTheLastChunksEndFromAuxRecords) {
  const std::string odd = kStream + "\x19";
  const auto bundle = read(test::perf_file(test::auxtrace_info() + test::aux({.cpu = 1}, 0, odd.size(), 0) +
                                           test::auxtrace(0, kEach, 1, 0, odd)));
  EXPECT_EQ(text(bundle.streams.at(0)), odd);
}

// The last AUX record was lost: the bytes after the one before are no padding.
TEST_F(PerfData, KeepsTraceAfterTheLastAuxRecord) {
  std::string all = kStream;
  all.append(16, '\x06');  // TNT
  all.resize((all.size() + 7) / 8 * 8);
  const auto bundle =
      read(test::perf_file(test::auxtrace_info() + test::aux({.cpu = 1}, 0, kStream.size(), 0) +
                           test::auxtrace(0, kEach, 1, 0, all)));
  EXPECT_EQ(text(bundle.streams.at(0)), all);
}

TEST_F(PerfData, PutsLossesByAuxRecords) {
  const std::string part(16, '\x19');
  const std::string info = test::auxtrace_info();
  const auto bundle =
      read(test::perf_file(info + test::aux({.cpu = 1}, 0, 16, 1) + test::aux({.cpu = 1}, 16, 16, 0) +
                           test::aux({.cpu = 2}, 0, 8, 1) + test::auxtrace(0, kEach, 1, 0, part) +
                           test::auxtrace(0, kEach, 1, 16, part) + test::auxtrace(0, kEach, 1, 132, part) +
                           test::aux({.cpu = 1}, 132, 16, 1)));
  const auto& losses = bundle.streams.at(0).losses;
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses[0].offset, 16U);
  EXPECT_EQ(losses[0].cause, base::Status::BUFFER_FULL);
  EXPECT_EQ(losses[1].offset, 32U);
  EXPECT_EQ(losses[1].lost_bytes, 100U);
  EXPECT_EQ(losses[2].offset, 48U);  // after the last byte
}

TEST_F(PerfData, CountsAReportedHoleOnce) {
  const std::string part(16, '\x19');
  const auto bundle =
      read(test::perf_file(test::auxtrace_info() + test::aux({.cpu = 1}, 0, 16, 1) +
                           test::aux({.cpu = 1}, 40, 16, 1 | 2) + test::auxtrace(0, kEach, 1, 0, part) +
                           test::auxtrace(0, kEach, 1, 40, part) + test::auxtrace(0, kEach, 1, 56, part)));
  const auto& losses = bundle.streams.at(0).losses;
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].offset, 16U);
  EXPECT_EQ(losses[0].cause, base::Status::BUFFER_FULL);
  EXPECT_EQ(losses[0].lost_bytes, 24U);
  EXPECT_EQ(losses[1].offset, 32U);
  EXPECT_EQ(losses[1].cause, base::Status::RING_WRAPPED);
}

// Flags as recorders on this kernel write them: test_perf.cpp of capture has the same of a live buffer.
TEST_F(PerfData, PutsLossesOfPartialAuxRecordsBeforeTheChunk) {
  const std::string part(16, '\x19');
  const auto bundle = read(test::perf_file(
      test::auxtrace_info() + test::aux({.cpu = 1}, 0, 8, 0) + test::aux({.cpu = 1}, 8, 8, 4) +
      test::aux({.cpu = 1}, 16, 8, 8) + test::aux({.cpu = 1}, 24, 8, 1 | 4) +
      test::auxtrace(0, kEach, 1, 0, part) + test::auxtrace(0, kEach, 1, 16, part)));
  std::vector<std::pair<std::uint64_t, base::Status>> losses;
  for (const trace::KnownLoss& loss : bundle.streams.at(0).losses)
    losses.emplace_back(loss.offset, loss.cause);
  const std::vector<std::pair<std::uint64_t, base::Status>> expected{{8, base::Status::NOT_TRACED},
                                                                     {16, base::Status::NOT_TRACED},
                                                                     {24, base::Status::NOT_TRACED},
                                                                     {32, base::Status::BUFFER_FULL}};
  EXPECT_EQ(losses, expected);
  EXPECT_TRUE(warns(bundle, WarningCode::AUX_PARTIAL, 2));
}

TEST_F(PerfData, JoinsSwitchOutAndSwitchIn) {
  const auto bundle = read(test::perf_file(
      test::auxtrace_info() + test::switched({.tid = 11, .tsc = 100}, false) +
      test::switched({.tid = 11, .tsc = 200}, true) + test::switched({.tid = 12, .tsc = 200}, false) +
      test::switched({.tid = 12, .tsc = 300}, true) + test::auxtrace(0, kEach, 0, 0, kStream)));
  const auto& switches = bundle.streams.at(0).switches;
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[1].tsc, 200U);
  EXPECT_EQ(switches[1].tid, 12);
  EXPECT_EQ(switches[2].tid, trace::kNoId);
}

TEST_F(PerfData, KnowsWhetherAThreadWasPreempted) {
  const auto bundle = read(test::perf_file(
      test::auxtrace_info() + test::switched({.tid = 11, .tsc = 100}, false) +
      test::switched({.tid = 11, .tsc = 200}, true, true) + test::switched({.tid = 12, .tsc = 200}, false) +
      test::switched({.tid = 12, .tsc = 300}, true) + test::switched({.tid = 0, .tsc = 310}, false) +
      test::switched({.tid = 0, .tsc = 400}, true, true) + test::switched({.tid = 11, .tsc = 402}, false) +
      test::auxtrace(0, kEach, 0, 0, kStream)));
  std::vector<trace::Departure> found;
  for (const trace::Switch& one : bundle.streams.at(0).switches) found.push_back(one.departure);
  using enum trace::Departure;
  // The switch in of another thread at the same time has what the switch out says.
  EXPECT_EQ(found, (std::vector<trace::Departure>{UNKNOWN, PREEMPTED, WAITS, UNKNOWN}));
}

TEST_F(PerfData, JoinsOverlappingSnapshots) {
  std::string ring;
  for (int i = 0; i < 6000; ++i)
    ring += {static_cast<char>(i * 7), static_cast<char>(i >> 3), '\x19', '\x02'};
  const auto chunk = [&](std::size_t begin, std::size_t end) {
    return test::auxtrace(0, kEach, 0, 0, ring.substr(begin, end - begin));
  };
  const auto bundle = read(
      test::perf_file(test::auxtrace_info(true) + chunk(0, 8000) + chunk(2000, 10000) + chunk(16000, 24000)));
  const trace::Stream& stream = bundle.streams.at(0);
  EXPECT_EQ(text(stream), ring.substr(0, 10000) + ring.substr(16000));
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 10000U);
  EXPECT_EQ(stream.losses[0].cause, base::Status::RING_WRAPPED);
}

// test_perf.cpp of capture has the same for a live ring. AUX records hold the offset of the next write.
TEST_F(PerfData, LocatesHolesOfSnapshots) {
  constexpr std::uint64_t kRing = 16384;
  constexpr std::uint64_t kPartial = 2 | 4;  // OVERWRITE, too
  std::string all;
  for (int i = 0; i < 8000; ++i) all += {static_cast<char>(i * 7), static_cast<char>(i >> 3), '\x19', '\x02'};
  for (const std::size_t at : {std::size_t{3000}, std::size_t{21000}}) all.replace(at, 16, kStream, 0, 16);
  const auto note = [&](std::uint64_t until, std::uint64_t flags) {
    return test::aux({}, until % kRing, kRing, flags);
  };
  const auto copy = [&](std::uint64_t begin, std::uint64_t end) {
    return test::auxtrace(0, kEach, 0, begin, all.substr(begin, end - begin));
  };
  const auto losses = [&](const std::string& records) {
    std::vector<std::pair<std::uint64_t, base::Status>> out;
    const auto bundle = read(test::perf_file(test::auxtrace_info(true) + records));
    for (const trace::KnownLoss& loss : bundle.streams.at(0).losses)
      out.emplace_back(loss.offset, loss.cause);
    return out;
  };
  using base::Status;
  using Losses = std::vector<std::pair<std::uint64_t, Status>>;
  // Within the first snapshot, and in the new bytes of the second one, which is padded.
  EXPECT_EQ(losses(note(3000, 2) + note(5000, kPartial) + note(8000, 2) + copy(0, 8000) +
                   note(9001, kPartial) + note(12001, 2 | 8) + copy(1000, 12001)),
            (Losses{{3000, Status::NOT_TRACED}, {8000, Status::NOT_TRACED}, {9001, Status::NOT_TRACED}}));
  // The ring wrapped: at a PSB, or before the oldest byte.
  EXPECT_EQ(losses(copy(0, 1000) + note(21000, 2) + note(22000, kPartial) + note(23000, 2) +
                   note(24000, kPartial) + copy(24000 - kRing, 24000)),
            (Losses{{1000, Status::RING_WRAPPED},
                    {1000, Status::NOT_TRACED},
                    {1000 + 21000 - (24000 - kRing), Status::NOT_TRACED}}));
  // Trace after the last snapshot is in none.
  EXPECT_EQ(losses(copy(0, 1000) + note(2000, kPartial)), Losses());
}

TEST_F(PerfData, FindsTheProcessOfThreads) {
  const SampleId thread{.pid = 10, .tid = 12, .tsc = 50};
  const auto bundle = read(test::perf_file(test::auxtrace_info() + test::fork(thread, 10, 10) +
                                           test::auxtrace(0, 12, kEach, 0, kStream)));
  EXPECT_EQ(bundle.streams.at(0).tid, 12);
  EXPECT_EQ(bundle.streams[0].pid, 10);
  EXPECT_EQ(bundle.spaces.at(bundle.streams[0].space).pid, 10);
  ASSERT_EQ(bundle.sideband.size(), 1U);
  EXPECT_EQ(bundle.sideband[0].kind, trace::SidebandKind::THREAD);
}

// A process forks. The child keeps the mappings until exec(). Its PID is reused later.
TEST_F(PerfData, TracksSpacesByTime) {
  const auto task = [](std::uint32_t pid, std::uint64_t tsc) {
    return SampleId{.pid = pid, .tid = pid, .tsc = tsc};
  };
  const auto bundle = read(test::perf_file(
      test::auxtrace_info() + test::mmap2(task(10, 0), 0x1000, 0x1000, 0, "/nowhere/a") +
      test::mmap2(task(10, 0), 0x9000, 0x1000, 0, "/nowhere/data", 1) +  // not executable
      test::switched(task(11, 310), false) + test::switched(task(11, 320), true) +
      test::fork(task(11, 100), 10, 10) + test::switched(task(11, 110), false) +
      test::comm(task(11, 200), "b", true) + test::mmap2(task(11, 210), 0x1000, 0x1000, 0, "/nowhere/b") +
      test::fork(task(11, 300), 10, 10) + test::auxtrace(0, kEach, 0, 0, kStream)));
  ASSERT_EQ(bundle.spaces.size(), 4U);
  ASSERT_EQ(bundle.code.size(), 4U);
  const auto expect_region = [&](std::size_t i, std::uint32_t space, std::uint64_t from, std::uint64_t to,
                                 const std::string& file) {
    const trace::CodeRegion& region = bundle.code.at(i);
    EXPECT_EQ(region.space, space) << i;
    EXPECT_EQ(region.tsc_from, from) << i;
    EXPECT_EQ(region.tsc_to, to) << i;
    EXPECT_EQ(bundle.files.at(static_cast<std::size_t>(region.file)).path, file) << i;
  };
  expect_region(0, 1, trace::kTscMin, trace::kTscMax, "/nowhere/a");
  expect_region(1, 2, 100, 200, "/nowhere/a");
  expect_region(2, 2, 210, trace::kTscMax, "/nowhere/b");
  expect_region(3, 3, 300, trace::kTscMax, "/nowhere/a");
  const auto& switches = bundle.streams.at(0).switches;
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0].space, 2U);
  EXPECT_EQ(switches[1].space, 3U);
  EXPECT_EQ(switches[2].tid, trace::kNoId);
}

TEST_F(PerfData, RefusesFilesWithoutTrace) {
  EXPECT_NE(failure(test::perf_file(test::comm({}, "ls", true)))
                .find("perf.data contains no Intel PT, BTS or LBR data (record with -e intel_pt//, "
                      "-e intel_bts// or -b)"),
            std::string::npos);
  EXPECT_NE(failure(test::perf_file(test::auxtrace_info())).find("contains no trace"), std::string::npos);
  std::string other_kind = test::auxtrace_info();
  other_kind[8] = 3;
  EXPECT_NE(failure(test::perf_file(other_kind)).find("another architecture"), std::string::npos);
  EXPECT_NE(failure(test::perf_file(test::record(70, 0, Bytes().add(std::uint64_t{2}).str())))
                .find("has a cut AUXTRACE_INFO record"),
            std::string::npos);
  std::string swapped = test::perf_file(one_cpu());
  std::reverse(swapped.begin(), swapped.begin() + 8);
  const auto other = open(scratch_.write("perf.data", swapped), {.format = "perf.data"});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.failure().detail.find("a big-endian machine"), std::string::npos);
}

TEST_F(PerfData, CountsUnknownAndMalformedRecords) {
  const auto bundle =
      read(test::perf_file(one_cpu() + test::event(23, 0, std::string(8, 'x'), {}) +
                           test::record(7, 0, std::string(8, '\0')) + test::record(10, 0, "") +
                           test::event(2, 0, Bytes().add(std::uint64_t{1}, std::uint64_t{5}).str(), {})));
  EXPECT_TRUE(warns(bundle, WarningCode::RECORD_TYPE_UNKNOWN, 1, 23));
  EXPECT_TRUE(warns(bundle, WarningCode::PERF_RECORDS_SHORT, 2));
  EXPECT_TRUE(warns(bundle, WarningCode::PERF_RECORDS_LOST, 5));
}

TEST_F(PerfData, ReadsRecordsOfNewerPerf) {
  const auto bundle = read(test::perf_file(one_cpu() + test::record(82, 0, "") + test::record(84, 0, "") +
                                           test::record(87, 0, "") + test::record(200, 0, "12345678")));
  expect_one_cpu(bundle);
  EXPECT_TRUE(warns(bundle, WarningCode::RECORD_TYPE_UNKNOWN, 1, 87));
  EXPECT_TRUE(warns(bundle, WarningCode::RECORD_TYPE_UNKNOWN, 1, 200));
  EXPECT_FALSE(warns(bundle, WarningCode::RECORD_TYPE_UNKNOWN, 1, 82));
  EXPECT_FALSE(warns(bundle, WarningCode::RECORD_TYPE_UNKNOWN, 1, 84));
}

// ---- event ids

std::string id_index(const std::vector<std::array<std::uint64_t, 4>>& entries,
                     const std::vector<std::uint64_t>& machines = {}) {
  Bytes body;
  body.add(static_cast<std::uint64_t>(entries.size()));
  for (const auto& [id, index, cpu, tid] : entries) body.add(id, index, cpu, tid);
  for (const std::uint64_t machine : machines) body.add(machine, std::uint64_t{0});
  return test::record(69, 0, body.str());
}

constexpr std::uint64_t kNone = ~std::uint64_t{0};

TEST_F(PerfData, FindsTheCpuOfSamplesByEventId) {
  // IDENTIFIER, TID, AUX: no CPU.
  const auto sample = [](std::uint64_t id, const std::string& trace) {
    return test::record(
        9, 2,
        Bytes()
            .add(id, std::uint32_t{10}, std::uint32_t{10}, static_cast<std::uint64_t>(trace.size()))
            .raw(trace)
            .str());
  };
  const std::uint64_t type = 1U << 1U | 1U << 16U | 1U << 20U;
  const std::string samples = sample(77, kStream) + sample(78, kStream) + sample(79, kStream);
  const std::string info = test::auxtrace_info();
  auto bundle = read(test::perf_file({{.sample_type = type}}, info + samples, {}));
  ASSERT_EQ(bundle.streams.size(), 1U);
  EXPECT_EQ(bundle.streams[0].tid, 10);
  bundle = read(test::perf_file(
      {{.sample_type = type}},
      info + id_index({{77, 0, 4, kNone}, {78, 1, 5, kNone}, {79, 2, kNone, 10}}) + samples, {}));
  ASSERT_EQ(bundle.streams.size(), 3U);
  EXPECT_EQ(bundle.streams[0].tid, 10);
  EXPECT_EQ(bundle.streams[0].cpu, trace::kNoId);
  EXPECT_EQ(bundle.streams[1].cpu, 4);
  EXPECT_EQ(bundle.streams[2].cpu, 5);
}

// perf inject --guest-data merges a virtual machine's records. PIDs of guest and host may be equal.
TEST_F(PerfData, SkipsRecordsOfVirtualMachines) {
  const auto of_guest = [](std::string record) {
    record[record.size() - 8] = 78;  // IDENTIFIER
    return record;
  };
  const auto bundle = read(test::perf_file(
      id_index({{77, 0, kNone, kNone}, {78, 1, 0, kNone}}, {0, 4321}) + one_cpu() +
      of_guest(test::comm({.tsc = 110}, "init", true)) + of_guest(test::switched({.tsc = 220}, false)) +
      of_guest(test::mmap2({.tsc = 120}, 0x400000, 0x1000, 0, "/nowhere/guest"))));
  expect_one_cpu(bundle);
  EXPECT_TRUE(warns(bundle, WarningCode::GUEST_RECORDS_SKIPPED, 3, 4321));
}

std::string event_desc(std::uint64_t id, const std::string& name) {
  const std::string padded = Bytes().text(name, 64).str();
  return Bytes()
      .add(std::uint32_t{1}, std::uint32_t{112})
      .raw(std::string(112, '\0'))
      .add(std::uint32_t{1}, static_cast<std::uint32_t>(padded.size()))
      .raw(padded)
      .add(id)
      .str();
}

TEST_F(PerfData, NamesEventsOfPebsRecords) {
  const auto counter = [](const SampleId& id, std::uint64_t number) {
    return test::event(21, 0, Bytes().add(number).str(), id);
  };
  std::string nameless = counter({.tsc = 130}, 3);
  nameless[nameless.size() - 8] = 0;
  const std::string records = one_cpu() + counter({.tsc = 100}, 2) + counter({.tsc = 110}, 2) +
                              counter({.tsc = 120, .cpu = 1}, 2) + nameless + test::record(21, 0, "");
  const auto bundle =
      read(test::perf_file({{}}, records, {{9, test::kCpuid}, {12, event_desc(77, "cycles:ppp")}}));
  const auto meta = nlohmann::json::parse(bundle.metadata);
  ASSERT_EQ(meta["pebs_events"].size(), 2U);
  const auto& first = meta["pebs_events"][0];
  EXPECT_EQ(first["event"], "cycles:ppp");
  EXPECT_EQ(first["counter"], 2);
  EXPECT_EQ(first["cpu"], 0);
  EXPECT_EQ(first["id"], 77);
  EXPECT_EQ(first["tsc"], 100);
  EXPECT_EQ(meta["pebs_events"][1]["cpu"], 1);
  EXPECT_TRUE(warns(bundle, WarningCode::PEBS_EVENT_UNKNOWN, 1));
  EXPECT_TRUE(warns(bundle, WarningCode::PERF_RECORDS_SHORT, 1));
  EXPECT_EQ(read(test::perf_file(one_cpu())).metadata.find("pebs_events"), std::string::npos);
}

TEST_F(PerfData, SurvivesCutIdTables) {
  EXPECT_TRUE(
      warns(read(test::perf_file(one_cpu() + test::record(69, 0, ""))), WarningCode::PERF_RECORDS_SHORT, 1));
  const std::string absurd = test::record(69, 0, Bytes().add(kNone, kNone).str());
  EXPECT_TRUE(warns(read(test::perf_file(one_cpu() + absurd)), WarningCode::PERF_RECORDS_SHORT, 1));
  const std::string names = event_desc(77, "cycles:ppp");
  for (std::size_t size = 0; size < names.size(); ++size)
    expect_one_cpu(read(test::perf_file({{}}, one_cpu(), {{9, test::kCpuid}, {12, names.substr(0, size)}})));
  // 2^32 - 1 numbers of an event with a name that is longer than the table.
  const std::string endless = Bytes()
                                  .add(std::uint32_t{1}, std::uint32_t{0})
                                  .add(~std::uint32_t{0}, ~std::uint32_t{0})
                                  .raw(std::string(64, '\0'))
                                  .str();
  expect_one_cpu(read(test::perf_file({{}}, one_cpu(), {{9, test::kCpuid}, {12, endless}})));
}

TEST_F(PerfData, ReportsAuxtraceErrors) {
  std::string guest = test::mmap2({.tsc = 100}, 0x1000, 0x1000, 0, "/nowhere/guest");
  guest[4] = 5;
  const std::string wrong =
      Bytes()
          .add(std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0})
          .text("Bad packet", 64)
          .str();
  const auto bundle =
      read(test::perf_file(one_cpu() + guest + test::record(72, 0, wrong) + test::record(72, 0, "")));
  EXPECT_TRUE(warns(bundle, WarningCode::GUEST_MAPPINGS_SKIPPED, 1));
  EXPECT_TRUE(warns(bundle, WarningCode::AUXTRACE_ERRORS, 2, "Bad packet"));
}

// --threads: data.N files with records only, each with its own zstd stream.
TEST_F(PerfData, ReadsRecordFilesOfPerfsThreads) {
  const std::string sideband =
      test::comm({}, "ls", true) + test::mmap2({.tsc = 100}, 0x400000, 0x1000, 0, "/nowhere/ls");
  const std::string ran = test::switched({.tsc = 200}, false) + test::aux({.tsc = 300}, 0, kStream.size(), 0);
  scratch_.write("folder/data", test::perf_file(test::auxtrace_info()));
  scratch_.write("folder/data.0", packed(sideband, 40) + test::auxtrace(0, kEach, 0, 0, kStream));
  scratch_.write("folder/data.1", packed(ran, 30));
  scratch_.write("folder/data.old", "nothing of this recording");
  auto bundle = open(scratch_.at("folder"), {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  expect_one_cpu(bundle.value());
  scratch_.write("folder/data.1", ran.substr(0, ran.size() - 1));
  bundle = open(scratch_.at("folder"), {});
  ASSERT_TRUE(bundle.ok());
  EXPECT_TRUE(
      warns_at(bundle.value().warnings, scratch_.at("folder/data.1"), WarningCode::PERF_RECORD_CUT, 48));
}

TEST_F(PerfData, KernelsCodeThatCannotBeReadIsNamed) {
  scratch_.write("folder/data", test::perf_file(one_cpu(), test::kOsAndUser));
  scratch_.write("folder/kcore_dir/kcore", "no ELF file");
  const auto bundle = open(scratch_.at("folder"), {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_TRUE(warns(bundle.value(), WarningCode::KERNEL_CODE_MISSING));
  EXPECT_FALSE(warns(bundle.value(), WarningCode::KCORE_MISSING));
}

TEST_F(PerfData, LimitsCopiesOfSwitches) {
  std::string records = test::auxtrace_info() + test::switched({.tsc = 200}, false);
  for (std::uint32_t number = 0; number < 100; ++number)
    records += test::auxtrace(number, kEach, 0, 0, kStream);
  const auto bundle = read(test::perf_file(records));
  ASSERT_EQ(bundle.streams.size(), 100U);
  std::size_t switches = 0;
  for (const trace::Stream& stream : bundle.streams) switches += stream.switches.size();
  EXPECT_EQ(switches, 16U);
}

// Cut and changed files: no crash, and earlier data stays.
TEST_F(PerfData, SurvivesCutFiles) {
  const std::string whole = test::perf_file(one_cpu());
  const std::size_t records_end = whole.size() - 16 - test::text_feature("GenuineIntel,6,142,10").size();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const auto bundle = open(scratch_.write("perf.data", whole.substr(0, size)), {.format = "perf.data"});
    if (size < records_end - kStream.size()) continue;
    ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
    EXPECT_EQ(bundle.value().threads.size(), 1U);
    EXPECT_EQ(warns(bundle.value(), WarningCode::PERF_CUT), size < records_end);
  }
}

TEST_F(PerfData, SurvivesChangedBytes) {
  const std::string whole = test::perf_file(one_cpu());
  for (std::size_t at = 8; at < whole.size(); ++at) {
    for (const char value : {'\x01', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = value;
      const auto bundle = open(scratch_.write("perf.data", damaged), {});
      if (bundle.ok()) {
        EXPECT_LE(bundle.value().streams.size(), 1U) << at;
      } else {
        EXPECT_FALSE(bundle.failure().detail.empty()) << at;
      }
    }
  }
}

}  // namespace
}  // namespace ptkit::formats
