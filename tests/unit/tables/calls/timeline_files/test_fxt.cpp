// Fuchsia trace format, read back by a small reader.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>

#include "tables/calls/timeline_files/fxt_records.h"
#include "unit/tables/calls/timeline_files/made_timeline.h"

namespace ptkit::tables::calls {
namespace {

struct Event {
  std::uint64_t type = 0;
  std::uint64_t ns = 0;
  std::uint64_t tid = 0;
  std::string name;
  std::map<std::string, std::string> arguments;
};

struct FxtReader {
  std::vector<Event> events;
  std::map<std::uint64_t, std::string> names;  // of processes and threads
  std::vector<std::string> logs;
  std::size_t strings = 0;  // that were sent

  explicit FxtReader(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t header = word(bytes, 0);
      const std::uint64_t size = header >> 4U & 0xfffU;
      EXPECT_GT(size, 0U);
      if (size == 0) return;
      read_record(header, bytes.substr(8, size * 8 - 8));
      bytes.remove_prefix(size * 8);
    }
  }

 private:
  static std::uint64_t word(std::string_view bytes, std::size_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.substr(index * 8).data(), sizeof value);
    return value;
  }
  void read_record(std::uint64_t header, std::string_view body) {
    const std::uint64_t type = header & 0xfU;
    if (type == 2) {
      table_[header >> 16U & 0x7fffU] = body.substr(0, header >> 32U & 0x7fffU);
      ++strings;
    } else if (type == 3) {
      threads_[header >> 16U & 0xffU] = word(body, 1);
    } else if (type == 7) {
      names[word(body, 0)] = table_.at(header >> 24U & 0xffffU);
    } else if (type == 9) {
      logs.emplace_back(body.substr(8, header >> 16U & 0x7fffU));
    } else if (type == 4) {
      read_event(header, body);
    }
  }
  void read_event(std::uint64_t header, std::string_view body) {
    Event event;
    event.type = header >> 16U & 0xfU;
    event.ns = word(body, 0);
    event.tid = threads_.at(header >> 24U & 0xffU);
    if (header >> 48U != 0) event.name = table_.at(header >> 48U);
    std::size_t at = 1;
    for (std::uint64_t left = header >> 20U & 0xfU; left > 0; --left) {
      const std::uint64_t argument = word(body, at);
      const std::uint64_t kind = argument & 0xfU;
      std::string value = std::to_string(argument >> 32U);
      if (kind == 4) value = std::to_string(word(body, at + 1));
      if (kind == 5) value = std::to_string(std::bit_cast<double>(word(body, at + 1)));
      if (kind == 6) value = table_.at(argument >> 32U);
      event.arguments[table_.at(argument >> 16U & 0xffffU)] = value;
      at += argument >> 4U & 0xfffU;
    }
    events.push_back(std::move(event));
  }

  std::map<std::uint64_t, std::string> table_;
  std::map<std::uint64_t, std::uint64_t> threads_;
};

using Arguments = std::map<std::string, std::string>;

TEST(Fxt, WritesSlicesWithArguments) {
  MadeTimeline timeline;
  timeline.add_track(5, 6);
  timeline.add(0, 0, 0, 0x1'0000'0001);
  Slice& tail = timeline.add(1, 1, 10, 10);
  tail.flags = 0;
  tail.how = CallKind::SIGNAL;
  tail.end_how = CallEnd::UNWIND;
  tail.begin_error = 20;
  tail.end_error = 40;
  tail.has_loss = true;
  Slice& merged = timeline.add(1, 0, 20, 40);
  merged.calls = 3;
  merged.covered = 15;
  const std::string bytes = written(write_fxt, timeline, made_facts(timeline, 2));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x10\0\x04\x46\x78\x54\x16\0", 8));
  const FxtReader found(bytes);
  ASSERT_EQ(found.events.size(), 6U);
  EXPECT_EQ(found.events[0].name, "f0");
  EXPECT_EQ(found.events[0].tid, 6U);
  EXPECT_EQ(
      found.events[0].arguments,
      (Arguments{
          {"instructions", "4294967297"}, {"branches", "1073741824"}, {"exact", "1"}, {"file", "code.so"}}));
  EXPECT_EQ(found.events[1].arguments, (Arguments{{"instructions", "0"},
                                                  {"branches", "0"},
                                                  {"exact", "0"},
                                                  {"how", "SIGNAL"},
                                                  {"end_how", "UNWIND"},
                                                  {"begin_error_ns", "20"},
                                                  {"end_error_ns", "40"},
                                                  {"loss", "1"},
                                                  {"full_name", "f1(int)"},
                                                  {"file", "code.so"}}));
  EXPECT_EQ(found.events[3].name, "merged: f0");
  EXPECT_EQ(found.events[3].arguments.at("calls"), "3");
  EXPECT_EQ(found.events[3].arguments.at("covered"), "0.750000");
  EXPECT_EQ(found.events[5].ns, 0x1'0000'0001U);
  EXPECT_EQ(found.names, (std::map<std::uint64_t, std::string>{{5, "program"}, {6, "thread 6"}}));
  EXPECT_EQ(found.logs, std::vector<std::string>{"axis: instructions"});
}

TEST(Fxt, HasAThreadForEachKindOfBands) {
  MadeTimeline timeline;
  Track& track = timeline.add_track(5, 6);
  track.bands = {{7, 8, Band::Kind::LOST}, {8, 9, Band::Kind::SWITCHED}, {10, 11, Band::Kind::LOST}};
  track.counts = {{0, 0}, {1000, 100}};
  const FxtReader found(written(write_fxt, timeline, made_facts(timeline, 0)));
  ASSERT_EQ(found.events.size(), 8U);
  EXPECT_EQ(found.events[0].type, 1U);
  EXPECT_EQ(found.events[0].arguments.at("rate"), "100.000000");
  std::map<std::string, int> bands;
  for (std::size_t i = 2; i < 8; ++i)
    ++bands[found.names.at(found.events[i].tid) + " " + found.events[i].name];
  EXPECT_EQ(bands, (std::map<std::string, int>{{"thread 6: lost lost", 4},
                                               {"thread 6: switched out switched out", 2}}));
}

TEST(Fxt, HasMoreThreadsThanReferences) {
  MadeTimeline timeline;
  for (std::int64_t tid = 1; tid <= 600; ++tid) {
    timeline.add_track(10'000, tid);
    timeline.add(0, 0, static_cast<std::uint64_t>(tid), 1000);
  }
  const FxtReader found(written(write_fxt, timeline, made_facts(timeline, 1)));
  ASSERT_EQ(found.events.size(), 1200U);
  for (std::size_t i = 0; i < 1200; i += 2) {
    EXPECT_EQ(found.events[i].tid, i / 2 + 1);
    EXPECT_EQ(found.events[i].ns, i / 2 + 1);
  }
}

TEST(FxtRecords, GivesReferencesToOtherStrings) {
  std::string bytes;
  ByteSink sink([&](std::string_view chunk) {
    bytes += chunk;
    return true;
  });
  FxtRecords records(sink, {"kept"}, 100, 20);
  records.put_head("ptkit");
  records.set_thread(1, 2);
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < 5000; ++i) {
    // A few strings come again and again, others push them out.
    const std::size_t key = i % 3 == 0 ? i % 7 : (i * 37) % 100;
    const std::string first = "s" + std::to_string(key);
    const std::string second = "s" + std::to_string((key + 1) % 100);
    FxtRecord& event = records.event(FxtEvent::INSTANT, i, 1, records.string(key, first));
    event.string(1, records.string((key + 1) % 100, second));
    records.put_event();
    expected.push_back(first + second);
  }
  ASSERT_TRUE(sink.finish());
  const FxtReader found(bytes);
  ASSERT_EQ(found.events.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(found.events[i].name + found.events[i].arguments.at("kept"), expected[i]) << i;
  EXPECT_LT(found.strings, 2 * expected.size());
}

TEST(Fxt, HasAsManyFunctionsAsThereAre) {
  constexpr std::uint32_t kFunctions = 40'000;  // more than references
  MadeTimeline timeline;
  timeline.add_track(1, 2);
  for (std::uint32_t i = 0; i < 2 * kFunctions; ++i)
    timeline.add(0, (i * 7) % kFunctions, std::uint64_t{i} * 10, std::uint64_t{i} * 10 + 5);
  const FxtReader found(written(write_fxt, timeline, made_facts(timeline, kFunctions)));
  ASSERT_EQ(found.events.size(), 4 * kFunctions);
  for (std::uint32_t i = 0; i < 2 * kFunctions; ++i)
    ASSERT_EQ(found.events[2 * i].name, "f" + std::to_string((i * 7) % kFunctions));
}

TEST(Fxt, CutsLongNamesBetweenCharacters) {
  MadeTimeline timeline;
  timeline.add_track(1, 2);
  timeline.add(0, 0, 0, 5);
  TimelineFacts facts = made_facts(timeline, 1);
  facts.functions[0].shown = std::string(kMostFxtString - 1, 'x') + "\xc3\xa9";
  const FxtReader found(written(write_fxt, timeline, facts));
  EXPECT_EQ(found.events.at(0).name, std::string(kMostFxtString - 1, 'x'));
  EXPECT_EQ(cut_text("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(cut_text("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
}

}  // namespace
}  // namespace ptkit::tables::calls
