// Chrome's trace events: a JSON object with an event on each line. Slices are events B and E: readers nest
// complete events (X) by their times, which may be equal.
#include <array>
#include <charconv>
#include <set>

#include "base/digits.h"
#include "tables/calls/timeline_files/slice_arguments.h"
#include "tables/calls/timeline_files/timeline_files.h"
#include "tables/text/escape.h"

namespace ptkit::tables::calls {
namespace {

using text::for_json;

class ChromeFile final : public SliceVisitor {
 public:
  ChromeFile(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink)
      : timeline_(timeline), facts_(facts), sink_(sink), tracks_(timeline, facts) {
    for (const FunctionName& name : facts.functions) {
      names_.push_back(for_json(name.shown));
      std::string more;
      if (name.full != name.shown) more += ",\"full_name\":" + for_json(name.full);
      if (!name.file.empty()) more += ",\"file\":" + for_json(name.file);
      more_.push_back(std::move(more));
    }
  }

  void write() {
    sink_.put("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"ptkit\"");
    for (const auto& [name, value] : facts_.notes) sink_.put("," + for_json(name) + ":" + for_json(value));
    sink_.put("},\"traceEvents\":[");
    for (std::size_t i = 0; i < timeline_.tracks().size() && !sink_.stopped(); ++i) put_track(i);
    sink_.put("\n]}\n");
  }

  void begin(const Slice& slice, std::uint32_t) override {
    begin_event('B', facts_.positions.ns(slice.begin));
    add_name(slice);
    line_ += ",\"args\":";
    separator_ = '{';
    put_arguments(slice, facts_.positions, *this);
    line_ += more_[slice.function];
    line_ += "}}";
    put_line();
  }

  // The Firefox Profiler looks for the begin by the name.
  void end(const Slice& slice, std::uint32_t) override {
    begin_event('E', facts_.positions.ns(slice.end));
    add_name(slice);
    line_ += '}';
    put_line();
  }

  // For put_arguments().
  void integer(SliceArgument name, std::uint64_t value) {
    begin_argument(name);
    add_number(value);
  }
  void boolean(SliceArgument name, bool value) {
    begin_argument(name);
    line_ += value ? "true" : "false";
  }
  void real(SliceArgument name, double value) {
    begin_argument(name);
    add_real(value);
  }
  template <typename Kind>
  void word(SliceArgument name, Kind kind) {
    begin_argument(name);
    line_.append("\"").append(text_of(kind)).append("\"");
  }

 private:
  // Commas stand between events.
  void put_line() {
    sink_.put(is_first_ ? "\n" : ",\n");
    sink_.put(line_);
    is_first_ = false;
  }
  // Of the present thread.
  void begin_event(char type, std::uint64_t ns) {
    line_.assign("{\"ph\":\"").append(1, type).append(thread_);
    add_time(ns);
  }
  void add_name(const Slice& slice) {
    line_ += ",\"name\":";
    if (slice.is_merged()) {
      line_.append("\"").append(kMerged).append(names_[slice.function], 1);
    } else {
      line_ += names_[slice.function];
    }
  }
  // Microseconds.
  void add_time(std::uint64_t ns) {
    add_number(ns / 1000);
    const auto rest = static_cast<unsigned>(ns % 1000);
    if (rest == 0) return;
    line_ += '.';
    for (const unsigned unit : {100U, 10U, 1U}) line_ += static_cast<char>('0' + rest / unit % 10);
  }
  void add_number(std::uint64_t value) {
    std::array<char, base::kMostDigits> digits;
    line_.append(digits.data(), base::put_decimal(digits.data(), value));
  }
  void add_real(double value) {
    std::array<char, 32> digits;
    line_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  }
  void begin_argument(SliceArgument name) {
    (line_ += separator_).append("\"").append(kSliceArguments[static_cast<std::size_t>(name)]).append("\":");
    separator_ = ',';
  }

  void put_track(std::size_t track) {
    const FileTrack& file = tracks_.at(track);
    if (processes_.insert(file.pid).second) put_name("process_name", file.pid, file.pid, file.process);
    begin_thread(file, file.tid, file.name);
    timeline_.visit(track, *this);
    if (sink_.stopped()) return;
    put_rates(track);
    put_bands(track);
  }

  void begin_thread(const FileTrack& file, std::int64_t tid, const std::string& name) {
    put_name("thread_name", file.pid, tid, name);
    thread_ = "\",\"pid\":" + std::to_string(file.pid) + ",\"tid\":" + std::to_string(tid) + ",\"ts\":";
  }

  void put_name(const char* event, std::int64_t pid, std::int64_t tid, const std::string& name) {
    line_ = "{\"ph\":\"M\",\"pid\":" + std::to_string(pid) + ",\"tid\":" + std::to_string(tid) +
            ",\"ts\":0,\"name\":\"" + event + "\",\"args\":{\"name\":" + for_json(name) + "}}";
    put_line();
  }

  // Counters belong to processes: their names say the thread.
  void put_rates(std::size_t track) {
    const std::string name =
        for_json(std::string(rate_name(facts_.positions)) + ", " + tracks_.at(track).name);
    for (const BranchRate& rate :
         branch_rates(timeline_.tracks()[track], facts_.positions, facts_.most_rates)) {
      begin_event('C', rate.ns);
      line_.append(",\"name\":").append(name).append(",\"args\":{\"rate\":");
      add_real(rate.rate);
      line_ += "}}";
      put_line();
    }
  }

  void put_bands(std::size_t track) {
    const FileTrack& file = tracks_.at(track);
    const auto lanes = bands_by_kind(timeline_.tracks()[track]);
    for (std::size_t kind = 0; kind < lanes.size(); ++kind) {
      if (lanes[kind].empty()) continue;
      const std::string name(band_name(static_cast<Band::Kind>(kind)));
      begin_thread(file, tracks_.unused_tid(), file.name + ": " + name);
      for (const Band& band : lanes[kind]) {
        for (const auto& [type, position] : {std::pair('B', band.begin), std::pair('E', band.end)}) {
          begin_event(type, facts_.positions.ns(position));
          line_.append(",\"cat\":\"band\",\"name\":\"").append(name).append("\"}");
          put_line();
        }
      }
    }
  }

  const CallTimeline& timeline_;
  const TimelineFacts& facts_;
  ByteSink& sink_;
  FileTracks tracks_;
  std::vector<std::string> names_;    // of functions, with quotes
  std::vector<std::string> more_;     // arguments of functions
  std::set<std::int64_t> processes_;  // that have a name
  std::string thread_;                // members of its events
  bool is_first_ = true;
  char separator_ = '{';  // before the next argument
  std::string line_;
};

}  // namespace

bool write_chrome(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink) {
  ChromeFile(timeline, facts, sink).write();
  return sink.finish();
}

}  // namespace ptkit::tables::calls
