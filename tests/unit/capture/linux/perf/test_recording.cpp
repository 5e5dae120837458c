// The perf back end with a fake kernel that behaves as Linux does.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "recording.h"

namespace ptkit::capture::test {
namespace {

namespace perf = formats::perf;

// The recorded program is this test program: it continues until the recording has ended.
constexpr const char* kWaitsFor = "PTKIT_TEST_WAITS_FOR";
[[maybe_unused]] const bool has_waited = [] {
  const char* const path = std::getenv(kWaitsFor);
  if (path == nullptr) return false;
  for (int i = 0; i < 3000 && !std::filesystem::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!std::filesystem::exists(path)) ::_exit(1);
  return true;
}();

class PerfBackendTest : public PerfRecording {
 protected:
  base::Result<RecordResult> record_detached_program() {
    const std::string ended = path_ + ".ended";
    options_.argv = {std::filesystem::read_symlink("/proc/self/exe"), "--gtest_list_tests"};
    options_.quiet = true;
    kernel_.on_end = [&] { std::ofstream(ended) << "ended"; };
    ::setenv(kWaitsFor, ended.c_str(), 1);
    auto result = record();
    ::unsetenv(kWaitsFor);
    std::filesystem::remove(ended);
    return result;
  }
};
using PerfAux = PerfBackendTest;
using PerfErrors = PerfBackendTest;
using PerfEvents = PerfBackendTest;
using PerfOptions = PerfBackendTest;
using PerfSideband = PerfBackendTest;
using PerfTriggers = PerfBackendTest;

Bytes numbered(std::uint64_t from, std::uint64_t count) {
  Bytes out(count);
  for (std::uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>(((from + i) * 2654435761U >> 13U) | 1U);
  return out;
}

// ---- AUX data

TEST_F(PerfAux, EndsAtTimeLimit) {
  options_.seconds = std::chrono::milliseconds(20);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
}

TEST_F(PerfAux, WrapsAndDrains) {
  options_.buffer = 100'000;  // becomes 128 KiB
  Bytes expected;
  for (std::uint64_t i = 0; i < 12; ++i) {
    kernel_.script.emplace_back([&, i](FakeKernel& kernel) {
      const Bytes more = numbered(i * 7, 50'001);
      kernel.write(1, more);
      append(expected, more);
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_FALSE(result.value().limited);
  EXPECT_EQ(kernel_.buffer(1).trace.size(), 128U * 1024);
  EXPECT_FALSE(kernel_.buffer(1).overwrite);
  const trace::TraceBundle bundle = read();
  ASSERT_EQ(bundle.streams.size(), 2U);
  EXPECT_EQ(data_of(bundle.streams[0]), Bytes());
  EXPECT_EQ(data_of(bundle.streams[1]), expected);
  EXPECT_EQ(bundle.streams[1].cpu, 1);
  EXPECT_TRUE(bundle.streams[1].losses.empty());
  EXPECT_EQ(result.value().trace_bytes, expected.size());
  EXPECT_TRUE(result.value().warnings.empty());
  EXPECT_EQ(kernel_.buffer(1).page().aux_tail, expected.size());
  EXPECT_TRUE(bundle.configuration.rtit_ctl_known);
  EXPECT_EQ(bundle.configuration.clock.tsc_ctc_numerator, 250U);
  EXPECT_EQ(bundle.configuration.clock.max_nonturbo_ratio, 30);
  EXPECT_EQ(bundle.configuration.clock.mtc_period, 3);
}

TEST_F(PerfOptions, ReadsLipFromCaps) {
  using trace::IpPayloads;
  options_.seconds = std::chrono::milliseconds(1);
  const auto recorded = [&] {
    kernel_.next = 0;
    kernel_.script.assign(1, [](FakeKernel& kernel) { kernel.write(0, numbered(0, 100)); });
    EXPECT_TRUE(record().ok());
    return read().configuration.ip_payloads;
  };
  EXPECT_EQ(recorded(), IpPayloads::UNKNOWN);
  kernel_.files[kPtFolder + "caps/payloads_lip"] = "0";
  EXPECT_EQ(recorded(), IpPayloads::EFFECTIVE);
  kernel_.files[kPtFolder + "caps/payloads_lip"] = "1";
  EXPECT_EQ(recorded(), IpPayloads::LINEAR);
}

TEST_F(PerfAux, PutsLossesByAuxFlags) {
  options_.buffer = 64 * 1024;
  kernel_.script.emplace_back([](FakeKernel& kernel) { kernel.write(0, numbered(0, 70'000)); });
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    kernel.write(0, numbered(1, 100));
    kernel.write(0, numbered(2, 200), PERF_AUX_FLAG_PARTIAL);
    kernel.write(0, numbered(3, 300));
    kernel.write(0, numbered(4, 0), PERF_AUX_FLAG_TRUNCATED);
    kernel.write(0, numbered(5, 50), PERF_AUX_FLAG_COLLISION);
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::TraceBundle bundle = read();
  constexpr std::uint64_t kFull = 64 * 1024;
  using base::Status;
  EXPECT_EQ(losses_of(bundle.streams[0]), (Losses{{kFull, Status::BUFFER_FULL},
                                                  {kFull + 100, Status::NOT_TRACED},
                                                  {kFull + 600, Status::BUFFER_FULL},
                                                  {kFull + 600, Status::NOT_TRACED}}));
  Bytes expected = numbered(0, kFull);
  append(expected, numbered(1, 100));
  append(expected, numbered(2, 200));
  append(expected, numbered(3, 300));
  append(expected, numbered(5, 50));
  EXPECT_EQ(data_of(bundle.streams[0]), expected);
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::AUX_TRUNCATED, 2));
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::AUX_PARTIAL, 1));
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::AUX_COLLISION));
}

// Linux may wake the reader up before it disables the event, or never disable it.
TEST_F(PerfAux, RestartsDisabledEvents) {
  using enum FakeKernel::OnFull;
  options_.buffer = 64 * 1024;
  for (const auto when : {DISABLES, DISABLES_LATER, IGNORES}) {
    kernel_ = FakeKernel();
    kernel_.when_full = when;
    Bytes expected = numbered(0, 64 * 1024);
    kernel_.script.emplace_back([](FakeKernel& kernel) { kernel.write(0, numbered(0, 70'000)); });
    for (std::uint64_t i = 1; i < 4; ++i) {
      kernel_.script.emplace_back([i](FakeKernel& kernel) { kernel.write(0, numbered(i, 100)); });
      append(expected, numbered(i, 100));
    }
    const auto result = record();
    ASSERT_TRUE(result.ok()) << result.failure().detail;
    const trace::Stream stream = read().streams[0];
    EXPECT_EQ(data_of(stream), expected) << static_cast<int>(when);
    EXPECT_EQ(losses_of(stream), (Losses{{64 * 1024, base::Status::BUFFER_FULL}}));
  }
}

TEST_F(PerfAux, RestartsNoEventWithRoom) {
  for (int i = 0; i < 5; ++i)
    kernel_.script.emplace_back([](FakeKernel& kernel) { kernel.write(0, numbered(0, 5000)); });
  ASSERT_TRUE(record().ok());
  const auto enabled = std::count(kernel_.requests.begin(), kernel_.requests.end(),
                                  static_cast<unsigned long>(PERF_EVENT_IOC_ENABLE));
  EXPECT_EQ(enabled, 2);  // once on each processor
}

// The event of a thread that is switched in while the buffer is full is disabled only after the thread's next
// run.
TEST_F(PerfAux, RestartsThreadsSwitchedInWhileFull) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.seconds = std::chrono::milliseconds(50);
  options_.buffer = 64 * 1024;
  kernel_.threads[::getpid()] = {::getpid(), kFirst};
  const auto second = [](FakeKernel& kernel) -> FakeKernel::Event& {
    return *std::find_if(kernel.events.begin(), kernel.events.end(), [](const FakeKernel::Event& one) {
      return one.attr.type == kPtType && one.tid == kFirst && one.cpu == 0;
    });
  };
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    kernel.now = 100;
    kernel.run(kernel.tracing_event(0),
               numbered(0, 64 * 1024));  // fills the buffer: no AUX record has TRUNCATED
    kernel.write_record(0, perf::SWITCH, 0, {110, kFirst, kFirst}, {});
    kernel.run(second(kernel), numbered(1, 10));
  });
  for (const std::uint64_t i : {2U, 3U, 4U})
    kernel_.script.emplace_back([&, i](FakeKernel& kernel) { kernel.run(second(kernel), numbered(i, 100)); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  Bytes expected = numbered(0, 64 * 1024);
  for (const std::uint64_t i : {2U, 3U, 4U}) append(expected, numbered(i, 100));
  const trace::Stream stream = read().streams[0];
  EXPECT_EQ(data_of(stream), expected);
  // Trace may be missing from the end of the first run until the event is enabled again.
  EXPECT_EQ(losses_of(stream),
            (Losses{{64 * 1024, base::Status::BUFFER_FULL}, {64 * 1024 + 100, base::Status::BUFFER_FULL}}));
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::AUX_TRUNCATED, 1));
}

// If the ring of records is full, too, a lost record may be an AUX record with TRUNCATED.
TEST_F(PerfAux, ReportsLostAuxRecordsAsLosses) {
  kernel_.when_full = FakeKernel::OnFull::IGNORES;
  Bytes expected;
  const auto write = [&](FakeKernel& kernel, const Bytes& bytes, std::uint64_t flags = 0) {
    kernel.write(0, bytes, flags);
    append(expected, bytes);
  };
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    write(kernel, numbered(0, 100));
    while (kernel.buffer(0).lost == 0)
      kernel.write_record(0, perf::SWITCH, kOut, {10, kFirst, kFirst}, Bytes(64));
    write(kernel, numbered(1, 50));
    write(kernel, numbered(2, 70), PERF_AUX_FLAG_TRUNCATED);
    kernel.fill_up(kernel.tracing_event(0));
  });
  for (const std::uint64_t i : {3U, 4U})
    kernel_.script.emplace_back([&, i](FakeKernel& kernel) { write(kernel, numbered(i, 30)); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::Stream stream = read().streams[0];
  EXPECT_EQ(data_of(stream), expected);
  EXPECT_EQ(losses_of(stream), (Losses{{100, base::Status::BUFFER_FULL}, {220, base::Status::BUFFER_FULL}}));
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::SIDEBAND_LOST, 3));
}

// The AUX record of data that can be seen already is not lost.
TEST_F(PerfAux, WaitsForRecordsThatComeLater) {
  options_.buffer = 64 * 1024;
  Bytes expected;
  const auto write = [&](FakeKernel& kernel, const Bytes& bytes, std::uint64_t flags = 0) {
    kernel.write(0, bytes, flags);
    append(expected, bytes);
  };
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    write(kernel, numbered(0, 100));
    kernel.begin_nested(0);
    write(kernel, numbered(1, 50));
  });
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    EXPECT_EQ(kernel.buffer(0).page().aux_tail, 100U);  // the kernel must not overwrite the data yet
    kernel.end_nested(0);
    write(kernel, numbered(2, 30), PERF_AUX_FLAG_PARTIAL);
  });
  kernel_.script.emplace_back([&](FakeKernel& kernel) {  // until the buffer is full
    EXPECT_EQ(kernel.buffer(0).page().aux_tail, 180U);
    kernel.begin_nested(0);
    write(kernel, numbered(3, 64 * 1024 + 1));
    expected.pop_back();
  });
  kernel_.script.emplace_back([&](FakeKernel& kernel) { kernel.end_nested(0); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::Stream stream = read().streams[0];
  EXPECT_EQ(data_of(stream), expected);
  EXPECT_EQ(losses_of(stream),
            (Losses{{150, base::Status::NOT_TRACED}, {180 + 64 * 1024, base::Status::BUFFER_FULL}}));
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::AUX_TRUNCATED, 1));
}

// A record that is missing for two drains does not come any more.
TEST_F(PerfAux, WaitsForRecordsOnce) {
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    kernel.write(0, numbered(0, 100));
    perf_event_mmap_page& page = kernel.buffer(0).page();
    FakeKernel::store(kernel.buffer(0).trace, 0, 100, numbered(1, 50));
    __atomic_store_n(&page.aux_head, 150, __ATOMIC_RELEASE);
  });
  kernel_.script.emplace_back([&](FakeKernel& kernel) { kernel.write(1, numbered(0, 7)); });
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    EXPECT_EQ(kernel.buffer(0).page().aux_tail, 150U);
    kernel.write(0, numbered(2, 30));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(data_of(read().streams[0]).size(), 180U);
  EXPECT_EQ(losses_of(read().streams[0]),
            (Losses{{100, base::Status::BUFFER_FULL}, {150, base::Status::BUFFER_FULL}}));
}

TEST_F(PerfAux, CountsImplausibleAuxRecords) {
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    kernel.write(0, numbered(0, 100));
    perf_event_mmap_page& page = kernel.buffer(0).page();
    page.aux_head -= 48;
    kernel.write_aux_record(0, {101, 1, 1}, 48, page.aux_head + 48,
                            PERF_AUX_FLAG_PARTIAL);                                // the same data again
    kernel.write_aux_record(0, {102, 1, 1}, ~std::uint64_t{0}, page.aux_head, 0);  // larger than the buffer
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(data_of(read().streams[0]), numbered(0, 100));
  EXPECT_TRUE(losses_of(read().streams[0]).empty());
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::RECORDS_INVALID, 2));
}

// Each snapshot has the new bytes, after a loss if bytes were overwritten.
TEST_F(PerfAux, SnapshotsHaveOnlyNewBytes) {
  options_.ring = 64 * 1024;
  const std::vector<std::uint64_t> parts{3000, 40000, 64 * 1024, 5, 0, 90000, 1};
  Bytes all;
  Bytes joined;
  Losses losses;
  std::uint64_t kept = 0;
  for (const std::uint64_t part : parts) {
    kernel_.script.emplace_back([&, part](FakeKernel& kernel) {
      const Bytes more = numbered(all.size() + 1, part);
      kernel.write(0, more);
      append(all, more);
      EXPECT_FALSE(recorder_->snapshot());
      if (all.size() - kept >= options_.ring) {
        kept = all.size() - options_.ring;
        losses.emplace_back(joined.size(), base::Status::RING_WRAPPED);
      }
      append(joined, Bytes(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end()));
      kept = all.size();
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(result.value().snapshots, parts.size());
  EXPECT_TRUE(kernel_.buffer(0).overwrite);
  const trace::TraceBundle bundle = read();
  EXPECT_EQ(data_of(bundle.streams[0]), joined);
  EXPECT_EQ(losses_of(bundle.streams[0]), losses);
  EXPECT_EQ(losses.size(), 2U);
  // Tracing is paused while a ring is copied.
  EXPECT_GE(std::count(kernel_.requests.begin(), kernel_.requests.end(),
                       static_cast<unsigned long>(PERF_EVENT_IOC_DISABLE)),
            static_cast<std::ptrdiff_t>(2 * parts.size()));
}

// The data of an AUX record begins where the data of the record before ended. If the ring was lapped, a gap
// is found only at a PSB.
TEST_F(PerfAux, PutsGapsOfRingAtTheirOffsets) {
  options_.ring = 64 * 1024;
  Bytes psb;
  for (int i = 0; i < 8; ++i) append(psb, {0x02, 0x82});
  const auto snapshot = [&](const std::vector<std::pair<Bytes, std::uint64_t>>& parts) {
    kernel_.script.emplace_back([this, parts](FakeKernel& kernel) {
      for (const auto& [bytes, flags] : parts) kernel.write(0, bytes, flags);
      EXPECT_FALSE(recorder_->snapshot());
    });
  };
  snapshot({{numbered(0, 1000), 0}, {numbered(1, 200), PERF_AUX_FLAG_PARTIAL}, {numbered(2, 300), 0}});
  snapshot({{numbered(3, 500), PERF_AUX_FLAG_COLLISION}});
  snapshot({{numbered(4, 70'000), 0}, {psb, PERF_AUX_FLAG_PARTIAL}, {numbered(5, 50), 0}});
  snapshot({{psb, PERF_AUX_FLAG_PARTIAL}, {numbered(6, 65'536), 0}});
  snapshot({{psb, PERF_AUX_FLAG_PARTIAL}, {numbered(7, 40'000), 0}, {numbered(8, 40'000), 0}});
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::TraceBundle bundle = read();
  constexpr std::uint64_t kRing = 64 * 1024;
  using base::Status;
  EXPECT_EQ(losses_of(bundle.streams[0]), (Losses{{1000, Status::NOT_TRACED},
                                                  {1500, Status::NOT_TRACED},
                                                  {2000, Status::RING_WRAPPED},
                                                  {2000 + kRing - 66, Status::NOT_TRACED},
                                                  {2000 + kRing, Status::RING_WRAPPED},
                                                  {2000 + kRing, Status::NOT_TRACED},
                                                  {2000 + 2 * kRing, Status::RING_WRAPPED},
                                                  {2000 + 2 * kRing, Status::NOT_TRACED}}));
  EXPECT_EQ(bundle.streams[0].data.size(), 2000 + 3 * kRing);
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::AUX_PARTIAL, 4));
}

// ---- sideband records

TEST_F(PerfSideband, PutsSwitchBetweenItsTwoRecords) {
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    const std::string program = std::filesystem::canonical("/bin/sh");
    kernel.write_record(0, perf::ITRACE_START, 0, {1000, kFirst, kFirst}, ids({kFirst, kFirst}));
    kernel.write_record(0, perf::MMAP2, 0, {1100, kFirst, kFirst}, mapping(kFirst, 0x400000, 4096, program));
    kernel.write_record(0, perf::SWITCH_CPU_WIDE, kOut | perf::kMiscSwitchOutPreempt, {2000, kFirst, kFirst},
                        ids({kFirst + 1, kFirst + 1}));
    kernel.write_record(0, perf::SWITCH_CPU_WIDE, 0, {2100, kFirst + 1, kFirst + 1}, ids({kFirst, kFirst}));
    kernel.write_record(0, perf::SWITCH_CPU_WIDE, kOut, {3000, kFirst + 1, kFirst + 1}, ids({0, 0}));
    kernel.write_record(0, perf::SWITCH_CPU_WIDE, 0, {3002, 0, 0}, ids({kFirst + 1, kFirst + 1}));
    kernel.write_record(1, perf::SWITCH, 0, {5000, kFirst + 1, kFirst + 2}, {});
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::TraceBundle bundle = read();
  const auto& switches = bundle.streams[0].switches;
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0].tsc, 1U);  // from the beginning
  EXPECT_EQ(switches[0].tid, kFirst);
  EXPECT_EQ(switches[1].tsc, 2050U);
  EXPECT_EQ(switches[1].pid, kFirst + 1);
  EXPECT_EQ(switches[2].tsc, 3001U);
  EXPECT_EQ(switches[2].tid, 0);
  EXPECT_EQ(switches[0].departure, trace::Departure::UNKNOWN);
  EXPECT_EQ(switches[1].departure, trace::Departure::PREEMPTED);
  EXPECT_EQ(switches[2].departure, trace::Departure::WAITS);
  EXPECT_NE(switches[0].space, switches[1].space);
  ASSERT_EQ(bundle.streams[1].switches.size(), 1U);
  EXPECT_EQ(bundle.streams[1].switches[0].tid, kFirst + 2);
  const auto code = std::find_if(bundle.code.begin(), bundle.code.end(),
                                 [](const trace::CodeRegion& region) { return region.address == 0x400000; });
  ASSERT_NE(code, bundle.code.end());
  EXPECT_EQ(code->bytes.size(), 4096U);
  EXPECT_EQ(code->space, switches[0].space);
}

// A thread that exits has no SWITCH OUT record. The next SWITCH IN must not be dated before its EXIT.
TEST_F(PerfSideband, TakesExitAsSwitchOut) {
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    Bytes gone = ids({kFirst, kFirst, kFirst + 1, kFirst});
    FakeKernel::put(gone, 4000, 8);
    kernel.write_record(0, perf::SWITCH, 0, {1000, kFirst, kFirst}, {});
    kernel.write_record(0, perf::SWITCH, kOut, {2000, kFirst, kFirst}, {});
    kernel.write_record(0, perf::SWITCH, 0, {2010, kFirst, kFirst + 1}, {});
    kernel.write_record(0, perf::EXIT, 0, {4000, kFirst, kFirst + 1}, gone);
    kernel.write_record(0, perf::SWITCH, 0, {4100, kFirst, kFirst + 2}, {});
    kernel.write_record(0, perf::SWITCH, 0, {9000, kFirst, kFirst + 3}, {});  // the records before were lost
  });
  ASSERT_TRUE(record().ok());
  const auto bundle = read();
  std::vector<std::uint64_t> times;
  for (const trace::Switch& one : bundle.streams[0].switches) times.push_back(one.tsc);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{1, 2005, 4050, 9000}));
  EXPECT_EQ(bundle.streams[0].switches[2].departure, trace::Departure::WAITS);
  EXPECT_EQ(bundle.streams[0].switches[3].departure, trace::Departure::UNKNOWN);
}

TEST_F(PerfSideband, FollowsForkAndExec) {
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    const std::string program = std::filesystem::canonical("/bin/sh");
    Bytes fork = ids({kFirst + 1, kFirst, kFirst + 1, kFirst});
    FakeKernel::put(fork, 10, 8);
    Bytes name = ids({kFirst + 1, kFirst + 1});
    append(name, {'s', 'h', 0, 0, 0, 0, 0, 0});
    kernel.write_record(0, perf::MMAP2, 0, {5, kFirst, kFirst}, mapping(kFirst, 0x400000, 4096, program));
    kernel.write_record(0, perf::FORK, 0, {10, kFirst, kFirst}, fork);
    kernel.write_record(0, perf::SWITCH, 0, {15, kFirst + 1, kFirst + 1}, {});
    kernel.write_record(0, perf::COMM, perf::kMiscCommExec, {20, kFirst + 1, kFirst + 1}, name);
    kernel.write_record(0, perf::MMAP2, 0, {21, kFirst + 1, kFirst + 1},
                        mapping(kFirst + 1, 0x500000, 4096, program));
    kernel.write_record(0, perf::EXIT, 0, {30, kFirst + 1, kFirst + 1}, fork);
  });
  ASSERT_TRUE(record().ok());
  const trace::TraceBundle bundle = read();
  const auto& switches = bundle.streams[0].switches;
  ASSERT_EQ(switches.size(), 2U);  // the child, and its exec()
  EXPECT_NE(switches[0].space, switches[1].space);
  std::vector<trace::SidebandKind> kinds;
  for (const trace::Sideband& one : bundle.sideband) {
    if (one.pid == kFirst + 1) kinds.push_back(one.kind);
    if (one.kind == trace::SidebandKind::EXIT) {
      EXPECT_EQ(one.value, -1);
    }
  }
  using enum trace::SidebandKind;
  EXPECT_EQ(kinds, (std::vector{MAP, PROCESS, THREAD, EXEC, MAP, EXIT}));
}

TEST_F(PerfSideband, CountsLostAndUnknownRecords) {
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    Bytes lost;
    FakeKernel::put(lost, 1, 8);
    FakeKernel::put(lost, 7, 8);
    kernel.write_record(0, perf::LOST, 0, {1, 0, 0}, lost);
    kernel.write_record(1, 30, 0, {2, 0, 0}, {1, 2, 3});
    kernel.write_record(1, 30, 0, {3, 0, 0}, {1, 2, 3});
    kernel.write_record(1, perf::AUX, 0, {4, 0, 0}, {});  // too short
    for (const std::uint32_t type : {5U, 6U, 13U})        // THROTTLE, UNTHROTTLE, LOST_SAMPLES
      kernel.write_record(0, type, 0, {5, 0, 0}, Bytes(24));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::SIDEBAND_LOST, 7));
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::SAMPLES_THROTTLED, 2));
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::RECORD_TYPE_UNKNOWN, 2, 30));
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::RECORDS_INVALID, 1));
}

// The ring of records wraps many times.
TEST_F(PerfSideband, WrapsRecords) {
  constexpr std::uint64_t kRounds = 100;
  constexpr std::uint64_t kEach = 300;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    kernel_.script.emplace_back([i](FakeKernel& kernel) {
      for (std::uint64_t j = 0; j < kEach; ++j) {
        const int tid = kFirst + static_cast<int>(i * kEach + j);
        kernel.write_record(0, perf::SWITCH, 0, {10 + i * kEach + j, kFirst, tid}, Bytes(j % 3 * 8));
      }
    });
  }
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(kernel_.buffer(0).lost, 0U);
  EXPECT_GT(kernel_.buffer(0).page().data_head, 1024U * 1024);
  const auto bundle = read();
  ASSERT_EQ(bundle.streams[0].switches.size(), kRounds * kEach);
  for (std::size_t i = 0; i < kRounds * kEach; ++i)
    ASSERT_EQ(bundle.streams[0].switches[i].tid, kFirst + static_cast<int>(i));
}

TEST_F(PerfSideband, KeepsTextPokesByTime) {
  options_.levels.kernel = true;
  kernel_.files["/proc/sys/kernel/perf_event_paranoid"] = "-1";
  constexpr std::uint64_t kAddress = 0xffffffff81000100;
  constexpr std::uint64_t kLater = std::uint64_t{1} << 60U;  // than the saved code, which has earlier changes
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    kernel.write_record(0, perf::TEXT_POKE, 0, {9, 1, 1}, poke(kAddress, {0x66, 0x90}, {0x0f, 0x1f}));
    kernel.write_record(0, perf::TEXT_POKE, 0, {kLater, 1, 1}, poke(kAddress, {0x0f, 0x1f}, {0xeb, 0x05}));
    kernel.write_record(0, perf::TEXT_POKE, 0, {kLater + 1, 1, 1},
                        poke(kAddress, {0xeb, 0x05}, {0x0f, 0x1f}));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  using Times = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  Times times;
  const auto bundle = read();
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.address == kAddress) times.emplace_back(region.tsc_from, region.tsc_to);
  }
  EXPECT_EQ(times, (Times{{trace::kTscMin, kLater}, {kLater, trace::kTscMax}, {kLater + 1, trace::kTscMax}}));
  // Each CPU has an event for TEXT_POKE and KSYMBOL.
  const auto dummies = kernel_.of_type(PERF_TYPE_SOFTWARE);
  EXPECT_EQ(std::count_if(dummies.begin(), dummies.end(),
                          [](const FakeKernel::Event* one) { return one->attr.text_poke != 0; }),
            2);
}

TEST_F(PerfSideband, WarnsWithoutClock) {
  kernel_.has_time = false;
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    kernel.write_record(0, perf::SWITCH, 0, {5000, kFirst, kFirst}, {});
  });
  const auto result = record();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::CLOCK_NOT_TSC));
}

// ---- events and buffers

TEST_F(PerfEvents, InheritOnEveryCpu) {
  reset_unit_options(options_);
  options_.argv = {"/bin/sh", "-c", "exit 3"};
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(result.value().exit_status, 3);
  const auto units = kernel_.of_type(kPtType);
  ASSERT_EQ(units.size(), 2U);
  for (const FakeKernel::Event* one : units) {
    EXPECT_EQ(one->tid, recorder_->status().pid);
    EXPECT_EQ(one->attr.inherit, 1U);
    EXPECT_EQ(one->attr.inherit_thread, 0U);
    EXPECT_EQ(one->attr.exclude_kernel, 1U);
    EXPECT_EQ(one->attr.exclude_user, 0U);
    EXPECT_EQ(one->attr.disabled, 1U);
  }
  const auto dummies = kernel_.of_type(PERF_TYPE_SOFTWARE);
  ASSERT_EQ(dummies.size(), 2U);
  for (const FakeKernel::Event* one : dummies) {
    EXPECT_GE(one->output, 0);
    EXPECT_EQ(one->attr.disabled, 0U);
    EXPECT_TRUE(one->attr.context_switch && one->attr.mmap2 && one->attr.comm_exec && one->attr.task);
  }
  EXPECT_EQ(kernel_.requests.front(), static_cast<unsigned long>(PERF_EVENT_IOC_ENABLE));
  const auto bundle = read();
  EXPECT_EQ(bundle.streams[0].pid, recorder_->status().pid);
  std::size_t bytes = 0;
  for (const trace::CodeRegion& region : bundle.code) bytes += region.bytes.size();
  EXPECT_GT(bytes, std::size_t{50000});
}

TEST_F(PerfEvents, ShareBufferOfCpu) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.children = false;
  options_.seconds = std::chrono::milliseconds(50);
  kernel_.threads[::getpid()] = {::getpid(), kFirst, kFirst + 1};
  ASSERT_TRUE(record().ok());
  auto units = kernel_.of_type(kPtType);
  ASSERT_EQ(units.size(), 6U);
  EXPECT_EQ(kernel_.buffers.size(), 2U);
  EXPECT_EQ(units[5]->attr.inherit_thread, 1U);
  EXPECT_EQ(std::count_if(units.begin(), units.end(),
                          [](const FakeKernel::Event* one) { return one->output >= 0; }),
            4);
  kernel_ = FakeKernel();
  kernel_.threads[::getpid()] = {::getpid(), kFirst};
  options_.per_thread = true;
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeKernel::Buffer& second = std::next(kernel.buffers.begin())->second;
    const Bytes bytes = numbered(5, 50);
    FakeKernel::store(second.trace, 0, 0, bytes);
    second.page().aux_head = bytes.size();  // data without AUX record
  });
  ASSERT_TRUE(record().ok());
  units = kernel_.of_type(kPtType);
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[1]->cpu, -1);
  EXPECT_EQ(units[1]->attr.inherit, 0U);
  const auto bundle = read();
  ASSERT_EQ(bundle.streams.size(), 2U);
  EXPECT_EQ(bundle.streams[1].tid, kFirst);
  EXPECT_EQ(bundle.streams[1].pid, ::getpid());
  EXPECT_EQ(data_of(bundle.streams[1]), numbered(5, 50));
  EXPECT_EQ(losses_of(bundle.streams[1]),
            (Losses{{0, base::Status::BUFFER_FULL}, {50, base::Status::BUFFER_FULL}}));
}

TEST_F(PerfEvents, AreNotPolledAfterHangup) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.seconds = std::chrono::milliseconds(50);
  kernel_.threads[::getpid()] = {::getpid(), kFirst, kFirst + 1};
  std::vector<std::set<int>> polled;
  for (int i = 0; i < 4; ++i) {
    kernel_.script.emplace_back([&](FakeKernel& kernel) {
      std::set<int>& files = polled.emplace_back();
      files.insert(kernel.polled.begin(), std::prev(kernel.polled.end()));  // the last one is the pidfd
      kernel.hung_up.insert(files.begin(), files.end());
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  std::set<int> all;
  for (const std::set<int>& files : polled) all.insert(files.begin(), files.end());
  ASSERT_EQ(polled.size(), 4U);
  EXPECT_EQ(polled[0].size(), 2U);
  EXPECT_EQ(polled[2].size(), 2U);
  EXPECT_EQ(all.size(), 6U);  // each event was polled
  EXPECT_TRUE(polled[3].empty());
}

// A CPU has one trace unit, which other tracers may need.
TEST_F(PerfEvents, AreClosedAfterDetach) {
  reset_unit_options(options_);
  options_.seconds = std::chrono::milliseconds(50);
  const auto result = record_detached_program();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
  EXPECT_EQ(result.value().exit_status, 0);
}

// Rings are drained while the code of all processes is saved.
TEST_F(PerfSideband, DrainsRecordsBeforeStart) {
  class Counting : public PerfBackend {
   public:
    Counting(OpenPerf open, std::vector<int>& drains) : PerfBackend(std::move(open)), drains_(drains) {}
    Problem start() override {
      drains_.push_back(count_);
      return PerfBackend::start();
    }
    Problem drain(BundleOutput& output, std::vector<SidebandRecord>& records) override {
      ++count_;
      return PerfBackend::drain(output, records);
    }

   private:
    std::vector<int>& drains_;
    int count_ = 0;
  };
  std::vector<int> drains;
  options_.seconds = std::chrono::milliseconds(20);
  HardwareRecorder recorder(Backend::PERF, options_,
                            std::make_unique<Counting>(perf_opener(kernel_), drains));
  const auto result = recorder.run();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  ASSERT_EQ(drains.size(), 1U);
  EXPECT_GE(drains[0], 2);  // during find_all(), and right before start()
}

// A thread that began meanwhile has inherited an event.
TEST_F(PerfEvents, AcceptInheritedThreads) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.seconds = std::chrono::milliseconds(50);
  kernel_.open_error = [&](const perf_event_attr& attr, int tid, int) {
    kernel_.threads[::getpid()] = {::getpid(), kFirst};
    return tid == kFirst && attr.type == kPtType ? EBUSY : 0;
  };
  kernel_.threads[::getpid()] = {::getpid()};
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(kernel_.of_type(kPtType).size(), 2U);
}

TEST_F(PerfEvents, ShrinkBuffersToMlockLimit) {
  kernel_.map_error = [](std::uint64_t bytes, bool) { return bytes > 600'000 ? EPERM : 0; };
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(kernel_.buffer(0).trace.size(), 256U * 1024);
  EXPECT_EQ(kernel_.buffers.size(), 2U);
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::BUFFERS_LIMIT_LOCKED, 256));
  options_.buffer = 1 << 20;
  EXPECT_NE(refused().find("buffer: 1024 KiB for each of 2 buffers are more than you may lock"),
            std::string::npos);
}

TEST_F(PerfEvents, WarnOfSmallRecordRings) {
  options_.buffer = 64 * 1024;
  kernel_.map_error = [](std::uint64_t bytes, bool) { return bytes > 600'000 ? EPERM : 0; };
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(kernel_.buffer(0).trace.size(), 64U * 1024);
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::RINGS_LIMIT_LOCKED, 128));
  kernel_.map_error = [](std::uint64_t bytes, bool) { return bytes > 600'000 ? ENOMEM : 0; };
  EXPECT_TRUE(warns(record().value().warnings, WarningCode::RINGS_LIMIT_MEMORY, 128, 2));
  kernel_ = FakeKernel();
  EXPECT_TRUE(record().value().warnings.empty());
}

TEST_F(PerfEvents, OmitBuildIdOnOldKernels) {
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.build_id != 0 ? EINVAL : 0; };
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(kernel_.of_type(PERF_TYPE_SOFTWARE).size(), 2U);
}

// ---- options

TEST_F(PerfOptions, SetConfigOfEvent) {
  options_.packets.ptwrite = options_.timing->cyc = true;
  options_.cyc_threshold = 5;
  options_.psb_period = 8192;
  options_.return_compression = false;
  options_.levels.kernel = true;
  options_.cpus.numbers = {1};
  options_.cpus.all = false;
  ASSERT_TRUE(record().ok());
  const auto units = kernel_.of_type(kPtType);
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0]->cpu, 1);
  EXPECT_EQ(units[0]->attr.exclude_kernel, 0U);
  const std::uint64_t config =
      1U << 1U | 1U << 5U | 1U << 9U | 1U << 10U | 1U << 11U | 1U << 12U | 3U << 14U | 5U << 19U | 2U << 24U;
  EXPECT_EQ(units[0]->attr.config, config);
}

TEST_F(PerfOptions, DefaultTimingFollowsCaps) {
  const auto config = [&] {
    kernel_.events.clear();
    kernel_.buffers.clear();
    EXPECT_TRUE(record().ok());
    return kernel_.of_type(kPtType).at(0)->attr.config;
  };
  options_.mtc_period.reset();
  kernel_.files[kPtFolder + "caps/mtc_periods"] = "242";  // 1, 6, 9
  EXPECT_EQ(config(), 1U << 9U | 1U << 10U | 1U << 14U | 1U << 24U);
  kernel_.files[kPtFolder + "caps/mtc_periods"] = "22";  // 1, 5: equally near, the longer one is taken
  EXPECT_EQ(config(), 1U << 9U | 1U << 10U | 5U << 14U | 1U << 24U);
  options_.mtc_period = 3;
  EXPECT_NE(refused().find("mtc_period: this processor does not have that period; it has 1, 5"),
            std::string::npos);
  kernel_.files[kPtFolder + "caps/mtc"] = "0";
  kernel_.files[kPtFolder + "caps/mtc_periods"] = "0";
  EXPECT_NE(refused().find("timing: this processor has no MTC packets"), std::string::npos);
  options_.timing.reset();
  EXPECT_NE(refused().find("timing: this processor has no MTC packets"), std::string::npos);
  options_.mtc_period.reset();
  EXPECT_EQ(config(), 1U << 10U | 1U << 24U);
}

TEST_F(PerfOptions, TermsOverrideOptions) {
  options_.event = "intel_pt/mtc=0,mtc_period=0,noretcomp/";
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(kernel_.of_type(kPtType)[0]->attr.config, 1U << 10U | 1U << 11U | 1U << 24U);
  const std::vector<std::pair<std::string, std::string>> cases{
      {"tsk", "event: perf's term tsk"},
      {"mtc_period=4", "mtc_period: this processor does not have that period; it has 0, 3, 6, 9"},
      {"pwr_evt", "packets: this processor has no power events"},
      {"event", "this kernel's intel_pt has no term event"},
      {"notnt", "this kernel's intel_pt has no term notnt"},
      {"branch", "event: perf's term branch needs the term pt"},
      {"intel_pt/tsc/k", "event: remove the modifiers after the second slash (u, k); levels"},
  };
  for (const auto& [event, words] : cases) {
    options_.event = event;
    EXPECT_NE(refused().find(words), std::string::npos) << event << ": " << refused();
  }
  options_.event = "cyc";
  kernel_.files[kPtFolder + "format/cyc"] = "config1:3";
  EXPECT_NE(refused().find("has the term cyc elsewhere (config1:3)"), std::string::npos);
}

extern "C" __attribute__((noinline, used)) int ptkit_perf_filtered(int value) { return value * 5; }

TEST_F(PerfOptions, FiltersNameFilesOrKernel) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.seconds = std::chrono::milliseconds(50);
  options_.filters.push_back({FilterRequest::Kind::FILTER, "", "ptkit_perf_filtered", 0, 0});
  options_.filters.push_back(
      {FilterRequest::Kind::TRACESTOP, "", "", 0xffffffff81000000, 0xffffffff81000fff});
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  for (const FakeKernel::Event* one : kernel_.of_type(kPtType)) {
    EXPECT_EQ(one->filter.substr(0, 9), "filter 0x");
    EXPECT_NE(one->filter.find("@" + program + ",stop 0xffffffff81000000/0x1000"), std::string::npos)
        << one->filter;
  }
  const auto bundle = read();
  EXPECT_EQ(bundle.configuration.ranges[0].kind, trace::RangeKind::FILTER);
  EXPECT_EQ(bundle.configuration.ranges[0].first, reinterpret_cast<std::uint64_t>(&ptkit_perf_filtered));
  EXPECT_EQ(bundle.configuration.ranges[1].kind, trace::RangeKind::TRACE_STOP);
  options_.filters.pop_back();
  options_.filters[0].symbol = "ptkit_perf_filter";
  EXPECT_NE(refused().find("no function that is there yet; there are ptkit_perf_filtered"),
            std::string::npos);
  kernel_.files[kPtFolder + "nr_addr_filters"] = "0";
  EXPECT_NE(refused().find("this processor has 0 ranges"), std::string::npos);
}

// ---- triggers

using Event = TriggerRequest::Event;
using Action = TriggerRequest::Action;

TriggerRequest at_function(Action action, std::uint64_t count) {
  TriggerRequest out;
  out.event = Event::SYMBOL;
  out.action = action;
  out.symbol = "ptkit_perf_filtered";
  out.count = count;
  return out;
}

TEST_F(PerfTriggers, StartSnapshotAndStop) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.ring = 64 * 1024;
  options_.triggers = {at_function(Action::START, 2), at_function(Action::SNAPSHOT, 1),
                       at_function(Action::STOP, 3)};
  std::vector<bool> traced;
  for (int i = 0; i < 8; ++i) {
    kernel_.script.emplace_back([&](FakeKernel& kernel) {
      traced.push_back(kernel.of_type(kPtType)[0]->enabled);
      const int last = kernel.last_of_type(PERF_TYPE_BREAKPOINT);  // two for each trigger: one for each CPU
      for (const int event : {last - 4, last - 2, last}) kernel.fire(event);
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
  EXPECT_EQ(result.value().snapshots, 3U);
  // The second event starts the recording. Other triggers count from the next event on.
  EXPECT_EQ(traced, (std::vector{false, false, true, true, true}));
  const auto watches = kernel_.of_type(PERF_TYPE_BREAKPOINT);
  ASSERT_EQ(watches.size(), 6U);
  for (const FakeKernel::Event* one : watches) {
    EXPECT_EQ(one->attr.bp_addr, reinterpret_cast<std::uint64_t>(&ptkit_perf_filtered));
    EXPECT_EQ(one->attr.exclude_kernel, 1U);
    EXPECT_EQ(one->attr.inherit, 1U);
  }
}

TEST_F(PerfTriggers, TraceNothingBeforeStart) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.seconds = std::chrono::milliseconds(50);
  options_.triggers = {at_function(Action::START, 1)};
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    EXPECT_TRUE(kernel.requests.empty());  // it was never enabled
    kernel.fire(kernel.last_of_type(PERF_TYPE_BREAKPOINT));
  });
  kernel_.script.emplace_back([](FakeKernel& kernel) { kernel.write(0, numbered(2, 60)); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(data_of(read().streams[0]), numbered(2, 60));
}

TEST_F(PerfSideband, SavesKernelCodeBeforeStart) {
  options_.levels.kernel = true;
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    constexpr unsigned long kEnable = PERF_EVENT_IOC_ENABLE;
    EXPECT_EQ(kernel.requests, (std::vector<unsigned long>{kEnable, kEnable}));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
}

Bytes born(int pid, int parent) {
  Bytes out = ids({pid, parent, pid, parent});
  FakeKernel::put(out, 0, 8);
  return out;
}

Bytes renamed(int pid) {
  Bytes out = ids({pid, pid});
  append(out, {'s', 'h', 0, 0, 0, 0, 0, 0});
  return out;
}

// The address does not count in other processes, nor in another program of the process.
TEST_F(PerfTriggers, CountOnlyProcessTreeOnWholeCpus) {
  options_.triggers = {at_function(Action::STOP, 3)};
  std::vector<std::size_t> steps;
  const auto fire = [&](int pid, std::uint64_t time) {
    kernel_.fire(kernel_.last_of_type(PERF_TYPE_BREAKPOINT), {time, pid, pid});
  };
  kernel_.script.emplace_back([&, fire](FakeKernel& kernel) {
    const int pid = recorder_->status().pid;
    kernel.write_record(0, perf::FORK, 0, {100, pid, pid}, born(kFirst, pid));
    kernel.write_record(0, perf::FORK, 0, {100, pid, pid}, born(kFirst + 1, pid));
    kernel.write_record(0, perf::FORK, 0, {110, 1, 1}, born(kFirst + 2, 1));
    kernel.write_record(0, perf::COMM, perf::kMiscCommExec, {500, kFirst + 1, kFirst + 1},
                        renamed(kFirst + 1));
    kernel.write_record(0, perf::FORK, 0, {600, kFirst + 1, kFirst + 1}, born(kFirst + 3, kFirst + 1));
    fire(kFirst + 2, 120);  // another process
    fire(kFirst + 1, 700);  // after exec()
    fire(kFirst + 3, 800);  // its child after exec()
    fire(pid, 200);
    fire(kFirst, 300);
    steps.push_back(1);
  });
  kernel_.script.emplace_back([&, fire](FakeKernel&) {
    steps.push_back(2);
    fire(kFirst + 1, 400);  // before exec()
  });
  kernel_.script.emplace_back([&](FakeKernel&) { steps.push_back(3); });
  const auto result = record_detached_program();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
  EXPECT_EQ(steps, (std::vector<std::size_t>{1, 2}));
}

TEST_F(PerfTriggers, CountOnlySignalsOfProcessTree) {
  kernel_.files["/sys/kernel/tracing/events/signal/signal_deliver/id"] = "250";
  options_.children = false;
  TriggerRequest trigger;
  trigger.event = Event::SIGNAL;
  trigger.signal = 10;
  options_.triggers = {trigger};
  std::size_t steps = 0;
  const auto fire = [&](int pid) {
    ++steps;
    kernel_.fire(kernel_.last_of_type(PERF_TYPE_TRACEPOINT), {100, pid, pid});
  };
  kernel_.script.emplace_back([&, fire](FakeKernel& kernel) {
    kernel.write_record(0, perf::FORK, 0, {50, recorder_->status().pid, recorder_->status().pid},
                        born(kFirst, recorder_->status().pid));
    fire(kFirst);  // without the option children
  });
  kernel_.script.emplace_back([fire](FakeKernel&) { fire(kFirst + 1); });
  kernel_.script.emplace_back([&, fire](FakeKernel&) { fire(recorder_->status().pid); });
  kernel_.script.emplace_back([fire](FakeKernel&) { fire(0); });
  const auto result = record_detached_program();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
  EXPECT_EQ(steps, 3U);
}

TEST_F(PerfTriggers, StopOnSignal) {
  TriggerRequest trigger;
  trigger.event = Event::SIGNAL;
  trigger.signal = 10;
  options_.triggers = {trigger};
  EXPECT_NE(refused().find("triggers: the kernel's tracepoints cannot be read"), std::string::npos);
  kernel_.files["/sys/kernel/tracing/events/signal/signal_deliver/id"] = "250";
  options_.seconds = std::chrono::milliseconds(0);
  kernel_.script.emplace_back(
      [](FakeKernel& kernel) { kernel.fire(kernel.last_of_type(PERF_TYPE_TRACEPOINT)); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
  for (const FakeKernel::Event* one : kernel_.of_type(PERF_TYPE_TRACEPOINT)) {
    EXPECT_EQ(one->attr.config, 250U);
    EXPECT_EQ(one->filter, "sig == 10");
  }
}

TEST_F(PerfTriggers, ReportOpenErrors) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.triggers = {at_function(Action::STOP, 1)};
  const std::vector<std::pair<int, std::string>> cases{
      {ENOSPC, "triggers: a processor has four breakpoints"},
      {EACCES, "triggers: not permitted to set a breakpoint"},
      {ENODEV, "triggers: the kernel does not watch"}};
  for (const auto& [error, words] : cases) {
    kernel_.open_error = [number = error](const perf_event_attr& attr, int, int) {
      return attr.type == PERF_TYPE_BREAKPOINT ? number : 0;
    };
    EXPECT_NE(refused().find(words), std::string::npos) << refused();
  }
  options_.triggers[0].symbol = "ptkit_perf_filter";
  EXPECT_NE(refused().find("triggers: ptkit_perf_filter is no function that is there yet; there are"),
            std::string::npos);
}

// ---- errors

TEST_F(PerfErrors, AreOneLineWithRemedy) {
  const std::vector<std::tuple<int, std::string>> opening{
      {EACCES, "whole processors needs kernel.perf_event_paranoid at most 0, and it is 2; run as root"},
      {EBUSY, "another tracer is active"},
      {ENODEV, "processor 0 is offline"},
      {EOPNOTSUPP, "intel_pt cannot do this"},
      {EINVAL, "the kernel refuses the event, whatever its settings are"},
      {EMFILE, "ulimit -n"},
      {ENOSYS, "no perf events"},
      {ENOMEM, "no memory for the events"},
      {E2BIG, "does not open the event: Argument list too long"},
  };
  for (const auto& [error, words] : opening) {
    kernel_.open_error = [number = error](const perf_event_attr&, int, int) { return number; };
    EXPECT_NE(refused().find(words), std::string::npos) << words << ": " << refused();
  }
  kernel_.open_error = nullptr;
  const std::vector<std::tuple<int, std::string>> mapped{
      {EPERM, "more than you may lock (kernel.perf_event_mlock_kb is 516); use smaller sizes"},
      {ENOMEM, "not enough memory"},
      {EOPNOTSUPP, "no buffer of that kind"},
      {EINVAL, "does not map"},
  };
  for (const auto& [error, words] : mapped) {
    kernel_.map_error = [number = error](std::uint64_t, bool) { return number; };
    EXPECT_NE(refused().find(words), std::string::npos) << words << ": " << refused();
  }
  kernel_.map_error = nullptr;
  options_.levels.kernel = true;
  options_.filters.push_back({FilterRequest::Kind::FILTER, "", "", 0xffffffff81000000, 0xffffffff81000fff});
  const std::vector<std::tuple<int, std::string>> filtered{
      {EOPNOTSUPP, "filters: this processor or kernel cannot do them (filter 0xffffffff81000000/0x1000)"},
      {EINVAL, "filters: the kernel refuses them"},
      {ENOENT, "cannot look into the file"},
  };
  for (const auto& [error, words] : filtered) {
    kernel_.errors[PERF_EVENT_IOC_SET_FILTER] = error;
    EXPECT_NE(refused().find(words), std::string::npos) << words << ": " << refused();
  }
  options_.levels.kernel = false;
  kernel_.errors[PERF_EVENT_IOC_SET_FILTER] = EINVAL;
  EXPECT_NE(refused().find("these addresses are the kernel's"), std::string::npos);
}

TEST_F(PerfErrors, NameNeededParanoidLevel) {
  kernel_.open_error = [](const perf_event_attr&, int, int) { return EACCES; };
  reset_unit_options(options_);
  options_.pid = ::getpid();
  EXPECT_NE(refused().find("pid: process " + std::to_string(::getpid()) + " belongs to another user"),
            std::string::npos);
  options_.levels.kernel = true;
  EXPECT_NE(refused().find("tracing the kernel's code needs kernel.perf_event_paranoid at most 1"),
            std::string::npos);
  options_.levels.kernel = false;
  kernel_.files["/proc/sys/kernel/perf_event_paranoid"] = "3";
  EXPECT_NE(refused().find("tracing programs needs kernel.perf_event_paranoid at most 2, and it is 3"),
            std::string::npos);
}

TEST_F(PerfErrors, NameMissingPmu) {
  kernel_.files.erase(kPtFolder + "type");
  EXPECT_NE(refused().find("the kernel has no intel_pt event, though"), std::string::npos);
  kernel_.files["/proc/cpuinfo"] = "flags\t: fpu";
  EXPECT_NE(refused().find("this processor has no Intel PT"), std::string::npos);
  kernel_.files.erase("/proc/sys/kernel/perf_event_paranoid");
  EXPECT_NE(refused().find("this kernel has no perf events"), std::string::npos);
}

TEST_F(PerfErrors, AreInSupport) {
  FakePerf port(kernel_);
  const PerfSupport good = pt_support(port);
  EXPECT_EQ(good.error.what, "");
  EXPECT_EQ(good.abilities,
            "4 address filters, MTC packets, CYC packets, PTWRITE; the kernel and whole processors, too");
  EXPECT_EQ(kernel_.closed, kernel_.events.size());
  kernel_.open_error = [](const perf_event_attr&, int tid, int) { return tid == -1 ? EACCES : 0; };
  EXPECT_NE(pt_support(port).abilities.find("user and kernel code of own processes only"), std::string::npos);
  kernel_.open_error = [](const perf_event_attr&, int, int) { return EBUSY; };
  EXPECT_NE(pt_support(port).error.what.find("another tracer"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::capture::test
