// Perfetto's traces: TracePackets with TrackEvents, a sequence of packets for each track of the timeline.
#include <array>
#include <map>

#include "tables/calls/timeline_files/perfetto_packets.h"
#include "tables/calls/timeline_files/slice_arguments.h"
#include "tables/calls/timeline_files/timeline_files.h"

namespace ptkit::tables::calls {
namespace {

// uuids of a track: of the thread, of kinds of bands, of the counter.
constexpr std::uint64_t kUuidsOfTrack = 8;
static_assert(2 + kBandKinds <= kUuidsOfTrack);

// Slices of a track as events of a sequence.
class SliceEvents final : public SliceVisitor {
 public:
  SliceEvents(const TimelineFacts& facts, PerfettoPackets& packets)
      : facts_(facts),
        packets_(packets),
        names_(2 * facts.functions.size()),
        sources_(facts.functions.size()),
        arguments_(kSliceArguments.size()),
        words_(kWords) {}

  void begin_sequence() noexcept {
    for (Interned* const strings : {&names_, &sources_, &arguments_, &words_}) strings->begin_sequence();
  }

  void begin(const Slice& slice, std::uint32_t) override {
    event_.clear();
    event_.integer(event_field::kType, static_cast<std::uint64_t>(PerfettoEvent::BEGIN));
    event_.integer(event_field::kNameIid, name_of(slice));
    if (const std::uint32_t iid = source_of(slice.function); iid != 0)
      event_.integer(event_field::kSourceIid, iid);
    put_arguments(slice, facts_.positions, *this);
    packets_.put_event(facts_.positions.ns(slice.begin), event_);
  }

  void end(const Slice& slice, std::uint32_t) override {
    event_.clear();
    event_.integer(event_field::kType, static_cast<std::uint64_t>(PerfettoEvent::END));
    packets_.put_event(facts_.positions.ns(slice.end), event_);
  }

  // For put_arguments().
  void integer(SliceArgument name, std::uint64_t value) {
    begin_annotation(name);
    annotation_.integer(annotation_field::kUint, value);
    put_annotation();
  }
  void boolean(SliceArgument name, bool value) {
    begin_annotation(name);
    annotation_.integer(annotation_field::kBool, value ? 1 : 0);
    put_annotation();
  }
  void real(SliceArgument name, double value) {
    begin_annotation(name);
    annotation_.real(annotation_field::kDouble, value);
    put_annotation();
  }
  void word(SliceArgument name, CallKind how) { add_word(name, static_cast<std::size_t>(how), text_of(how)); }
  void word(SliceArgument name, CallEnd how) {
    add_word(name, kEnds + static_cast<std::size_t>(how), text_of(how));
  }

 private:
  // Keys of words: kinds of begins, then kinds of ends.
  static constexpr std::size_t kEnds = 16;
  static constexpr std::size_t kWords = 32;

  [[nodiscard]] std::uint32_t name_of(const Slice& slice) {
    const auto [iid, is_new] = names_.iid(2 * std::size_t{slice.function} + (slice.is_merged() ? 1 : 0));
    if (!is_new) return iid;
    const std::string& name = facts_.functions[slice.function].shown;
    packets_.intern(interned_field::kEventNames, iid, slice.is_merged() ? std::string(kMerged) + name : name);
    return iid;
  }

  // Full name and file, as a location in source. 0: there is nothing beside the name.
  [[nodiscard]] std::uint32_t source_of(std::uint32_t function) {
    const FunctionName& name = facts_.functions[function];
    if (name.file.empty() && name.full == name.shown) return 0;
    const auto [iid, is_new] = sources_.iid(function);
    if (is_new) {
      ProtoMessage source;
      source.integer(1, iid);
      if (!name.file.empty()) source.bytes(2, name.file);
      source.bytes(3, name.full);
      packets_.intern(interned_field::kSources, source);
    }
    return iid;
  }

  void put_annotation() { event_.message(event_field::kAnnotation, annotation_); }
  void add_word(SliceArgument name, std::size_t key, std::string_view text) {
    const auto [iid, is_new] = words_.iid(key);
    if (is_new) packets_.intern(interned_field::kAnnotationStrings, iid, text);
    begin_annotation(name);
    annotation_.integer(annotation_field::kStringIid, iid);
    put_annotation();
  }
  void begin_annotation(SliceArgument name) {
    const auto [iid, is_new] = arguments_.iid(static_cast<std::size_t>(name));
    if (is_new)
      packets_.intern(interned_field::kAnnotationNames, iid, kSliceArguments[static_cast<std::size_t>(name)]);
    annotation_.clear();
    annotation_.integer(annotation_field::kNameIid, iid);
  }

  const TimelineFacts& facts_;
  PerfettoPackets& packets_;
  Interned names_;  // of functions, and of merged calls
  Interned sources_;
  Interned arguments_;
  Interned words_;
  ProtoMessage event_;
  ProtoMessage annotation_;
};

class PerfettoFile {
 public:
  PerfettoFile(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink)
      : timeline_(timeline),
        facts_(facts),
        sink_(sink),
        tracks_(timeline, facts),
        packets_(sink, facts.positions.begin_ns()),
        slices_(facts, packets_) {}

  void write() {
    put_config();
    for (std::size_t i = 0; i < timeline_.tracks().size() && !sink_.stopped(); ++i) put_track(i);
  }

 private:
  [[nodiscard]] static std::uint64_t uuid_of(std::size_t track) noexcept {
    return kUuidsOfTrack * (track + 1);
  }

  // The axis in the trace's metadata, and all notes as attributes of the trace.
  void put_config() {
    constexpr unsigned kSessionName = 22, kAttributes = 48;
    ProtoMessage attributes;
    for (const auto& [name, value] : facts_.notes) {
      ProtoMessage attribute;
      attribute.bytes(1, name);
      attribute.bytes(3, value);
      attributes.message(1, attribute);
    }
    ProtoMessage config;
    config.bytes(kSessionName, session_name());
    config.message(kAttributes, attributes);
    packets_.put_config(config);
  }

  [[nodiscard]] std::string session_name() const {
    return facts_.notes.empty() ? "ptkit" : "ptkit; " + facts_.joined_notes("; ");
  }

  void put_track(std::size_t track) {
    const FileTrack& file = tracks_.at(track);
    const std::uint64_t process = put_process(track, file);
    ProtoMessage descriptor;
    descriptor.integer(track_field::kUuid, uuid_of(track));
    if (file.ids_known && file.first == track) {
      ProtoMessage thread;
      thread.integer(1, static_cast<std::uint64_t>(file.pid));
      thread.integer(2, static_cast<std::uint64_t>(file.tid));
      thread.bytes(5, file.name);
      descriptor.message(track_field::kThread, thread);
    } else {
      descriptor.bytes(track_field::kName, file.name);
      descriptor.integer(track_field::kParent, file.ids_known ? uuid_of(file.first) : process);
    }
    packets_.put_descriptor(descriptor);
    packets_.begin_sequence(uuid_of(track));
    slices_.begin_sequence();
    timeline_.visit(track, slices_);
    if (sink_.stopped()) return;
    put_bands(track);
    put_rates(track);
  }

  // Returns the uuid.
  std::uint64_t put_process(std::size_t track, const FileTrack& file) {
    const std::uint64_t next = kUuidsOfTrack * (timeline_.tracks().size() + 1) + processes_.size();
    const auto [process, is_new] = processes_.emplace(file.pid, next);
    if (!is_new) return process->second;
    ProtoMessage descriptor;
    descriptor.integer(track_field::kUuid, process->second);
    if (file.ids_known || timeline_.tracks()[track].owner.pid != trace::kNoId) {
      ProtoMessage message;
      message.integer(1, static_cast<std::uint64_t>(file.pid));
      message.bytes(6, file.process);
      descriptor.message(track_field::kProcess, message);
    } else {
      descriptor.bytes(track_field::kName, file.process);
    }
    descriptor.bytes(track_field::kDescription, facts_.joined_notes("\n"));
    packets_.put_descriptor(descriptor);
    return process->second;
  }

  void put_child(std::size_t track, std::uint64_t uuid, std::string_view name, bool is_counter) {
    ProtoMessage descriptor;
    descriptor.integer(track_field::kUuid, uuid);
    descriptor.integer(track_field::kParent, uuid_of(track));
    descriptor.bytes(track_field::kName, name);
    if (is_counter) descriptor.bytes(track_field::kCounter, {});
    packets_.put_descriptor(descriptor);
  }

  void put_bands(std::size_t track) {
    const auto lanes = bands_by_kind(timeline_.tracks()[track]);
    for (std::size_t kind = 0; kind < lanes.size(); ++kind) {
      if (lanes[kind].empty()) continue;
      const std::uint64_t uuid = uuid_of(track) + 1 + kind;
      const std::string_view name = band_name(static_cast<Band::Kind>(kind));
      put_child(track, uuid, name, false);
      for (const Band& band : lanes[kind]) {
        const bool is_point = band.begin == band.end;
        put_band(uuid, is_point ? PerfettoEvent::INSTANT : PerfettoEvent::BEGIN, name, band.begin);
        if (!is_point) put_band(uuid, PerfettoEvent::END, {}, band.end);
      }
    }
  }

  void put_band(std::uint64_t uuid, PerfettoEvent type, std::string_view name, std::uint64_t position) {
    ProtoMessage event;
    event.integer(event_field::kType, static_cast<std::uint64_t>(type));
    event.integer(event_field::kTrack, uuid);
    if (!name.empty()) {
      event.bytes(event_field::kCategory, "band");
      event.bytes(event_field::kName, name);
    }
    packets_.put_event_at(facts_.positions.ns(position), event);
  }

  void put_rates(std::size_t track) {
    const std::vector<BranchRate> rates =
        branch_rates(timeline_.tracks()[track], facts_.positions, facts_.most_rates);
    if (rates.empty()) return;
    const std::uint64_t uuid = uuid_of(track) + 1 + kBandKinds;
    put_child(track, uuid, rate_name(facts_.positions), true);
    for (const BranchRate& rate : rates) {
      ProtoMessage event;
      event.integer(event_field::kType, static_cast<std::uint64_t>(PerfettoEvent::COUNTER));
      event.integer(event_field::kTrack, uuid);
      event.real(event_field::kDoubleCounter, rate.rate);
      packets_.put_event_at(rate.ns, event);
    }
  }

  const CallTimeline& timeline_;
  const TimelineFacts& facts_;
  ByteSink& sink_;
  FileTracks tracks_;
  PerfettoPackets packets_;
  SliceEvents slices_;
  std::map<std::int64_t, std::uint64_t> processes_;  // uuids
};

}  // namespace

bool write_perfetto(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink) {
  PerfettoFile(timeline, facts, sink).write();
  return sink.finish();
}

}  // namespace ptkit::tables::calls
