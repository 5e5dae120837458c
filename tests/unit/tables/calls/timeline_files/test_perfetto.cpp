// Perfetto's traces, read back by a small reader of protocol buffers.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>

#include "unit/tables/calls/timeline_files/made_timeline.h"

namespace ptkit::tables::calls {
namespace {

// Fields of a message by number: integers, bits of doubles, and bytes.
struct Message {
  std::multimap<unsigned, std::uint64_t> integers;
  std::multimap<unsigned, std::string> texts;

  [[nodiscard]] std::uint64_t integer(unsigned field) const {
    const auto found = integers.find(field);
    return found == integers.end() ? 0 : found->second;
  }
  [[nodiscard]] std::string text(unsigned field) const {
    const auto found = texts.find(field);
    return found == texts.end() ? "" : found->second;
  }
  [[nodiscard]] Message message(unsigned field) const;
};

Message read_message(std::string_view bytes) {
  Message found;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes.at(0));
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!bytes.empty()) {
    const std::uint64_t key = varint();
    const auto field = static_cast<unsigned>(key >> 3U);
    if ((key & 7U) == 0) {
      found.integers.emplace(field, varint());
    } else if ((key & 7U) == 1) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes.data(), sizeof bits);
      found.integers.emplace(field, bits);
      bytes.remove_prefix(sizeof bits);
    } else {
      const std::uint64_t size = varint();
      found.texts.emplace(field, bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  }
  return found;
}

Message Message::message(unsigned field) const { return read_message(text(field)); }

// Events of a file, with what their sequence had before them.
struct Event {
  std::uint64_t track = 0;
  std::uint64_t ns = 0;
  std::uint64_t type = 0;
  std::string name;
  std::string full;
  std::map<std::string, std::string> arguments;
};

struct PerfettoReader {
  std::vector<Event> events;
  std::map<std::uint64_t, Message> tracks;
  std::size_t names = 0;  // that were sent
  std::string session;

  explicit PerfettoReader(const std::string& bytes) {
    struct Sequence {
      std::uint64_t track = 0, ns = 0, clock = 0;
      std::map<unsigned, std::map<std::uint64_t, Message>> interned;
    };
    std::map<std::uint64_t, Sequence> sequences;
    for (const auto& [field, text] : read_message(bytes).texts) {
      const Message packet = read_message(text);
      Sequence& sequence = sequences[packet.integer(10)];
      if (packet.texts.contains(33)) session = packet.message(33).text(22);
      if (packet.texts.contains(60)) {
        const Message track = packet.message(60);
        EXPECT_TRUE(tracks.emplace(track.integer(1), track).second);
      }
      if (packet.integer(13) == 1) {
        sequence = {};
        sequence.track = packet.message(59).message(11).integer(11);
        sequence.clock = packet.message(59).integer(58);
      }
      if (packet.texts.contains(6)) read_clocks(packet.message(6), sequence.ns);
      for (const auto& [kind, entry] : packet.message(12).texts) {
        const Message interned = read_message(entry);
        EXPECT_TRUE(sequence.interned[kind].emplace(interned.integer(1), interned).second);
        names += kind == 2 ? 1 : 0;
      }
      if (packet.texts.contains(11)) add_event(packet, sequence);
    }
  }

 private:
  static void read_clocks(const Message& snapshot, std::uint64_t& ns) {
    for (const auto& [field, text] : snapshot.texts)
      if (read_message(text).integer(1) == 6) ns = read_message(text).integer(2);
  }
  template <typename Sequence>
  void add_event(const Message& packet, Sequence& sequence) {
    const Message event = packet.message(11);
    Event made;
    made.type = event.integer(9);
    made.track = event.integers.contains(11) ? event.integer(11) : sequence.track;
    if (packet.integer(58) == 6) {
      made.ns = packet.integer(8);
    } else {
      EXPECT_EQ(sequence.clock, 64U);
      made.ns = sequence.ns += packet.integer(8);
    }
    made.name = event.text(23);
    if (event.integers.contains(10)) made.name = sequence.interned[2].at(event.integer(10)).text(2);
    if (event.integers.contains(34)) {
      const Message& source = sequence.interned[4].at(event.integer(34));
      made.full = source.text(2) + ":" + source.text(3);
    }
    for (const auto& [field, text] : event.texts) {
      if (field != 4) continue;
      const Message argument = read_message(text);
      std::string value = std::to_string(argument.integer(3));
      if (argument.integers.contains(2)) value = argument.integer(2) != 0 ? "true" : "false";
      if (argument.integers.contains(5)) value = std::to_string(std::bit_cast<double>(argument.integer(5)));
      if (argument.integers.contains(17)) value = sequence.interned[29].at(argument.integer(17)).text(2);
      made.arguments[sequence.interned[3].at(argument.integer(1)).text(2)] = value;
    }
    events.push_back(std::move(made));
  }
};

using Arguments = std::map<std::string, std::string>;

TEST(Perfetto, WritesSlicesWithArguments) {
  MadeTimeline timeline(TimelineAxis::TIME);
  timeline.add_track(5, 6);
  timeline.add(0, 0, 1000, 9000);
  Slice& tail = timeline.add(1, 1, 1000, 1000);
  tail.flags = 0;
  tail.how = CallKind::TAIL;
  tail.end_how = CallEnd::GAP;
  tail.begin_error = 20;
  tail.end_error = 40;
  tail.has_loss = true;
  Slice& merged = timeline.add(1, 0, 2000, 4000);
  merged.calls = 3;
  merged.covered = 1500;
  TimelineFacts facts = made_facts(timeline, 2);
  trace::Clock clock;
  clock.tsc_hz = 2'000'000'000;
  facts.positions = Positions(clock, 1000);
  const PerfettoReader found(written(write_perfetto, timeline, facts));
  ASSERT_EQ(found.events.size(), 6U);
  EXPECT_EQ(found.events[0].name, "f0");
  EXPECT_EQ(found.events[0].ns, 500U);  // of the recorder's clock
  EXPECT_EQ(found.events[0].full, "code.so:f0");
  EXPECT_EQ(found.events[0].arguments,
            (Arguments{{"instructions", "8000"}, {"branches", "2000"}, {"exact", "true"}}));
  EXPECT_EQ(found.events[1].ns, 500U);
  EXPECT_EQ(found.events[1].full, "code.so:f1(int)");
  EXPECT_EQ(found.events[1].arguments, (Arguments{{"instructions", "0"},
                                                  {"branches", "0"},
                                                  {"exact", "false"},
                                                  {"how", "TAIL"},
                                                  {"end_how", "GAP"},
                                                  {"begin_error_ns", "10"},
                                                  {"end_error_ns", "20"},
                                                  {"loss", "true"}}));
  EXPECT_EQ(found.events[3].name, "merged: f0");
  EXPECT_EQ(found.events[3].arguments, (Arguments{{"instructions", "2000"},
                                                  {"branches", "500"},
                                                  {"exact", "true"},
                                                  {"calls", "3"},
                                                  {"covered", "0.750000"}}));
  std::vector<std::uint64_t> types;
  for (const Event& event : found.events) types.push_back(event.type);
  EXPECT_EQ(types, (std::vector<std::uint64_t>{1, 1, 2, 1, 2, 2}));
  EXPECT_EQ(found.events.back().ns, 4500U);
  EXPECT_EQ(found.session, "ptkit; axis: instructions");
}

TEST(Perfetto, SendsNamesOnceForEachTrack) {
  MadeTimeline timeline;
  for (std::int64_t tid = 1; tid < 4; ++tid) {
    timeline.add_track(1, tid);
    for (std::uint32_t i = 0; i < 100; ++i) timeline.add(0, i % 2, i * 10, i * 10 + 5);
  }
  const PerfettoReader found(written(write_perfetto, timeline, made_facts(timeline, 2)));
  EXPECT_EQ(found.events.size(), 600U);
  EXPECT_EQ(found.names, 6U);
  EXPECT_EQ(found.events[599].ns, 995U);
}

TEST(Perfetto, PutsStacksBandsAndCountersBesideTheirThread) {
  MadeTimeline timeline;
  Track& track = timeline.add_track(5, 6);
  track.bands = {{7, 7, Band::Kind::LOST}, {8, 9, Band::Kind::UNTRACED}};
  track.counts = {{0, 0}, {1000, 100}};
  timeline.add_track(5, 6).stack = 1;
  timeline.add_track(trace::kNoId, trace::kNoId);
  TimelineFacts facts = made_facts(timeline, 0);
  facts.threads[2] = {"stream 0", "CPU 1"};
  const PerfettoReader found(written(write_perfetto, timeline, facts));
  std::map<std::string, std::uint64_t> uuids;
  for (const auto& [uuid, track_of] : found.tracks) {
    const std::string thread = track_of.message(4).text(5);
    const std::string process = track_of.message(3).text(6);
    uuids[!thread.empty() ? thread : !process.empty() ? process : track_of.text(2)] = uuid;
  }
  const auto parent = [&](const char* name) { return found.tracks.at(uuids.at(name)).integer(5); };
  EXPECT_EQ(found.tracks.at(uuids.at("thread 6")).message(4).integer(2), 6U);
  EXPECT_EQ(parent("thread 6 (stack 2)"), uuids["thread 6"]);
  EXPECT_EQ(parent("lost"), uuids["thread 6"]);
  EXPECT_EQ(parent("untraced"), uuids["thread 6"]);
  EXPECT_EQ(parent("branches per 1000 instructions"), uuids["thread 6"]);
  EXPECT_EQ(parent("CPU 1"), uuids["stream 0"]);
  EXPECT_EQ(found.tracks.at(uuids.at("program")).text(14), "axis: instructions");
  ASSERT_EQ(found.events.size(), 5U);
  EXPECT_EQ(found.events[0].name, "untraced");
  EXPECT_EQ(found.events[0].track, uuids["untraced"]);
  EXPECT_EQ(found.events[1].ns, 9U);
  EXPECT_EQ(found.events[2].type, 3U);  // a point
  EXPECT_EQ(found.events[2].name, "lost");
  EXPECT_EQ(found.events[3].type, 4U);
}

TEST(Perfetto, IsSmall) {
  MadeTimeline timeline;
  timeline.add_track(5, 6);
  for (std::uint32_t i = 0; i < 10'000; ++i) timeline.add(0, i % 500, i * 100, i * 100 + 60);
  EXPECT_LE(written(write_perfetto, timeline, made_facts(timeline, 500)).size(), 47U * 10'000);
}

}  // namespace
}  // namespace ptkit::tables::calls
