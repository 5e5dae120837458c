// Fuchsia trace format: begins and ends of slices as duration events of threads.
#include <array>
#include <set>

#include "tables/calls/timeline_files/fxt_records.h"
#include "tables/calls/timeline_files/slice_arguments.h"
#include "tables/calls/timeline_files/timeline_files.h"

namespace ptkit::tables::calls {
namespace {

class FxtFile final : public SliceVisitor {
 public:
  FxtFile(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink)
      : timeline_(timeline),
        facts_(facts),
        sink_(sink),
        tracks_(timeline, facts),
        records_(sink, kept_texts(facts.positions), kOfFunction * facts.functions.size() + 1) {}

  void write() {
    records_.put_head("ptkit");
    for (std::size_t i = 0; i < timeline_.tracks().size() && !sink_.stopped(); ++i) put_track(i);
  }

  void begin(const Slice& slice, std::uint32_t) override {
    const FunctionName& name = facts_.functions[slice.function];
    const std::size_t key = kOfFunction * slice.function;
    const std::uint16_t shown = slice.is_merged()
                                    ? records_.string(key + 1, std::string(kMerged) + name.shown)
                                    : records_.string(key, name.shown);
    FxtRecord& event = records_.event(FxtEvent::BEGIN, time_of(slice.begin), CATEGORY, shown);
    put_arguments(slice, facts_.positions, Arguments{event});
    if (name.full != name.shown) event.string(FULL_NAME, records_.string(key + 2, name.full));
    if (!name.file.empty()) event.string(FILE_NAME, records_.string(key + 3, name.file));
    records_.put_event();
  }

  void end(const Slice& slice, std::uint32_t) override {
    static_cast<void>(records_.event(FxtEvent::END, time_of(slice.end), CATEGORY, NONE));
    records_.put_event();
  }

 private:
  // References of strings that keep theirs: names of arguments, these, kinds of begins, kinds of ends.
  enum Text : std::uint16_t {
    NONE,
    FULL_NAME = kSliceArguments.size() + 1,
    FILE_NAME,
    PROCESS,
    CATEGORY,
    BAND,
    UNTRACED,
    SWITCHED,
    LOST,
    RATE_NAME,
    RATE,
    TEXTS
  };
  static constexpr std::size_t kHows = TEXTS;
  static constexpr std::size_t kEnds = kHows + 16;
  static constexpr std::size_t kOfFunction = 4;  // keys: shown, of merged calls, full, file

  [[nodiscard]] std::uint64_t time_of(std::uint64_t position) const noexcept {
    return facts_.positions.begin_ns() + facts_.positions.ns(position);
  }
  [[nodiscard]] static std::vector<std::string_view> kept_texts(const Positions& positions) {
    std::vector<std::string_view> texts(kSliceArguments.begin(), kSliceArguments.end());
    texts.insert(texts.end(), {
                                  "full_name",
                                  "file",
                                  "process",
                                  "call",
                                  "band",
                                  band_name(Band::Kind::UNTRACED),
                                  band_name(Band::Kind::SWITCHED),
                                  band_name(Band::Kind::LOST),
                                  rate_name(positions),
                                  "rate",
                              });
    texts.resize(kEnds + 16 - 1);
#define PT_CALL_KIND(name, value, text) texts[kHows + (value)-1] = #name;
#define PT_CALL_END(name, value, text) texts[kEnds + (value)-1] = #name;
#include "tables/calls/stack/kinds.def"
    return texts;
  }

  // For a string that is used once.
  [[nodiscard]] std::uint16_t other(std::string_view text) {
    return records_.another(kOfFunction * facts_.functions.size(), text);
  }

  struct Arguments {
    FxtRecord& event;
    static std::uint16_t name_of(SliceArgument argument) noexcept {
      return static_cast<std::uint16_t>(static_cast<unsigned>(argument) + 1);
    }
    void integer(SliceArgument name, std::uint64_t value) { event.integer(name_of(name), value); }
    void boolean(SliceArgument name, bool value) { event.boolean(name_of(name), value); }
    void real(SliceArgument name, double value) { event.real(name_of(name), value); }
    void word(SliceArgument name, CallKind how) {
      event.string(name_of(name), static_cast<std::uint16_t>(kHows + static_cast<std::size_t>(how)));
    }
    void word(SliceArgument name, CallEnd how) {
      event.string(name_of(name), static_cast<std::uint16_t>(kEnds + static_cast<std::size_t>(how)));
    }
  };

  void put_track(std::size_t track) {
    const FileTrack& file = tracks_.at(track);
    if (processes_.insert(file.pid).second)
      records_.put_process(static_cast<std::uint64_t>(file.pid), other(file.process));
    begin_thread(file, file.tid, file.name);
    if (track == 0)
      for (const auto& [name, value] : facts_.notes) {
        std::string line = name;
        line.append(": ").append(value);
        records_.put_log(line);
      }
    timeline_.visit(track, *this);
    if (sink_.stopped()) return;
    put_rates(track);
    put_bands(track);
  }

  void begin_thread(const FileTrack& file, std::int64_t tid, std::string_view name) {
    const auto [process, thread] =
        std::pair(static_cast<std::uint64_t>(file.pid), static_cast<std::uint64_t>(tid));
    records_.put_thread(process, thread, other(name), PROCESS);
    records_.set_thread(process, thread);
  }

  void put_rates(std::size_t track) {
    for (const BranchRate& rate :
         branch_rates(timeline_.tracks()[track], facts_.positions, facts_.most_rates)) {
      FxtRecord& event =
          records_.event(FxtEvent::COUNTER, facts_.positions.begin_ns() + rate.ns, CATEGORY, RATE_NAME);
      event.real(RATE, rate.rate);
      event.word(track + 1);  // the counter's number
      records_.put_event();
    }
  }

  void put_bands(std::size_t track) {
    const FileTrack& file = tracks_.at(track);
    const auto lanes = bands_by_kind(timeline_.tracks()[track]);
    for (std::size_t kind = 0; kind < lanes.size(); ++kind) {
      if (lanes[kind].empty()) continue;
      const auto name = static_cast<std::uint16_t>(UNTRACED + kind);
      begin_thread(file, tracks_.unused_tid(),
                   file.name + ": " + std::string(band_name(static_cast<Band::Kind>(kind))));
      for (const Band& band : lanes[kind]) {
        static_cast<void>(records_.event(FxtEvent::BEGIN, time_of(band.begin), BAND, name));
        records_.put_event();
        static_cast<void>(records_.event(FxtEvent::END, time_of(band.end), BAND, name));
        records_.put_event();
      }
    }
  }

  const CallTimeline& timeline_;
  const TimelineFacts& facts_;
  ByteSink& sink_;
  FileTracks tracks_;
  FxtRecords records_;
  std::set<std::int64_t> processes_;  // that have a name
};

}  // namespace

bool write_fxt(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink) {
  FxtFile(timeline, facts, sink).write();
  return sink.finish();
}

}  // namespace ptkit::tables::calls
