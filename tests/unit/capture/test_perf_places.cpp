// What perf's back end finds out about switches where the kernel was traced: where they are in the trace.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "packet/decoder.h"
#include "perf_recording.h"
#include "softpt/unit.h"

namespace ptkit::capture::test {
namespace {

namespace perf = formats::perf;

constexpr std::uint64_t kLate = 3000;  // ticks, that records of switches are

class PerfPlaces : public PerfRecording {
 protected:
  PerfPlaces() {
    options_.hardware.kernel = true;
    kernel_.files["/proc/sys/kernel/perf_event_paranoid"] = "-1";
  }

  // Two processes in turns, in kernel code.
  static Bytes traced(std::uint64_t ticks) {
    constexpr std::uint64_t kKernel = 0xffffffff81000000;
    Bytes out;
    softpt::UnitConfig config;
    config.user_only = false;
    config.mtc = true;
    config.tsc_ctc_numerator = 250;  // as the kernel's files say
    config.tsc_ctc_denominator = 2;
    softpt::PtUnit unit(config,
                        [&](base::Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
    unit.set_time(1000, 1000);
    unit.set_cr3(0x10000);
    unit.enable(kKernel);
    for (std::uint64_t i = 1; i < 4; ++i) {
      unit.set_time(i * ticks - 500, i * ticks - 500);
      unit.jump_indirect(kKernel + 64);
      unit.set_time(i * ticks, i * ticks);
      unit.set_cr3(i % 2 == 0 ? 0x10000 : 0x20000);
      unit.jump_indirect(kKernel);
    }
    unit.set_time(4 * ticks, 4 * ticks);
    unit.disable();
    unit.flush();
    return out;
  }

  static constexpr std::uint64_t kTicks = 100'000;  // for which each of them runs

  static void begin(FakeKernel& kernel) {
    for (const int pid : {kFirst, kFirst + 1}) {
      kernel.tell(0, perf::MMAP2, 0, {500, pid, pid},
                  mapping(pid, 0x400000, 4096, std::filesystem::canonical("/bin/sh")));
    }
    kernel.tell(0, perf::SWITCH, 0, {1000, kFirst, kFirst}, {});
  }

  static void run(FakeKernel& kernel) {
    begin(kernel);
    for (int i = 1; i < 4; ++i) {
      const int pid = kFirst + i % 2;
      kernel.tell(0, perf::SWITCH, 0, {static_cast<std::uint64_t>(i) * kTicks + kLate, pid, pid}, {});
    }
    kernel.write(0, traced(kTicks));
  }

  // Where page tables change, the first time when tracing begins.
  static std::vector<std::uint64_t> places(const trace::Stream& stream) {
    packet::PacketDecoder packets(stream.data.bytes());
    std::vector<std::uint64_t> out;
    EXPECT_EQ(packets.sync_forward(0), base::Status::OK);
    for (packet::Packet one; packets.next(one) == base::Status::OK;) {
      if (one.kind == packet::PacketKind::PIP) out.push_back(one.offset);
    }
    return out;
  }

  // The processor is held up between page tables and the record of the thread that comes in.
  static constexpr std::uint64_t kLong = 20 * kTicks;
  static constexpr std::uint64_t kHeldUp = 4 * kTicks;
  static void run_slowly(FakeKernel& kernel) {
    begin(kernel);
    for (int i = 1; i < 4; ++i) {
      const int in = kFirst + i % 2;
      const int out = kFirst + (i + 1) % 2;
      const std::uint64_t tsc = static_cast<std::uint64_t>(i) * kLong;
      kernel.tell(0, perf::SWITCH, kOut, {tsc - 1000, out, out}, {});
      kernel.tell(0, perf::SWITCH, 0, {tsc + kHeldUp, in, in}, {});
    }
    kernel.write(0, traced(kLong));
  }

  void expect_places(std::uint64_t ticks = kTicks, std::uint64_t late = kLate) {
    const trace::TraceBundle bundle = read();
    const trace::Stream& stream = bundle.streams[0];
    const std::vector<std::uint64_t> expected = places(stream);
    ASSERT_EQ(expected.size(), 4U);
    ASSERT_TRUE(stream.switches_by_offset);
    ASSERT_EQ(stream.switches.size(), 4U);
    for (std::size_t i = 1; i < 4; ++i) {
      EXPECT_EQ(stream.switches[i].offset, expected[i] + 1);
      EXPECT_EQ(stream.switches[i].tsc, i * ticks + late);
      EXPECT_EQ(stream.switches[i].tid, kFirst + static_cast<int>(i % 2));
    }
    EXPECT_TRUE(bundle.streams[1].switches.empty());
  }
};

TEST_F(PerfPlaces, SwitchesAreWherePageTablesChange) {
  kernel_.script.emplace_back(&run);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  expect_places();
}

TEST_F(PerfPlaces, AreBetweenTheRecordsOfTheTwoThreadsHoweverLongThatTakes) {
  kernel_.script.emplace_back(&run_slowly);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  expect_places(kLong, (kHeldUp - 1000) / 2);
}

TEST_F(PerfPlaces, UserCodeIsNotNeededForThat) {
  options_.hardware.user = false;
  kernel_.script.emplace_back(&run);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  expect_places();
}

TEST_F(PerfPlaces, OfUserCodeAloneThereAreNone) {
  options_.hardware.kernel = false;
  kernel_.script.emplace_back(&run);
  ASSERT_TRUE(record().ok());
  const trace::TraceBundle bundle = read();
  EXPECT_FALSE(bundle.streams[0].switches_by_offset);
  EXPECT_EQ(bundle.streams[0].switches.size(), 4U);
}

TEST_F(PerfPlaces, WhatCannotBeReadAgainIsTakenByTime) {
  kernel_.script.emplace_back(&run);
  kernel_.script.emplace_back([this](auto&) { std::filesystem::remove(options_.output); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(mentions(result.value().warnings, "told by time alone"));
}

}  // namespace
}  // namespace ptkit::capture::test
