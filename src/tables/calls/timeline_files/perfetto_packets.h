// TracePackets of Perfetto, in sequences that have a clock and interned strings of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tables/calls/timeline_files/proto_message.h"
#include "tables/calls/timeline_files/timeline_files.h"

namespace ptkit::tables::calls {

// Numbers of fields: protos/perfetto/trace/track_event/*.proto, interned_data.proto.
namespace event_field {
inline constexpr unsigned kAnnotation = 4, kType = 9, kNameIid = 10, kTrack = 11, kCategory = 22, kName = 23,
                          kSourceIid = 34, kDoubleCounter = 44;
}
namespace annotation_field {
inline constexpr unsigned kNameIid = 1, kBool = 2, kUint = 3, kDouble = 5, kStringIid = 17;
}
namespace interned_field {
inline constexpr unsigned kEventNames = 2, kAnnotationNames = 3, kSources = 4, kAnnotationStrings = 29;
}
namespace track_field {
inline constexpr unsigned kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8,
                          kDescription = 14;
}

enum class PerfettoEvent : std::uint8_t { BEGIN = 1, END = 2, INSTANT = 3, COUNTER = 4 };

// Strings of a sequence that have an iid, by keys 0, 1, ... that all sequences have in common.
class Interned {
 public:
  explicit Interned(std::size_t keys) : entries_(keys) {}
  void begin_sequence() noexcept {
    ++sequence_;
    last_ = 0;
  }
  // The iid, and whether it is new.
  [[nodiscard]] std::pair<std::uint32_t, bool> iid(std::size_t key) noexcept {
    Entry& entry = entries_[key];
    if (entry.sequence == sequence_) return {entry.iid, false};
    entry = {sequence_, ++last_};
    return {entry.iid, true};
  }

 private:
  struct Entry {
    std::uint32_t sequence = 0;
    std::uint32_t iid = 0;
  };
  std::vector<Entry> entries_;
  std::uint32_t sequence_ = 0;
  std::uint32_t last_ = 0;
};

class PerfettoPackets {
 public:
  // Times count from `begin_ns` of the trace's clock.
  PerfettoPackets(ByteSink& sink, std::uint64_t begin_ns) : sink_(sink), begin_ns_(begin_ns) {}

  // Later packets are of a new sequence; by default, their events are of this track.
  void begin_sequence(std::uint64_t track_uuid);
  // Sent with the next event of the sequence.
  void intern(unsigned field, std::uint32_t iid, std::string_view text);
  void intern(unsigned field, const ProtoMessage& entry) { interned_.message(field, entry); }
  // Times of these events do not descend within a sequence.
  void put_event(std::uint64_t ns, const ProtoMessage& event);
  // Of any time.
  void put_event_at(std::uint64_t ns, const ProtoMessage& event);
  void put_descriptor(const ProtoMessage& descriptor);
  void put_config(const ProtoMessage& config);

 private:
  void put_packet(unsigned field, const ProtoMessage& message);
  void put();

  ByteSink& sink_;
  std::uint64_t begin_ns_;
  std::uint64_t sequence_ = 1;
  std::uint64_t last_ns_ = 0;
  ProtoMessage interned_;
  ProtoMessage packet_;
  ProtoMessage trace_;
};

}  // namespace ptkit::tables::calls
