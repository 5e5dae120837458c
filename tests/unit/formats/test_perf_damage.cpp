// perf.data that is damaged: what is kept, what is told, and that nobody is believed to run where nothing
// tells.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>

#include "perf_packed.h"
#include "perf_reading.h"
#include "perf_sample.h"

namespace ptkit::formats {
namespace {

using test::Bytes;
using test::Features;
using test::kEach;
using test::packed;
using test::text;
using test::warns;

class PerfDamage : public test::PerfReading {};

const std::string kStream = test::small_stream() + std::string(6, '\0');  // no padding
constexpr std::size_t kRecordsAt = 104 + 8 + 128;                         // of one event

std::string at_byte(std::size_t in_records) {
  return "there is no record at byte " + std::to_string(kRecordsAt + in_records);
}

// Records, and where some of them begin.
struct Recording {
  std::string records;
  std::vector<std::size_t> pieces;
  std::vector<std::size_t> names;

  Recording() : records(test::auxtrace_info()) {}
  void name() {
    names.push_back(records.size());
    records += test::comm({}, "name", false);
  }
  void piece(std::uint32_t cpu) {
    pieces.push_back(records.size());
    records += test::auxtrace(cpu, kEach, cpu, 0, kStream);
  }
  // No size, or another one.
  void damage(std::size_t record, char size = 0) { records.replace(record + 6, 2, {size, 0}); }
  [[nodiscard]] std::string index() const {
    Bytes out;
    out.add(static_cast<std::uint64_t>(pieces.size()));
    for (const std::size_t piece : pieces) out.add(std::uint64_t{kRecordsAt + piece}, std::uint64_t{48});
    return out.str();
  }
  [[nodiscard]] std::string file(bool indexed = true) const {
    Features features{{9, test::kCpuid}};
    if (indexed) features.emplace(18, index());
    return test::perf_file({{}}, records, features);
  }
};

// A recording with names before, between and behind pieces of four CPUs.
Recording four_cpus() {
  Recording out;
  for (std::uint32_t cpu = 0; cpu < 4; ++cpu) {
    out.name();
    out.piece(cpu);
  }
  out.name();
  return out;
}

TEST_F(PerfDamage, TheIndexTellsWhereTraceGoesOn) {
  for (const char size : {'\0', '\7', '\x18', '\x7f'}) {
    SCOPED_TRACE(static_cast<int>(size));
    Recording recording = four_cpus();
    recording.damage(recording.names[0], size);
    const auto bundle = read(recording.file());
    ASSERT_EQ(bundle.streams.size(), 4U);
    for (const trace::Stream& stream : bundle.streams) EXPECT_EQ(text(stream), kStream);
    EXPECT_TRUE(warns(bundle, "record at byte ")) << bundle.warnings.front();
  }
}

TEST_F(PerfDamage, EachPlaceOfItIsCounted) {
  Recording recording = four_cpus();
  for (const std::size_t place : {0U, 2U, 4U}) recording.damage(recording.names[place]);
  const auto bundle = read(recording.file());
  EXPECT_EQ(bundle.streams.size(), 4U);
  EXPECT_TRUE(warns(bundle, at_byte(recording.names[0]) + "; what follows up to the piece of trace at byte " +
                                std::to_string(kRecordsAt + recording.pieces[0]) + " is not read"));
  EXPECT_TRUE(warns(bundle, "so it is at 2 more places"));
}

TEST_F(PerfDamage, WithoutAnIndexTheReasonIsNamed) {
  Recording recording = four_cpus();
  recording.damage(recording.names[0]);
  const std::string why = failure(recording.file(false));
  EXPECT_NE(why.find("contains no trace"), std::string::npos) << why;
  EXPECT_NE(why.find(at_byte(recording.names[0])), std::string::npos) << why;
}

TEST_F(PerfDamage, AnIndexThatIsWrongDoesNoHarm) {
  Recording recording = four_cpus();
  const std::vector<std::size_t> right = recording.pieces;
  recording.pieces = {0, 8, right[0] + 8, right[1] + 48, right[2], right[1], right[1], std::size_t{1} << 40U};
  const auto bundle = read(recording.file());
  ASSERT_EQ(bundle.streams.size(), 4U);
  for (const trace::Stream& stream : bundle.streams) EXPECT_EQ(text(stream), kStream);
  EXPECT_FALSE(warns(bundle, "byte "));
  std::string absurd = recording.index();
  absurd.replace(0, 8, std::string(8, '\xff'));
  EXPECT_EQ(read(test::perf_file({{}}, recording.records, {{9, test::kCpuid}, {18, absurd}})).streams.size(),
            4U);
}

TEST_F(PerfDamage, PackedRecordsBehindItAreNotUnpacked) {
  Recording recording;
  recording.records += packed(test::comm({}, "first", false), 4000);
  recording.name();
  recording.piece(0);
  recording.records += packed(test::comm({}, "second", false), 4000);
  recording.damage(recording.names[0]);
  const auto bundle = read(recording.file());
  ASSERT_EQ(bundle.streams.size(), 1U);
  ASSERT_EQ(bundle.threads.size(), 1U);
  EXPECT_EQ(bundle.threads[0].name, "first");
}

TEST_F(PerfDamage, NobodyIsBelievedToRunBehindIt) {
  const std::string before = test::switched({.tid = 11, .tsc = 100}, false) +
                             test::switched({.tid = 12, .tsc = 200, .cpu = 1}, false) +
                             test::comm({.tid = 11, .tsc = 300}, "a", false);
  const std::size_t piece = test::auxtrace_info().size() + before.size();
  const std::string index =
      Bytes().add(std::uint64_t{1}, std::uint64_t{kRecordsAt + piece + 8}, std::uint64_t{48}).str();
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

// What is packed at once.
std::string packed_whole(const std::string& records) {
  std::string room(ZSTD_compressBound(records.size()), '\0');
  room.resize(ZSTD_compress(room.data(), room.size(), records.data(), records.size(), 3));
  EXPECT_LT(room.size(), 65000U);
  return test::record(81, 0, room);
}

TEST_F(PerfDamage, RecordsThatAreToldWithoutEndAreNotRead) {
  std::string exits;
  const std::string one = test::event(4, 0, std::string(24, '\1'), {.tsc = 1000});
  while (exits.size() < std::size_t{8} << 20U) exits += one;
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  EXPECT_TRUE(warns(read(test::perf_file(records + packed_whole(exits))), "far more than what records"));
  // A few may repeat themselves as they like.
  const auto bundle = read(test::perf_file(records + packed_whole(exits.substr(0, one.size() * 20'000))));
  EXPECT_FALSE(warns(bundle, "far more than what records"));
  EXPECT_EQ(bundle.sideband.size(), 20'000U);
}

TEST_F(PerfDamage, WhatIsLeftOfPackedRecordsIsTold) {
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  const std::string name = test::comm({}, "a", false);
  EXPECT_FALSE(warns(read(test::perf_file(records + packed(name, 4000))), "packed"));
  EXPECT_TRUE(warns(read(test::perf_file(records + packed(name + name.substr(0, 9), 4000))),
                    "the last packed record ends within a record"));
  const auto bundle =
      read(test::perf_file(records + packed(test::auxtrace(1, kEach, 1, 0, kStream) + name, 4000)));
  EXPECT_EQ(bundle.streams.size(), 1U);
  EXPECT_EQ(bundle.threads.size(), 1U);
  EXPECT_TRUE(warns(bundle, "pieces of trace, or packed records, lie in packed records"));
}

// ---- header

TEST_F(PerfDamage, FeaturesBehindTheEndAreNamed) {
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
    EXPECT_FALSE(warns(read(file), "behind the file's end"));
    file.replace(table + 8, 8, Bytes().add(size).str());
    EXPECT_TRUE(
        warns(read(file), "features that are said to lie behind the file's end are not read: " + name + "."));
    file.replace(table, 8, Bytes().add(~std::uint64_t{0}).str());
    EXPECT_TRUE(warns(read(file), name + "."));
  }
}

TEST_F(PerfDamage, NumbersOfEventsThatLieOverEachOther) {
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, kStream);
  std::string file = test::perf_file({{}, {}}, records, {});
  EXPECT_FALSE(warns(read(file), "numbers"));
  const std::size_t first = 104 + 16 + 112;  // where it says where its numbers are
  for (const std::size_t place : {first, first + 128})
    file.replace(place, 16, Bytes().add(std::uint64_t{0}, std::uint64_t{file.size()}).str());
  const auto bundle = read(file);
  EXPECT_EQ(bundle.streams.size(), 1U);
  EXPECT_TRUE(warns(bundle, "its events have more numbers than the file has room for"));
}

}  // namespace
}  // namespace ptkit::formats
