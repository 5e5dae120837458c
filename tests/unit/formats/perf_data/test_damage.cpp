// Damaged perf.data: data that is kept, warnings, and context switches after damage.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>

#include "formats/perf_data/unpack.h"
#include "unit/support/makers/perf_packed.h"
#include "unit/support/makers/perf_sample.h"
#include "unit/support/traces/perf_reading.h"

namespace ptkit::formats {
namespace {

using test::Bytes;
using test::Features;
using test::kEach;
using test::packed;
using test::text;

class PerfDamage : public test::PerfReading {};

const std::string kStream = test::small_stream() + std::string(6, '\0');  // no padding
constexpr std::size_t kRecordsAt = 104 + 8 + 128;                         // of one event

// Records, and the offsets of some of them.
struct Recording {
  std::string records;
  std::vector<std::size_t> auxtrace;
  std::vector<std::size_t> names;

  Recording() : records(test::auxtrace_info()) {}
  void name() {
    names.push_back(records.size());
    records += test::comm({}, "name", false);
  }
  void add_auxtrace(std::uint32_t cpu) {
    auxtrace.push_back(records.size());
    records += test::auxtrace(cpu, kEach, cpu, 0, kStream);
  }
  // No size, or another one.
  void damage(std::size_t record, char size = 0) { records.replace(record + 6, 2, {size, 0}); }
  [[nodiscard]] std::string index() const {
    Bytes out;
    out.add(static_cast<std::uint64_t>(auxtrace.size()));
    for (const std::size_t at : auxtrace) out.add(std::uint64_t{kRecordsAt + at}, std::uint64_t{48});
    return out.str();
  }
  [[nodiscard]] std::string file(bool indexed = true) const {
    Features features{{9, test::kCpuid}};
    if (indexed) features.emplace(18, index());
    return test::perf_file({{}}, records, features);
  }
};

// A recording with COMM records before, between and after AUX chunks of four CPUs.
Recording four_cpus() {
  Recording out;
  for (std::uint32_t cpu = 0; cpu < 4; ++cpu) {
    out.name();
    out.add_auxtrace(cpu);
  }
  out.name();
  return out;
}

TEST_F(PerfDamage, ResumesAtIndexedAuxtraceRecords) {
  for (const char size : {'\0', '\7', '\x18', '\x7f'}) {
    SCOPED_TRACE(static_cast<int>(size));
    Recording recording = four_cpus();
    recording.damage(recording.names[0], size);
    const auto bundle = read(recording.file());
    ASSERT_EQ(bundle.streams.size(), 4U);
    for (const trace::Stream& stream : bundle.streams) EXPECT_EQ(text(stream), kStream);
    const auto is_of_damage = [](const trace::Warning& one) {
      return one.code == WarningCode::PERF_RECORDS_DAMAGED || one.code == WarningCode::PERF_RECORD_CUT;
    };
    EXPECT_TRUE(std::ranges::any_of(bundle.warnings, is_of_damage));
  }
}

TEST_F(PerfDamage, CountsDamagedPositions) {
  Recording recording = four_cpus();
  for (const std::size_t stream : {0U, 2U, 4U}) recording.damage(recording.names[stream]);
  const auto bundle = read(recording.file());
  EXPECT_EQ(bundle.streams.size(), 4U);
  EXPECT_TRUE(warns(bundle, WarningCode::PERF_RECORDS_DAMAGED, kRecordsAt + recording.names[0],
                    kRecordsAt + recording.auxtrace[0]));
  EXPECT_TRUE(warns(bundle, WarningCode::PERF_DAMAGE_REPEATED, 2));
  recording = four_cpus();
  recording.damage(recording.names.back());
  EXPECT_TRUE(
      warns(read(recording.file()), WarningCode::PERF_RECORD_DAMAGED, kRecordsAt + recording.names.back()));
}

TEST_F(PerfDamage, NamesTheDamageWithoutAnIndex) {
  Recording recording = four_cpus();
  recording.damage(recording.names[0]);
  const std::string why = failure(recording.file(false));
  EXPECT_NE(why.find("contains no trace"), std::string::npos) << why;
  const auto damage = warn(WarningCode::PERF_RECORD_DAMAGED, kRecordsAt + recording.names[0]);
  EXPECT_NE(why.find(damage.text()), std::string::npos) << why;
}

TEST_F(PerfDamage, IgnoresWrongIndexEntries) {
  Recording recording = four_cpus();
  const std::vector<std::size_t> right = recording.auxtrace;
  recording.auxtrace = {0,        8,        right[0] + 8, right[1] + 48,
                        right[2], right[1], right[1],     std::size_t{1} << 40U};
  const auto bundle = read(recording.file());
  ASSERT_EQ(bundle.streams.size(), 4U);
  for (const trace::Stream& stream : bundle.streams) EXPECT_EQ(text(stream), kStream);
  EXPECT_EQ(bundle.warnings, std::vector<trace::Warning>());
  std::string absurd = recording.index();
  absurd.replace(0, 8, std::string(8, '\xff'));
  EXPECT_EQ(read(test::perf_file({{}}, recording.records, {{9, test::kCpuid}, {18, absurd}})).streams.size(),
            4U);
}

TEST_F(PerfDamage, SkipsCompressedRecordsAfterDamage) {
  Recording recording;
  recording.records += packed(test::comm({}, "first", false), 4000);
  recording.name();
  recording.add_auxtrace(0);
  recording.records += packed(test::comm({}, "second", false), 4000);
  recording.damage(recording.names[0]);
  const auto bundle = read(recording.file());
  ASSERT_EQ(bundle.streams.size(), 1U);
  ASSERT_EQ(bundle.threads.size(), 1U);
  EXPECT_EQ(bundle.threads[0].name, "first");
}

TEST_F(PerfDamage, KnowsNoRunningThreadAfterDamage) {
  const std::string before = test::switched({.tid = 11, .tsc = 100}, false) +
                             test::switched({.tid = 12, .tsc = 200, .cpu = 1}, false) +
                             test::comm({.tid = 11, .tsc = 300}, "a", false);
  const std::size_t auxtrace = test::auxtrace_info().size() + before.size();
  const std::string index =
      Bytes().add(std::uint64_t{1}, std::uint64_t{kRecordsAt + auxtrace + 8}, std::uint64_t{48}).str();
  const std::string trace = test::auxtrace(0, kEach, 0, 0, kStream) + test::auxtrace(1, kEach, 1, 0, kStream);
  const auto bundle = read(test::perf_file({{}},
                                           test::auxtrace_info() + before + std::string(8, '\0') + trace +
                                               test::switched({.tid = 13, .tsc = 500}, false),
                                           {{9, test::kCpuid}, {18, index}}));
  ASSERT_EQ(bundle.streams.size(), 2U);
  const auto& switches = bundle.streams[0].switches;
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0].tid, 11);
  EXPECT_EQ(switches[1].tid, trace::kNoId);
  EXPECT_EQ(switches[1].tsc, 300U);
  EXPECT_EQ(switches[2].tid, 13);
  EXPECT_EQ(switches[2].tsc, 500U);
  const auto& others = bundle.streams[1].switches;  // known at no time
  EXPECT_TRUE(std::ranges::none_of(others, [](const trace::Switch& one) { return one.tsc > 200; }));
  ASSERT_FALSE(others.empty());
  EXPECT_EQ(others.back().tid, trace::kNoId);
}

// ---- packed records

// Bytes packed in one COMPRESSED record.
std::string packed_whole(const std::string& records) {
  std::string room(ZSTD_compressBound(records.size()), '\0');
  room.resize(ZSTD_compress(room.data(), room.size(), records.data(), records.size(), 3));
  EXPECT_LT(room.size(), 65000U);
  return test::record(81, 0, room);
}

TEST_F(PerfDamage, RefusesEndlessRecords) {
  std::string exits;
  const std::string one = test::event(4, 0, std::string(24, '\1'), {.tsc = 1000});
  while (exits.size() < std::size_t{8} << 20U) exits += one;
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  EXPECT_TRUE(warns(read(test::perf_file(records + packed_whole(exits))), WarningCode::COMPRESSED_TOO_LARGE));
  // A few records may repeat.
  const auto bundle = read(test::perf_file(records + packed_whole(exits.substr(0, one.size() * 20'000))));
  EXPECT_FALSE(warns(bundle, WarningCode::COMPRESSED_TOO_LARGE));
  EXPECT_EQ(bundle.sideband.size(), 20'000U);
}

TEST_F(PerfDamage, WarnsOfIncompletePackedRecords) {
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  const std::string name = test::comm({}, "a", false);
  EXPECT_FALSE(warns(read(test::perf_file(records + packed(name, 4000))), WarningCode::COMPRESSED_CUT));
  EXPECT_TRUE(warns(read(test::perf_file(records + packed(name + name.substr(0, 9), 4000))),
                    WarningCode::COMPRESSED_CUT));
  const auto bundle =
      read(test::perf_file(records + packed(test::auxtrace(1, kEach, 1, 0, kStream) + name, 4000)));
  EXPECT_EQ(bundle.streams.size(), 1U);
  EXPECT_EQ(bundle.threads.size(), 1U);
  EXPECT_TRUE(warns(bundle, WarningCode::COMPRESSED_NESTED, 1));
}

TEST_F(PerfDamage, PackedRecordsThatAreNoneAreNamed) {
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  const std::size_t at = kRecordsAt + records.size();
  EXPECT_TRUE(warns(read(test::perf_file(records + test::record(81, 0, "no zstd frame"))),
                    WarningCode::COMPRESSED_DAMAGED, at));
  EXPECT_TRUE(warns(read(test::perf_file(records + packed_whole(std::string(16, '\0')))),
                    WarningCode::COMPRESSED_INVALID, at));
  perf::Unpacker unpacker;
  unpacker.stop();
  perf::Record record;
  record.offset = 7;
  const auto gap = unpacker.unpack(record, [](const perf::Record&) {});
  EXPECT_EQ(gap, warn(WarningCode::COMPRESSED_GAP, 7));
}

// ---- header

TEST_F(PerfDamage, NamesWrongHeaders) {
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  const std::string good = test::perf_file({{}}, records, {{9, test::kCpuid}});
  const auto changed = [&](std::size_t at, std::uint64_t value) {
    std::string file = good;
    return read(file.replace(at, 8, Bytes().add(value).str()));
  };
  EXPECT_TRUE(warns(changed(48, 0), WarningCode::PERF_NOT_FINISHED));
  EXPECT_TRUE(warns(changed(24, std::uint64_t{1} << 40U), WarningCode::PERF_ATTRS_INVALID));
  EXPECT_TRUE(warns(read(good.substr(0, kRecordsAt + records.size() + 8)), WarningCode::PERF_FEATURES_CUT));
  const auto nameless = read(test::perf_file({{}}, records, {{9, test::text_feature("nonsense")}}));
  EXPECT_TRUE(warns(nameless, WarningCode::PERF_CPUID_UNKNOWN, "nonsense"));
  std::string timeless = records;
  timeless[8 + 40] = 0;  // cap_user_time_zero
  EXPECT_TRUE(warns(read(test::perf_file(timeless)), WarningCode::NO_TIME_CONVERSION));
}

TEST_F(PerfDamage, NamesFeaturesAfterTheEndOfTheFile) {
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  const std::vector<std::pair<unsigned, std::string>> features{{1, "TRACING_DATA"},   {2, "BUILD_ID"},
                                                               {9, "CPUID"},          {18, "AUXTRACE"},
                                                               {25, "BPF_PROG_INFO"}, {77, "number 77"}};
  for (const auto& [number, name] : features) {
    SCOPED_TRACE(name);
    std::string file = test::perf_file({{}}, records, {{number % 64, std::string(16, '\0')}});
    if (number >= 64) std::swap(file[72 + number / 8], file[72 + number % 64 / 8]);
    const std::size_t table = kRecordsAt + records.size();
    const auto size = static_cast<std::uint64_t>(file.size()) - table;
    EXPECT_FALSE(warns(read(file), WarningCode::PERF_FEATURES_MISSING));
    file.replace(table + 8, 8, Bytes().add(size).str());
    EXPECT_TRUE(warns(read(file), WarningCode::PERF_FEATURES_MISSING, name));
    file.replace(table, 8, Bytes().add(~std::uint64_t{0}).str());
    EXPECT_TRUE(warns(read(file), WarningCode::PERF_FEATURES_MISSING, name));
  }
}

TEST_F(PerfDamage, LimitsOverlappingIdLists) {
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  std::string file = test::perf_file({{}, {}}, records, {});
  EXPECT_FALSE(warns(read(file), WarningCode::PERF_IDS_INVALID));
  const std::size_t first = 104 + 16 + 112;  // offset of its id section
  for (const std::size_t offset : {first, first + 128})
    file.replace(offset, 16, Bytes().add(std::uint64_t{0}, std::uint64_t{file.size()}).str());
  const auto bundle = read(file);
  EXPECT_EQ(bundle.streams.size(), 1U);
  EXPECT_TRUE(warns(bundle, WarningCode::PERF_IDS_INVALID));
}

}  // namespace
}  // namespace ptkit::formats
