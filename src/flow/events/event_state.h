// State of the EventDecoder between two packets.
#pragma once

#include <cstdint>
#include <optional>

#include "flow/events/tip_order.h"

namespace ptkit::flow {

// State of event trace (IA32_RTIT_CTL.EventEn). Only with event trace MODE.Exec carries the interrupt flag;
// otherwise the bit is reserved and 0 (manual, "MODE.Exec Packet").
enum class EventTrace : std::uint8_t {
  OFF,
  ON,
  UNKNOWN,  // until a packet proves it: CFE, EVD, or MODE.Exec with the flag
};

// State machine for recovery. A TNT packet that is not full, then TIPs, then another TNT packet prove that
// the processor does not defer TIPs: the TIPs forced out the first TNT packet. TipOrder has the stricter
// rule for times.
//
//            partial TNT               TIP                  TNT
//   NONE --------------------> PARTIAL_TNT ----> TIP ---------------------> TIPs are not deferred
//
// A TNT packet leads to PARTIAL_TNT or NONE, PAD changes nothing, and any other packet leads to NONE.
enum class TipWatch : std::uint8_t { NONE, PARTIAL_TNT, TIP };

// Nothing waits for a packet: no event, and no part of a PSB+ or PEBS block.
struct EventState {
  static constexpr std::uint64_t kIflag = 4;  // in `mode`
  // Two MTCs are enough to compute the length of a cycle.
  static constexpr unsigned kMtcsThatCount = 2;

  std::uint64_t psb = 0;    // offset of the PSB of the last PSB+
  std::uint64_t since = 0;  // offset of the last packet that is younger than everything before it
  // Offset of the preceding TNT packet (timing packets in between do not count), or of a TIP that may have
  // been deferred.
  std::optional<std::uint64_t> tnt_before;
  TipWatch tip_watch = TipWatch::NONE;
  TipOrder tip_order;
  std::optional<std::uint64_t> mode;  // of the last MODE.Exec, which shows what a packet changes
  bool first_psb = true;              // no PSB+ was decoded yet
  EventTrace event_trace = EventTrace::UNKNOWN;
  // Only with ticks:
  bool time_moved = false;        // since the last event or branch that used a packet
  bool cycles_give_time = false;  // CYC packets can be converted to time
  unsigned mtcs = 0;              // MTC packets since the stream began or since an overflow: kMtcsThatCount
};

}  // namespace ptkit::flow
