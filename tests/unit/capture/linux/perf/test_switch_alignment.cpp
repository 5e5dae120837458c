// Alignment of context switches to PIP packets in recordings of perf with kernel code.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "packet/decoder.h"
#include "recording.h"
#include "trace_unit/generator/packet_generator.h"

namespace ptkit::capture::test {
namespace {

namespace perf = formats::perf;

constexpr std::uint64_t kLate = 3000;  // ticks, by which SWITCH records are late

class PerfSwitchAlignment : public PerfRecording {
 protected:
  PerfSwitchAlignment() {
    options_.levels.kernel = true;
    kernel_.files["/proc/sys/kernel/perf_event_paranoid"] = "-1";
  }

  // Two processes run alternately, in kernel code.
  static Bytes traced(std::uint64_t ticks) {
    constexpr std::uint64_t kKernel = 0xffffffff81000000;
    Bytes out;
    trace_unit::generator::GeneratorConfig config;
    config.user_only = false;
    config.mtc = true;
    config.tsc_ctc_numerator = 250;  // as in sysfs
    config.tsc_ctc_denominator = 2;
    trace_unit::generator::PacketGenerator tracing_event(
        config, [&](base::Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
    tracing_event.set_time(1000, 1000);
    tracing_event.set_cr3(0x10000);
    tracing_event.enable(kKernel);
    for (std::uint64_t i = 1; i < 4; ++i) {
      tracing_event.set_time(i * ticks - 500, i * ticks - 500);
      tracing_event.jump_indirect(kKernel + 64);
      tracing_event.set_time(i * ticks, i * ticks);
      tracing_event.set_cr3(i % 2 == 0 ? 0x10000 : 0x20000);
      tracing_event.jump_indirect(kKernel);
    }
    tracing_event.set_time(4 * ticks, 4 * ticks);
    tracing_event.disable();
    tracing_event.flush();
    return out;
  }

  static constexpr std::uint64_t kTicks = 100'000;  // of each run

  static void begin(FakeKernel& kernel) {
    for (const int pid : {kFirst, kFirst + 1}) {
      kernel.write_record(0, perf::MMAP2, 0, {500, pid, pid},
                          mapping(pid, 0x400000, 4096, std::filesystem::canonical("/bin/sh")));
    }
    kernel.write_record(0, perf::SWITCH, 0, {1000, kFirst, kFirst}, {});
  }

  static void run(FakeKernel& kernel) {
    begin(kernel);
    for (int i = 1; i < 4; ++i) {
      const int pid = kFirst + i % 2;
      kernel.write_record(0, perf::SWITCH, 0, {static_cast<std::uint64_t>(i) * kTicks + kLate, pid, pid}, {});
    }
    kernel.write(0, traced(kTicks));
  }

  // Offsets of PIPs, the first one where tracing begins.
  static std::vector<std::uint64_t> offsets(const trace::Stream& stream) {
    packet::PacketDecoder packets(stream.data.bytes());
    std::vector<std::uint64_t> out;
    EXPECT_EQ(packets.sync_forward(0), base::Status::OK);
    for (packet::Packet one; packets.next(one) == base::Status::OK;) {
      if (one.kind == packet::PacketKind::PIP) out.push_back(one.offset);
    }
    return out;
  }

  // The CPU is held up (SMI) between the write to CR3 and the SWITCH IN record.
  static constexpr std::uint64_t kLong = 20 * kTicks;
  static constexpr std::uint64_t kHeldUp = 4 * kTicks;
  static void run_slowly(FakeKernel& kernel) {
    begin(kernel);
    for (int i = 1; i < 4; ++i) {
      const int in = kFirst + i % 2;
      const int out = kFirst + (i + 1) % 2;
      const std::uint64_t tsc = static_cast<std::uint64_t>(i) * kLong;
      kernel.write_record(0, perf::SWITCH, kOut, {tsc - 1000, out, out}, {});
      kernel.write_record(0, perf::SWITCH, 0, {tsc + kHeldUp, in, in}, {});
    }
    kernel.write(0, traced(kLong));
  }

  void expect_offsets(std::uint64_t ticks = kTicks, std::uint64_t late = kLate) {
    const trace::TraceBundle bundle = read();
    const trace::Stream& stream = bundle.streams[0];
    const std::vector<std::uint64_t> expected = offsets(stream);
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

TEST_F(PerfSwitchAlignment, AlignsSwitchesToPips) {
  kernel_.script.emplace_back(&run);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  expect_offsets();
}

TEST_F(PerfSwitchAlignment, FindsPipBetweenDistantRecords) {
  kernel_.script.emplace_back(&run_slowly);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  expect_offsets(kLong, (kHeldUp - 1000) / 2);
}

TEST_F(PerfSwitchAlignment, NeedsNoUserCode) {
  options_.levels.user = false;
  kernel_.script.emplace_back(&run);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  expect_offsets();
}

TEST_F(PerfSwitchAlignment, NeedsKernelCode) {
  options_.levels.kernel = false;
  kernel_.script.emplace_back(&run);
  ASSERT_TRUE(record().ok());
  const trace::TraceBundle bundle = read();
  EXPECT_FALSE(bundle.streams[0].switches_by_offset);
  EXPECT_EQ(bundle.streams[0].switches.size(), 4U);
}

TEST_F(PerfSwitchAlignment, KeepsTimesIfBundleIsUnreadable) {
  kernel_.script.emplace_back(&run);
  kernel_.script.emplace_back([this](auto&) { std::filesystem::remove(options_.output); });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::PIP_NO_FILE));
}

TEST_F(PerfSwitchAlignment, KeepsTimesIfBundleWasReplaced) {
  kernel_.script.emplace_back(&run);
  kernel_.script.emplace_back([this](auto&) {
    std::filesystem::remove(options_.output);
    std::ofstream(options_.output) << "no bundle";
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::PIP_UNREADABLE));
}

}  // namespace
}  // namespace ptkit::capture::test
