// Decodes packets into events: binds FUPs and TIPs to the events that wait for them, and passes events to the
// EventBinder.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "flow/events/context.h"
#include "flow/events/event_binder.h"
#include "flow/events/event_state.h"
#include "flow/events/pending.h"
#include "packet/decoder.h"

namespace ptkit::flow {

// Options of EventKind::TICK, and the timing packets that give a time with the known clock parameters.
struct TickOptions {
  bool on = false;
  bool by_mtc = false;         // the MTC period and the ratio of TSC to CTC are known
  bool by_cbr = false;         // the ratio of TSC to the bus clock is known
  bool over_overflow = false;  // the cycle length found before an overflow holds after it
};

class EventDecoder {
 public:
  EventDecoder(packet::PacketDecoder& packets, EventBinder& binder, Walker& walker, ContextTracker& context,
               const packet::Errata& errata, const TickOptions& ticks, EventTrace event_trace)
      : packets_(packets),
        binder_(binder),
        walker_(walker),
        context_(context),
        errata_(errata),
        ticks_(ticks) {
    state_.event_trace = event_trace;
  }

  // Applies one packet. The position of `packets` is after it; overflow errata may advance it.
  void apply(const packet::Packet& packet);
  // Applies the remaining `count` bits of a TNT packet (oldest in bit 0).
  void apply_rest(const packet::Packet& tnt, std::uint64_t bits, unsigned count);
  // Drops all state: decoding continues at a PSB that was searched for.
  void restart();
  // Decoding begins at a packet of a stream without a PSB before it.
  void begin_without_psb() noexcept { state_.first_psb = false; }
  // True after a complete PSB+ while no event waits for a packet: a Checkpoint can be taken.
  [[nodiscard]] bool at_rest() const noexcept {
    return !in_header_ && pending_.empty() && pebs_.empty() && !binder_.waits_for_target() &&
           !binder_.needs_psb();
  }
  // The state between two packets, where at_rest().
  [[nodiscard]] const EventState& state() const noexcept { return state_; }
  void set_state(const EventState& state) noexcept { state_ = state; }
  // True if an IFLAG row was dropped because event trace is UNKNOWN: for SpeculationDeps.
  [[nodiscard]] bool depends_on_event_trace() const noexcept { return depends_on_event_trace_; }
  [[nodiscard]] bool gives_ticks() const noexcept { return ticks_.on; }

  // For FastFlow, which uses packets itself.
  //
  // Offset of the PIP of the last PSB+, unless a PIP outside a PSB+ followed.
  [[nodiscard]] const std::optional<std::uint64_t>& pip_at() const noexcept { return pip_at_; }
  // PSB+ or MODE.Exec were used that repeat known state.
  void used_repeats() noexcept {
    if (state_.event_trace == EventTrace::UNKNOWN) depends_on_event_trace_ = true;
  }
  // Timing packets came since the last other packet.
  [[nodiscard]] bool timing_seen() const noexcept { return timing_seen_; }
  void set_timing_seen(bool seen) noexcept { timing_seen_ = seen; }

 private:
  using Packet = packet::Packet;
  using PacketKind = packet::PacketKind;

  void watch_tips(const packet::Packet& packet) noexcept;
  void watch_tip_order(const packet::Packet& packet) noexcept;
  void note_since(const packet::Packet& packet, bool tnt);
  void begin(const Packet& packet, bool tnt);
  void end(const Packet& packet, bool tnt);
  void apply_alone(const Packet& packet);

  // Branches (event_decoder.cpp)
  void on_tnt(const Packet& packet);
  void on_tip(const Packet& packet);
  void on_tip_pge(const Packet& packet);
  void on_tip_pgd(const Packet& packet);
  void on_fup(const Packet& packet);
  void pass_by(const Packet& packet);
  void emit_bound(std::uint8_t bindings, const Packet* ip_packet);
  void tick();
  void watch_time(PacketKind kind) noexcept;

  // PSB+ (psb.cpp)
  void on_psb(const Packet& packet);
  void on_header_packet(const Packet& packet);
  void keep_header_event(const Packet& packet);
  void end_header(std::optional<bool> status);
  void cut_header(const Packet& packet);
  [[nodiscard]] std::optional<bool> status_before(PacketKind kind) const noexcept;
  [[nodiscard]] bool contradicts_mode(const Packet& packet) const;
  void emit_header_mode(Event event);
  [[nodiscard]] bool pge_follows() const;

  // Packets that are no TNT or TIP, and events by single packets (packet_events.cpp)
  void apply_rare(const Packet& packet);
  void on_mode_exec(const Packet& packet);
  void on_mode_tsx(const Packet& packet);
  void on_pip(const Packet& packet);
  void on_vmcs(const Packet& packet);
  void on_exstop(const Packet& packet);
  void on_trig(const Packet& packet);
  void report(const Packet& packet, const Event& event);
  void emit_pebs(const Packet* ip_packet);

  // Event trace (event_trace.cpp)
  void on_cfe(const Packet& packet);
  void on_evd(const Packet& packet);
  void emit_event_data(const Event& data);

  // Overflow (overflow.cpp)
  void on_ovf(const Packet& packet);
  bool recover_skd010();
  bool resume_skd010(const packet::DecoderState& before, packet::PacketDecoder& lookahead,
                     const Packet& packet);
  bool recover_apl11();
  bool apl12_applies(const packet::DecoderState& after_fup) const;
  void emit_all_unbound();
  void resume_after(const packet::DecoderState& state, const Packet& packet, bool ip_known, std::uint64_t ip);

  [[nodiscard]] static Event make(EventKind kind) noexcept;
  [[nodiscard]] static Event make_tsx(const Packet& mode) noexcept;
  void prove_event_trace() noexcept {
    if (state_.event_trace == EventTrace::UNKNOWN) state_.event_trace = EventTrace::ON;
  }
  void emit(const Event& event) {
    if (event.kind == EventKind::IFLAG && state_.event_trace != EventTrace::ON) {
      depends_on_event_trace_ = depends_on_event_trace_ || state_.event_trace == EventTrace::UNKNOWN;
      return;
    }
    state_.time_moved = false;
    binder_.event(event);
  }
  void wait(std::uint8_t binding, const Event& event);

  packet::PacketDecoder& packets_;
  EventBinder& binder_;
  Walker& walker_;
  ContextTracker& context_;
  packet::Errata errata_;
  TickOptions ticks_;
  EventState state_;
  bool depends_on_event_trace_ = false;

  PendingEvents pending_;
  std::vector<Event> pebs_;           // the open PEBS block
  bool pebs_waits_ = false;           // the PEBS block is complete, and its FUP follows
  bool tip_may_be_deferred_ = false;  // the current packet is such a TIP
  bool timing_seen_ = false;
  bool in_header_ = false;
  std::optional<std::uint64_t> pip_at_;
  bool header_fup_ = false;
  std::uint64_t header_ip_ = 0;
  std::vector<Event> header_;
};

}  // namespace ptkit::flow
