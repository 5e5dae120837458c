// Parts of the driver back end: configurations and their errors, sideband records.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>

#include "capture/device/config.h"
#include "capture/linux/driver/sideband.h"
#include "capture/linux/session/filter_resolver.h"
#include "capture/linux/sideband/kernel_code.h"
#include "fake_driver.h"
#include "unit/capture/linux/output/bundle_fixture.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {
namespace {

// ---- configurations

RecordOptions whole_machine() {
  RecordOptions options;
  options.cpus.all = true;
  options.timing.emplace();
  options.mtc_period = 3;
  return options;
}

ptkit_config configured(const RecordOptions& options, const ptkit_query& query = capable_query()) {
  std::vector<trace::Warning> warnings;
  auto config = driver_config(options, query, warnings);
  EXPECT_TRUE(config.ok()) << config.failure().detail;
  return config.ok() ? config.value() : ptkit_config{};
}

std::string refused(const RecordOptions& options, const ptkit_query& query = capable_query()) {
  std::vector<trace::Warning> warnings;
  const auto config = driver_config(options, query, warnings);
  EXPECT_FALSE(config.ok());
  return config.ok() ? "" : config.failure().detail;
}

TEST(DriverConfig, SetsFieldsByOptions) {
  RecordOptions options = whole_machine();
  options.levels.kernel = options.packets.ptwrite = options.timing->cyc = true;
  options.cyc_threshold = 5;
  options.psb_period = 8192;
  options.return_compression = false;
  const ptkit_config config = configured(options);
  EXPECT_EQ(config.flags, PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL | PTKIT_TRACE_BRANCHES | PTKIT_TRACE_TSC |
                              PTKIT_TRACE_MTC | PTKIT_TRACE_CYC | PTKIT_TRACE_PTWRITE |
                              PTKIT_TRACE_PTWRITE_FUP | PTKIT_TRACE_NO_RETC);
  EXPECT_EQ(config.mtc_freq, 3);
  EXPECT_EQ(config.cyc_thresh, 5);
  EXPECT_EQ(config.psb_freq, 2);
  EXPECT_EQ(config.mode, static_cast<std::uint32_t>(PTKIT_MODE_FULL));
  EXPECT_EQ(config.buffer_bytes, std::uint64_t{4} << 20U);
  EXPECT_EQ(config.wake_up_bytes, std::uint64_t{1} << 20U);
  EXPECT_EQ(config.sideband_bytes, std::uint64_t{1} << 20U);
}

TEST(DriverConfig, RoundsBufferSizes) {
  RecordOptions options = whole_machine();
  options.ring = 100'000;
  EXPECT_EQ(configured(options).buffer_bytes, 25 * kPage);
  EXPECT_EQ(configured(options).wake_up_bytes, 0U);
  options.single_range = true;
  const ptkit_config config = configured(options);
  EXPECT_EQ(config.buffer_bytes, 32 * kPage);
  EXPECT_EQ(config.output, static_cast<std::uint32_t>(PTKIT_OUTPUT_SINGLE_RANGE));
  EXPECT_EQ(config.mode, static_cast<std::uint32_t>(PTKIT_MODE_RING));
}

// Errata TGL052, ADL037, RPL017.
TEST(DriverConfig, TakesToPAWhereErrataForbidSingleRange) {
  RecordOptions options = whole_machine();
  options.ring = 8 * kPage;
  options.single_range = true;
  ptkit_query query = capable_query();
  for (const std::uint64_t most : {std::uint64_t{0}, 4 * kPage, 8 * kPage}) {
    query.most_single_bytes = most;
    std::vector<trace::Warning> warnings;
    const auto config = driver_config(options, query, warnings);
    ASSERT_TRUE(config.ok());
    const bool replaced = most == 4 * kPage;
    EXPECT_EQ(config.value().output,
              static_cast<std::uint32_t>(replaced ? PTKIT_OUTPUT_TOPA : PTKIT_OUTPUT_SINGLE_RANGE));
    EXPECT_EQ(config.value().buffer_bytes, 8 * kPage);
    ASSERT_EQ(warnings.size(), replaced ? 1U : 0U);
    if (replaced) {
      EXPECT_EQ(warnings[0].code, WarningCode::SINGLE_RANGE_ERRATUM);
    }
  }
}

TEST(DriverConfig, RejectsMissingFeaturesByOption) {
  RecordOptions options = whole_machine();
  options.mtc_period = 4;
  EXPECT_EQ(refused(options), "mtc_period: this processor does not have that period; it has 0, 3, 6, 9");
  options = whole_machine();
  options.psb_period = 1U << 20U;
  EXPECT_EQ(refused(options),
            "psb_period: this processor has only 2048, 4096, 8192, 16384, 32768, 65536 bytes");
  options = whole_machine();
  options.timing->cyc = true;
  options.cyc_threshold = 15;
  EXPECT_EQ(refused(options).substr(0, 13), "cyc_threshold");
  ptkit_query query = capable_query();
  query.cpuid_14_0[1] = 0;
  EXPECT_EQ(refused(whole_machine(), query), "timing: this processor has no MTC packets; leave \"mtc\" out");
  options = whole_machine();
  options.timing.reset();
  options.mtc_period.reset();
  EXPECT_EQ(configured(options, query).flags & PTKIT_TRACE_MTC, 0U);
  options = whole_machine();
  options.mtc_period.reset();
  EXPECT_EQ(configured(options).mtc_freq, 3);  // the nearest period
  options = whole_machine();
  options.timing->mtc = false;
  EXPECT_EQ(configured(options, query).psb_freq, 0);  // the only PSB frequency
  options.packets.ptwrite = true;
  EXPECT_EQ(refused(options, query).substr(0, 8), "packets:");
}

TEST(DriverConfig, RejectsOrWarnsOfMissingDriverFeatures) {
  RecordOptions options = whole_machine();
  options.cpus.all = false;
  options.levels.kernel = true;
  ptkit_query query = capable_query();
  query.features = PTKIT_FEATURE_TOPA | PTKIT_FEATURE_PROCESS;
  EXPECT_EQ(refused(options, query).substr(0, 7), "levels:");
  options.levels.kernel = false;
  std::vector<trace::Warning> warnings;
  const auto config = driver_config(options, query, warnings);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().flags & PTKIT_TRACE_CHILDREN, 0U);
  EXPECT_EQ(config.value().sideband_bytes, 0U);
  EXPECT_EQ(config.value().wake_up_bytes, 0U);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0].code, WarningCode::CHILDREN_UNSUPPORTED);
  EXPECT_EQ(warnings[1].code, WarningCode::SIDEBAND_UNSUPPORTED);
  query.features = PTKIT_FEATURE_TOPA;
  EXPECT_EQ(refused(options, query).substr(0, 4), "pid:");
}

TEST(DriverConfig, RejectsOptionsThatTheMachineLacks) {
  const std::vector<std::pair<void (*)(RecordOptions&), std::string>> cases{
      {[](RecordOptions& o) {
         o.cpus.numbers = {0, 2};
       },
       "cpus: expected numbers below 2, found 2"},
      {[](RecordOptions& o) { o.single_range = true; }, "single_range: a contiguous buffer"},
      {[](RecordOptions& o) { o.buffer = std::uint64_t{1} << 40U; }, "buffer: "},
  };
  for (const auto& [change, words] : cases) {
    RecordOptions options = whole_machine();
    change(options);
    EXPECT_EQ(refused(options).substr(0, words.size()), words);
  }
}

TEST(DriverConfig, NamesOptionOfRefusedField) {
  ptkit_config config{};
  config.refused = offsetof(ptkit_config, buffer_bytes);
  EXPECT_EQ(config_error(EINVAL, config).detail.substr(0, 12), "buffer, ring");
  config.refused = offsetof(ptkit_config, ranges) + 2 * sizeof(ptkit_range);
  EXPECT_EQ(config_error(EOPNOTSUPP, config).detail.substr(0, 8), "filters:");
  EXPECT_EQ(config_error(ESRCH, config).detail.substr(0, 4), "pid:");
}

TEST(DriverConfig, DescribesRegistersAndClock) {
  RecordOptions options = whole_machine();
  options.levels.kernel = true;
  ptkit_config config = configured(options);
  config.range_count = 1;
  config.ranges[0] = {0x1000, 0x1fff, PTKIT_RANGE_STOP, 0};
  const trace::Configuration out = recorded_configuration(config, capable_query());
  EXPECT_EQ(out.ip_payloads, trace::IpPayloads::EFFECTIVE);
  ptkit_query linear = capable_query();
  linear.cpuid_14_0[2] |= 1U << PT_CPUID_14_ECX_LIP;
  EXPECT_EQ(recorded_configuration(config, linear).ip_payloads, trace::IpPayloads::LINEAR);
  EXPECT_EQ(out.rtit_ctl >> PT_CTL_OS & 3U, 3U);
  EXPECT_EQ(out.rtit_ctl >> PT_CTL_ADDR0_CFG_SHIFT & 15U, 2U);
  EXPECT_EQ(out.ranges[0].kind, trace::RangeKind::TRACE_STOP);
  EXPECT_EQ(out.ranges[0].last, 0x1fffU);
  EXPECT_EQ(out.cpu.family, 6);
  EXPECT_EQ(out.cpu.model, 0x5e);
  EXPECT_EQ(out.cpu.stepping, 3);
  EXPECT_EQ(out.clock.mtc_period, 3);
  EXPECT_EQ(out.clock.max_nonturbo_ratio, 30);
  EXPECT_EQ(out.clock.tsc_ctc_numerator, 250U);
}

// The measured frequency is a little below the nominal one, or above it.
TEST(DriverConfig, TakesNominalRatioFromPlatformInfo) {
  const ptkit_config config = configured(whole_machine());
  ptkit_query query = capable_query();
  query.tsc_khz = 2'095'078;  // Skylake-SP, 2.1 GHz
  EXPECT_EQ(recorded_configuration(config, query).clock.max_nonturbo_ratio, 21);
  query.tsc_khz = 2'904'001;
  EXPECT_EQ(recorded_configuration(config, query).clock.max_nonturbo_ratio, 29);
  query.nominal_ratio = 28;
  EXPECT_EQ(recorded_configuration(config, query).clock.max_nonturbo_ratio, 28);
}

// TSC frequencies are crystal x EBX / EAX of CPUID 15H. Where 15H names no crystal, the SDM does.
struct KnownPart {
  const char* name;
  std::uint32_t eax;  // of 15H; 0: the processor has no such leaf
  std::uint32_t ebx;
  double crystal_hz;
  std::uint32_t tsc_khz;       // as a kernel measures it
  std::uint8_t platform_info;  // bits 15:8
  double nominal_hz;           // of core cycles at that ratio
};

constexpr KnownPart kKnownParts[] = {
    {"Broadwell, 2.7 GHz", 0, 0, 0, 2'693'907, 27, 2.7e9},
    {"Skylake, 4.0 GHz", 2, 334, 24e6, 4'008'000, 40, 4.0e9},
    {"Kaby Lake, 3.6 GHz", 2, 300, 24e6, 3'600'000, 36, 3.6e9},
    {"Skylake-SP, 2.1 GHz", 2, 168, 25e6, 2'095'078, 21, 2.1e9},
    {"Cascade Lake, 2.5 GHz", 2, 200, 25e6, 2'494'140, 25, 2.5e9},
    {"Goldmont, 1.1 GHz", 3, 171, 19.2e6, 1'094'400, 11, 1.1e9},
    {"Ice Lake, 1.5 GHz", 2, 78, 38.4e6, 1'497'600, 15, 1.5e9},
    {"Ice Lake-SP, 2.0 GHz", 2, 160, 25e6, 2'000'000, 20, 2.0e9},
    {"Tiger Lake, 2.8 GHz", 2, 146, 38.4e6, 2'803'200, 28, 2.8e9},
    {"Alder Lake, 3.2 GHz", 2, 166, 38.4e6, 3'187'200, 32, 3.2e9},
};

TEST(DriverConfig, TimesAreNominalOnKnownParts) {
  const ptkit_config config = configured(whole_machine());
  for (const KnownPart& part : kKnownParts) {
    ptkit_query query = capable_query();
    query.cpuid_15[0] = part.eax;
    query.cpuid_15[1] = part.ebx;
    query.tsc_khz = part.tsc_khz;
    for (const std::uint8_t known : {part.platform_info, std::uint8_t{0}}) {  // 0: of an older driver
      query.nominal_ratio = known;
      const trace::Clock clock = recorded_configuration(config, query).clock;
      EXPECT_EQ(clock.max_nonturbo_ratio, part.platform_info) << part.name;
      // Cycles at CBR 8 are ratio / 8 ticks each.
      const double ticks = 1e9 * clock.max_nonturbo_ratio / 8;
      const double nominal_seconds = 1e9 / (part.nominal_hz * 8 / part.platform_info);
      EXPECT_NEAR(ticks / static_cast<double>(clock.tsc_hz) / nominal_seconds, 1, 0.006) << part.name;
      if (part.eax == 0) {
        EXPECT_EQ(clock.tsc_ctc_denominator, 0U) << part.name;
        continue;
      }
      // A second of MTC's crystal clock is as many ticks as the TSC has.
      const double per_second = part.crystal_hz * clock.tsc_ctc_numerator / clock.tsc_ctc_denominator;
      EXPECT_NEAR(per_second / static_cast<double>(clock.tsc_hz), 1, 0.003) << part.name;
    }
  }
}

// ---- filters

TEST(FilterResolver, RejectsStartAndStop) {
  RecordOptions options = whole_machine();
  EXPECT_FALSE(check_filters(options, 2));
  options.filters.resize(3);
  EXPECT_EQ(check_filters(options, 2)->detail, "filters: this processor has 2 ranges, found 3");
  options.filters.resize(1);
  options.filters[0].kind = FilterRequest::Kind::START;
  EXPECT_EQ(check_filters(options, 2)->detail.substr(0, 34), "filters: a processor has no start ");
}

extern "C" __attribute__((noinline, used)) int ptkit_filtered_function(int value) { return value * 3; }

TEST(FilterResolver, ResolvesSymbolsOfProcess) {
  RecordOptions options = whole_machine();
  options.filters.push_back({FilterRequest::Kind::FILTER, "", "ptkit_filtered_function", 0, 0});
  options.filters.push_back({FilterRequest::Kind::TRACESTOP, "", "", 0x1000, 0x1fff});
  FileParser parser;
  const auto ranges = resolve_filters(options, ::getpid(), KernelCode(), parser);
  ASSERT_TRUE(ranges.ok()) << ranges.failure().detail;
  ASSERT_EQ(ranges.value().size(), 2U);
  EXPECT_EQ(ranges.value()[0].first, reinterpret_cast<std::uint64_t>(&ptkit_filtered_function));
  EXPECT_GT(ranges.value()[0].last, ranges.value()[0].first);
  EXPECT_EQ(ranges.value()[0].mapping.path, program_path(::getpid()));
  EXPECT_GT(ranges.value()[0].file_offset, 0U);
  EXPECT_EQ(ranges.value()[1].kind, FilterRequest::Kind::TRACESTOP);
  EXPECT_EQ(ranges.value()[1].mapping.path, "");
  options.filters[0].symbol = "ptkit_filtered_functio";
  const auto missing = resolve_filters(options, ::getpid(), KernelCode(), parser);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.failure().detail.find("there are ptkit_filtered_function"), std::string::npos);
}

// ---- sideband

ptkit_record head_of(std::uint16_t type, std::uint64_t tsc, std::int32_t pid, std::int32_t tid) {
  return {type, 0, 0, tsc, pid, tid};
}

class DriverSideband : public ::testing::Test {
 protected:
  DriverSideband() {
    device_.cpus[0].sideband.assign(kPage, 0xee);
    device_.cpus[0].status.sideband_head = kPage - 40;  // so that records wrap
  }
  DriverRecords read() {
    const FakeDevice::Cpu& cpu = device_.cpus[0];
    return read_records(cpu.sideband, kPage - 40, cpu.status.sideband_head);
  }
  FakeDevice device_;
};

TEST_F(DriverSideband, ReadsRecordsAcrossWrap) {
  device_.write_record(0, ptkit_record_space{head_of(PTKIT_RECORD_SWITCH, 10, 7, 8), 0x1000, 0x2000});
  device_.write_record(0, ptkit_record_fork{{head_of(PTKIT_RECORD_FORK, 11, 9, 9), 0x3000, 0x4000}, 7, 8});
  device_.write_record(0, ptkit_record_exit{head_of(PTKIT_RECORD_EXIT, 12, 9, 9), 256, 0});
  ptkit_record_module module{head_of(PTKIT_RECORD_MODULE, 13, 0, 0), 0x4000, 0x1000, "e1000e"};
  device_.write_record(0, module);
  std::memset(module.name, 'n', sizeof module.name);  // as long as a name can be
  device_.write_record(0, module);
  device_.write_record(0, ptkit_record_space{head_of(PTKIT_RECORD_EXEC, 14, 9, 9), 0x5000, 0x6000});
  device_.write_record(0, ptkit_record_space{head_of(PTKIT_RECORD_SPACE, 14, 9, 9), 0x7000, 0x8000});
  device_.write_record(0, head_of(99, 15, 0, 0), "of the future");
  device_.write_record(0, ptkit_record_lost{head_of(PTKIT_RECORD_LOST, 16, 0, 0), 5});
  const DriverRecords got = read();
  EXPECT_EQ(got.bad_bytes, 0U);
  EXPECT_EQ(got.unknown, 1U);
  EXPECT_EQ(got.read_to, device_.cpus[0].status.sideband_head);
  ASSERT_EQ(got.records.size(), 8U);
  EXPECT_EQ(got.records[0].kernel_cr3, 0x1000U);
  EXPECT_EQ(got.records[0].user_cr3, 0x2000U);
  EXPECT_EQ(got.records[0].tid, 8);
  EXPECT_EQ(got.records[1].parent_tid, 8);
  EXPECT_TRUE(got.records[1].cr3_known);
  EXPECT_EQ(got.records[1].kernel_cr3, 0x3000U);
  EXPECT_EQ(got.records[1].user_cr3, 0x4000U);
  EXPECT_EQ(got.records[2].status, 1);
  EXPECT_EQ(got.records[3].kind, SystemRecord::Kind::MODULE);
  EXPECT_EQ(got.records[3].address, 0x4000U);
  EXPECT_EQ(got.records[3].bytes, 0x1000U);
  EXPECT_EQ(got.records[3].text, "e1000e");
  EXPECT_EQ(got.records[4].text, std::string(sizeof module.name, 'n'));
  EXPECT_EQ(got.records[5].kind, SystemRecord::Kind::PROGRAM);
  EXPECT_EQ(got.records[5].kernel_cr3, 0x5000U);
  EXPECT_EQ(got.records[6].kind, SystemRecord::Kind::SPACE);
  EXPECT_EQ(got.records[6].user_cr3, 0x8000U);
  EXPECT_EQ(got.records[7].count, 5U);
}

TEST_F(DriverSideband, StopsAtMalformedRecord) {
  device_.write_record(0, ptkit_record_exit{head_of(PTKIT_RECORD_EXIT, 14, 9, 9), 0, 0});
  const std::uint64_t good = device_.cpus[0].status.sideband_head;
  device_.write_record(0, ptkit_record_exit{head_of(PTKIT_RECORD_EXIT, 15, 9, 9), 0, 0});
  for (const std::uint16_t size : std::initializer_list<std::uint16_t>{0, 16, 25, 0xfff8}) {
    std::memcpy(device_.cpus[0].sideband.data() + good % kPage + 2, &size, sizeof size);
    const DriverRecords got = read();
    EXPECT_EQ(got.records.size(), 1U);
    EXPECT_EQ(got.bad_bytes, device_.cpus[0].status.sideband_head - good);
  }
  const std::vector<std::uint8_t>& ring = device_.cpus[0].sideband;
  EXPECT_TRUE(read_records(ring, 5000, 4000).records.empty());
  EXPECT_TRUE(read_records(ring, 0, kPage + 8).records.empty());
  EXPECT_TRUE(read_records({}, 0, 8).records.empty());
}

TEST(DriverSidebandRing, SurvivesRandomBytes) {
  std::mt19937_64 random(5);
  std::vector<std::uint8_t> ring(kPage);
  for (int round = 0; round < 2000; ++round) {
    for (std::uint8_t& byte : ring) byte = random() % 4 == 0 ? static_cast<std::uint8_t>(random()) : 0;
    // Some sizes are plausible.
    for (int i = 0; i < 40; ++i)
      ring[random() % (kPage / 8) * 8 + 2] = static_cast<std::uint8_t>(random() % 12 * 8);
    const std::uint64_t from = random() % (4 * kPage) / 8 * 8;
    const DriverRecords got = read_records(ring, from, from + random() % (kPage + 1));
    for (const SystemRecord& record : got.records) EXPECT_LE(record.text.size(), kPage);
  }
}

}  // namespace
}  // namespace ptkit::capture::test
