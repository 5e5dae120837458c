// speedscope's file format: an evented profile for each track, and for each kind of bands that a track has.
#include <array>
#include <unordered_map>

#include "base/digits.h"
#include "tables/calls/timeline_files/timeline_files.h"
#include "tables/text/escape.h"

namespace ptkit::tables::calls {
namespace {

using text::for_json;

class SpeedscopeFile final : public SliceVisitor {
 public:
  SpeedscopeFile(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink)
      : timeline_(timeline), facts_(facts), sink_(sink), tracks_(timeline, facts) {}

  void write() {
    sink_.put("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"ptkit\",");
    sink_.put("\"name\":" + for_json(facts_.joined_notes("; ")) + ",\"activeProfileIndex\":0,\"profiles\":[");
    for (std::size_t i = 0; i < timeline_.tracks().size() && !sink_.stopped(); ++i) put_track(i);
    sink_.put("\n],\n\"shared\":{\"frames\":[");
    for (std::size_t i = 0; i < frames_.size() && !sink_.stopped(); ++i) put_frame(i);
    sink_.put("\n]}}\n");
  }

  void begin(const Slice& slice, std::uint32_t) override {
    put_event('O', frame_of(slice.function, slice.calls), facts_.positions.ns(slice.begin));
  }

  void end(const Slice& slice, std::uint32_t) override {
    put_event('C', frame_of(slice.function, slice.calls), facts_.positions.ns(slice.end));
  }

 private:
  struct Frame {
    std::uint32_t function = 0;
    std::uint32_t calls = 1;  // merged ones; 0: a band, and `function` is its kind
  };

  [[nodiscard]] std::size_t frame_of(std::uint32_t function, std::uint32_t calls) {
    const auto [frame, is_new] = numbers_.emplace(std::uint64_t{calls} << 32U | function, frames_.size());
    if (is_new) frames_.push_back({function, calls});
    return frame->second;
  }

  void put_track(std::size_t track) {
    const FileTrack& file = tracks_.at(track);
    const std::string name = file.process + ", " + file.name;
    begin_profile(name);
    timeline_.visit(track, *this);
    end_profile();
    const auto lanes = bands_by_kind(timeline_.tracks()[track]);
    for (std::size_t kind = 0; kind < lanes.size(); ++kind) {
      if (lanes[kind].empty()) continue;
      begin_profile(name + ": " + std::string(band_name(static_cast<Band::Kind>(kind))));
      const std::size_t frame = frame_of(static_cast<std::uint32_t>(kind), 0);
      for (const Band& band : lanes[kind]) {
        put_event('O', frame, facts_.positions.ns(band.begin));
        put_event('C', frame, facts_.positions.ns(band.end));
      }
      end_profile();
    }
  }

  void begin_profile(const std::string& name) {
    sink_.put(profiles_++ == 0 ? "\n" : ",\n");
    sink_.put("{\"type\":\"evented\",\"unit\":\"");
    sink_.put(facts_.positions.is_time() ? "nanoseconds" : "none");
    sink_.put("\",\"name\":" + for_json(name) + ",\"events\":[");
    is_first_ = true;
    first_ns_ = last_ns_ = 0;
  }
  void end_profile() {
    sink_.put("\n],\"startValue\":" + std::to_string(first_ns_) +
              ",\"endValue\":" + std::to_string(last_ns_) + "}");
  }

  void put_event(char type, std::size_t frame, std::uint64_t ns) {
    if (is_first_) first_ns_ = ns;
    line_.assign(is_first_ ? "\n" : ",\n").append("{\"type\":\"").append(1, type).append("\",\"frame\":");
    add_number(frame);
    line_ += ",\"at\":";
    add_number(ns);
    line_ += '}';
    sink_.put(line_);
    is_first_ = false;
    last_ns_ = ns;
  }
  void add_number(std::uint64_t value) {
    std::array<char, base::kMostDigits> digits;
    line_.append(digits.data(), base::put_decimal(digits.data(), value));
  }

  void put_frame(std::size_t index) {
    const Frame& frame = frames_[index];
    line_.assign(index == 0 ? "\n" : ",\n").append("{\"name\":");
    if (frame.calls == 0) {
      line_ += for_json(band_name(static_cast<Band::Kind>(frame.function)));
    } else {
      const FunctionName& name = facts_.functions[frame.function];
      const std::string count = frame.calls == 1 ? "" : std::to_string(frame.calls) + " calls merged: ";
      line_ += for_json(count + name.shown);
      if (!name.file.empty()) line_.append(",\"file\":").append(for_json(name.file));
    }
    line_ += '}';
    sink_.put(line_);
  }

  const CallTimeline& timeline_;
  const TimelineFacts& facts_;
  ByteSink& sink_;
  FileTracks tracks_;
  std::vector<Frame> frames_;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;  // of frames, by calls and function
  std::size_t profiles_ = 0;
  bool is_first_ = true;
  std::uint64_t first_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  std::string line_;
};

}  // namespace

bool write_speedscope(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink) {
  SpeedscopeFile(timeline, facts, sink).write();
  return sink.finish();
}

}  // namespace ptkit::tables::calls
