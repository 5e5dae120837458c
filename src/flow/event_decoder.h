// Packets to their meaning: binds FUPs and TIPs to the events that wait for them, and hands all to the
// Placer.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "flow/context.h"
#include "flow/pending.h"
#include "flow/placer.h"
#include "flow/tip_order.h"
#include "packet/decoder.h"

namespace ptkit::flow {

// When to give EventKind::TICK, and which timing packets tell time at all with what is known of the clocks.
struct TickOptions {
  bool on = false;
  bool by_mtc = false;         // the MTC period and the ratio of TSC to CTC are known
  bool by_cbr = false;         // the ratio of TSC to the bus clock is known
  bool over_overflow = false;  // what was learnt about cycles holds after an overflow
};

// Was event trace on (IA32_RTIT_CTL.EventEn)? Only then MODE.Exec carries the interrupt flag; otherwise its
// bit is reserved and 0 (manual, "MODE.Exec Packet").
enum class EventTrace : std::uint8_t {
  OFF,
  ON,
  UNKNOWN,  // until a packet proves it: CFE, EVD, or MODE.Exec with the flag
};

class EventDecoder {
 public:
  EventDecoder(packet::PacketDecoder& packets, Placer& placer, Walker& walker, ContextTracker& context,
               const packet::Errata& errata, const TickOptions& ticks, EventTrace event_trace)
      : packets_(packets),
        placer_(placer),
        walker_(walker),
        context_(context),
        errata_(errata),
        ticks_(ticks),
        event_trace_(event_trace) {}

  // Applies one packet. `packets` stands behind it, and may be moved on (overflow errata).
  void apply(const packet::Packet& packet);
  // The same for a TNT packet whose first bits were used: `bits` (oldest in bit 0) are left of it. `walked`:
  // the walker's instructions before it.
  void apply_rest(const packet::Packet& tnt, std::uint64_t bits, unsigned count, std::uint64_t walked);
  // Nothing of before counts: a PSB was searched for.
  void restart();
  // Behind a whole PSB+ nothing waits for a packet: a Checkpoint can be taken.
  [[nodiscard]] bool at_rest() const noexcept {
    return !in_header_ && pending_.empty() && pebs_.empty() && !placer_.waits_for_target() &&
           !placer_.wants_psb();
  }
  // Offset of the PSB of the last PSB+.
  [[nodiscard]] std::uint64_t header_at() const noexcept { return header_at_; }

 private:
  friend struct CheckpointAccess;
  friend class FastFlow;
  using Packet = packet::Packet;
  using PacketKind = packet::PacketKind;

  // For recovery: a TNT packet that was not full, then TIPs, then another TNT. Those TIPs wrote the first one
  // out, so that the processor does not defer them. See TipOrder for what times need.
  enum class TipWatch : std::uint8_t { NONE, PARTIAL_TNT, TIP };
  void watch_tips(const packet::Packet& packet) noexcept;
  void watch_tip_order(const packet::Packet& packet) noexcept;
  void note_since(const packet::Packet& packet, bool tnt);
  void begin(const Packet& packet, bool tnt);
  void end(const Packet& packet, bool tnt);
  void apply_rare(const Packet& packet);
  void apply_simple(const Packet& packet);

  // Branches (event_decoder.cpp)
  void on_tnt(const Packet& packet);
  void on_tip(const Packet& packet);
  void on_tip_pge(const Packet& packet);
  void on_tip_pgd(const Packet& packet);
  void on_fup(const Packet& packet);
  void give_bound(std::uint8_t bindings, const Packet* ip_packet);
  void tick();
  void watch_time(PacketKind kind) noexcept;

  // PSB+ (psb.cpp)
  void on_psb(const Packet& packet);
  void on_header_packet(const Packet& packet);
  void keep_header_event(const Packet& packet);
  void end_header(bool by_overflow);
  [[nodiscard]] bool contradicts_mode(const Packet& packet) const;
  void give_header_mode(Event event);
  [[nodiscard]] bool pge_follows() const;

  // State and events by single packets (packet_events.cpp)
  void on_mode_exec(const Packet& packet);
  void on_mode_tsx(const Packet& packet);
  void on_pip(const Packet& packet);
  void on_vmcs(const Packet& packet);
  void on_ptw(const Packet& packet);
  void on_exstop(const Packet& packet);
  void on_pwrx(const Packet& packet);
  void on_trig(const Packet& packet);
  void give_pebs(const Packet* ip_packet);

  // Event trace (event_trace.cpp)
  void on_cfe(const Packet& packet);
  void on_evd(const Packet& packet);
  void give_event_data(const Event& data);

  // Overflow (overflow.cpp)
  void on_ovf(const Packet& packet);
  bool recover_skd010();
  bool resume_skd010(const packet::DecoderState& before, packet::PacketDecoder& ahead, const Packet& packet);
  bool recover_apl11();
  bool apl12_applies(const packet::DecoderState& behind_fup) const;
  void give_all_unplaced();
  void go_on_behind(const packet::DecoderState& state, const Packet& packet, bool ip_known, std::uint64_t ip);

  [[nodiscard]] static Event make(EventKind kind) noexcept;
  [[nodiscard]] static Event make_tsx(const Packet& mode) noexcept;
  void prove_event_trace() noexcept {
    if (event_trace_ == EventTrace::UNKNOWN) event_trace_ = EventTrace::ON;
  }
  void give(const Event& event) {
    if (event.kind == EventKind::IFLAG && event_trace_ != EventTrace::ON) {
      relied_on_event_trace_ = relied_on_event_trace_ || event_trace_ == EventTrace::UNKNOWN;
      return;
    }
    time_moved_ = false;
    placer_.event(event);
  }
  void wait(std::uint8_t binding, const Event& event);

  packet::PacketDecoder& packets_;
  Placer& placer_;
  Walker& walker_;
  ContextTracker& context_;
  packet::Errata errata_;
  TickOptions ticks_;
  EventTrace event_trace_;
  bool relied_on_event_trace_ = false;  // a row was left out because it is not known; for Reliance

  PendingEvents pending_;
  std::vector<Event> pebs_;  // the open PEBS block
  bool pebs_waits_ = false;  // it ended; its FUP is to come
  TipWatch tip_watch_ = TipWatch::NONE;
  TipOrder tip_order_;
  // Offset of the TNT packet right before, timing packets aside, or of a TIP that may have been deferred.
  std::optional<std::uint64_t> tnt_before_;
  bool tip_may_be_deferred_ = false;  // the packet that is applied is such a TIP
  std::uint64_t since_ = 0;           // offset of the last packet that everything before it is older than

  bool mode_known_ = false;  // the MODE.Exec state, to tell what a packet changes
  std::uint64_t mode_bits_ = 0;
  bool iflag_ = false;

  bool first_psb_ = true;     // nothing is known yet
  bool timing_seen_ = false;  // timing packets came since the last other packet
  bool in_header_ = false;
  std::uint64_t header_at_ = 0;          // offset of its PSB
  std::optional<std::uint64_t> pip_at_;  // offset of a PIP that a PSB+ had, unless one stood elsewhere since
  bool header_fup_ = false;
  std::uint64_t header_ip_ = 0;
  std::vector<Event> header_;

  // For ticks.
  bool time_moved_ = false;        // since the last event or branch that took a packet
  bool cycles_tell_time_ = false;  // CYC can be converted to time
  unsigned mtcs_ = 0;              // since the stream began or an overflow
};

}  // namespace ptkit::flow
