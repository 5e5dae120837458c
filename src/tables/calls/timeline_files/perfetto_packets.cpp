#include "tables/calls/timeline_files/perfetto_packets.h"

namespace ptkit::tables::calls {
namespace {

// protos/perfetto/trace/trace_packet.proto and clock_snapshot.proto
constexpr unsigned kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInternedData = 12,
                   kSequenceFlags = 13, kTraceConfig = 33, kTimestampClock = 58, kDefaults = 59,
                   kTrackDescriptor = 60;
constexpr unsigned kClocks = 1, kClockId = 1, kClockTime = 2, kIsIncremental = 3;

constexpr unsigned kPacket = 1;        // of a Trace
constexpr unsigned kBootTime = 6;      // the clock of the trace
constexpr unsigned kOwnClock = 64;     // the first number of a sequence's own clocks
constexpr unsigned kStateCleared = 1;  // SEQ_INCREMENTAL_STATE_CLEARED

}  // namespace

void PerfettoPackets::begin_sequence(std::uint64_t track_uuid) {
  ++sequence_;
  last_ns_ = 0;
  interned_.clear();
  ProtoMessage event;
  event.integer(event_field::kTrack, track_uuid);
  ProtoMessage defaults;
  defaults.integer(kTimestampClock, kOwnClock);
  defaults.message(kTrackEvent, event);
  packet_.clear();
  packet_.integer(kSequence, sequence_);
  packet_.integer(kSequenceFlags, kStateCleared);
  packet_.message(kDefaults, defaults);
  put();
  // All sequences begin at one time: the trace's clock must not go back.
  ProtoMessage boot_time;
  boot_time.integer(kClockId, kBootTime);
  boot_time.integer(kClockTime, begin_ns_);
  ProtoMessage own;
  own.integer(kClockId, kOwnClock);
  own.integer(kClockTime, 0);
  own.integer(kIsIncremental, 1);
  ProtoMessage snapshot;
  snapshot.message(kClocks, boot_time);
  snapshot.message(kClocks, own);
  put_packet(kClockSnapshot, snapshot);
}

void PerfettoPackets::intern(unsigned field, std::uint32_t iid, std::string_view text) {
  ProtoMessage entry;
  entry.integer(1, iid);
  entry.bytes(2, text);
  interned_.message(field, entry);
}

void PerfettoPackets::put_event(std::uint64_t ns, const ProtoMessage& event) {
  packet_.clear();
  packet_.integer(kTimestamp, ns - last_ns_);
  last_ns_ = ns;
  packet_.integer(kSequence, sequence_);
  if (!interned_.empty()) {
    packet_.message(kInternedData, interned_);
    interned_.clear();
  }
  packet_.message(kTrackEvent, event);
  put();
}

void PerfettoPackets::put_event_at(std::uint64_t ns, const ProtoMessage& event) {
  packet_.clear();
  packet_.integer(kTimestamp, begin_ns_ + ns);
  packet_.integer(kTimestampClock, kBootTime);
  packet_.integer(kSequence, sequence_);
  packet_.message(kTrackEvent, event);
  put();
}

void PerfettoPackets::put_descriptor(const ProtoMessage& descriptor) {
  put_packet(kTrackDescriptor, descriptor);
}

void PerfettoPackets::put_config(const ProtoMessage& config) { put_packet(kTraceConfig, config); }

void PerfettoPackets::put_packet(unsigned field, const ProtoMessage& message) {
  packet_.clear();
  packet_.integer(kSequence, sequence_);
  packet_.message(field, message);
  put();
}

void PerfettoPackets::put() {
  trace_.clear();
  trace_.message(kPacket, packet_);
  sink_.put(trace_.view());
}

}  // namespace ptkit::tables::calls
