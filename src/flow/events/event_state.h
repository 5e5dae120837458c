// State of the EventDecoder between two packets.
#pragma once

#include <cstdint>
#include <optional>

namespace ptkit::flow {

// Detects whether a TIP packet gives the time of its branch. A processor may defer TIPs (SDM vol. 3,
// "Deferred TIPs"): it emits TIPs of branches between the bits of a TNT packet after that packet, at a later
// time.
//
// A processor that does not defer TIPs emits a partial TNT packet before the TIP of an indirect jump or call.
// A processor that defers TIPs emits a partial TNT packet for another packet, which then follows the TIP, or
// "at any time" (SDM vol. 3, "Taken/Not-taken (TNT) Packet"). No known recording of hardware shows the
// latter, but it is possible. So one sequence TNT, TIP, TNT proves that TIPs are in order. After a TIP that
// was certainly deferred, the proof takes kProofsAfterDeferral sequences.
//
//            partial TNT              near TIP           TNT
//   OTHER -----------------> PARTIAL_TNT --------> TIP ----------> one proof
//
// A TNT packet leads to PARTIAL_TNT or OTHER, and any other packet leads to OTHER.
class TipOrder {
 public:
  [[nodiscard]] bool in_order() const noexcept { return proofs_needed_ == 0; }

  // TNT packets, TIPs, and all other packets but PAD and CYC, in stream order.
  void tnt(bool full) noexcept {
    if (in_order()) return;
    if (last_ == Last::TIP) --proofs_needed_;
    last_ = full || in_order() ? Last::OTHER : Last::PARTIAL_TNT;
  }
  // `near`: the branch is an indirect jump or call. A processor may have to emit TIPs of returns and far
  // transfers at once; these flush the deferred TIPs. So does the TIP that fills the buffer of deferred TIPs.
  void tip(bool near) noexcept { last_ = near && last_ == Last::PARTIAL_TNT ? Last::TIP : Last::OTHER; }
  void other() noexcept { last_ = Last::OTHER; }
  // Bits of a TNT packet are younger than the branch of a TIP after it, so that TIP was deferred.
  void deferred() noexcept {
    proofs_needed_ = kProofsAfterDeferral;
    last_ = Last::OTHER;
  }
  void expect_in_order() noexcept {
    proofs_needed_ = 0;
    last_ = Last::OTHER;
  }

  template <typename Fields>
  void describe(Fields& fields) {
    auto& [proofs_needed, last] = *this;
    fields(proofs_needed, kProofsAfterDeferral);
    fields(last, Last::TIP);
  }
  friend bool operator==(const TipOrder&, const TipOrder&) = default;

 private:
  enum class Last : std::uint8_t {
    OTHER,
    PARTIAL_TNT,
    TIP,  // TIP of an indirect jump or call, after a partial TNT packet
  };
  static constexpr std::uint8_t kProofsAfterDeferral = 8;  // proofs that are needed after a deferred TIP

  std::uint8_t proofs_needed_ = 1;
  Last last_ = Last::OTHER;
};

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
