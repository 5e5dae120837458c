// Binds packets and events to instructions (libipt: event binding): uses TNT bits and TIPs at branches, finds
// the instruction of each event, emits rows, and turns mismatches into errors and gaps.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "flow/events/context.h"
#include "flow/events/recovery.h"
#include "flow/walk/walker.h"
#include "packet/errata.h"
#include "packet/packet.h"

namespace ptkit::flow {

// Detects a stream without TNT packets (IA32_RTIT_CTL.DisTNT) if the configuration does not have the bit.
class TntProbe {
 public:
  explicit TntProbe(base::Bytes stream) : stream_(stream) {}

  // True if the stream has no TNT packet, but so many TIPs that the code must have conditional branches. The
  // first call scans the stream.
  [[nodiscard]] bool no_tnt() {
    if (!scanned_) {
      scanned_ = true;
      no_tnt_ = scan();
    }
    return no_tnt_;
  }

 private:
  static constexpr unsigned kEnoughTargets = 16;

  [[nodiscard]] bool scan() const;

  base::Bytes stream_;
  bool scanned_ = false;
  bool no_tnt_ = false;
};

struct BinderOptions {
  bool to_next_psb = false;   // after an error, skip packets up to the next PSB
  bool tnt_disabled = false;  // IA32_RTIT_CTL.DisTNT was set: see BinderState
  bool ptw_disabled = false;  // IA32_RTIT_CTL.PTWEn was clear: PTW packets come from the recorder
  bool no_code = false;       // the image has no code: emit what needs no code, and report one error
  packet::Errata errata;
};

// State of the EventBinder between two packets. Where the position is part of it, the Walker has that.
struct BinderState {
  enum class Flow : std::uint8_t {
    OFF,   // packets are disabled: no control flow
    ON,    // packets are enabled, and the walker knows the IP
    LOST,  // packets are enabled, and the IP is unknown; a gap is open
  };

  Flow flow = Flow::OFF;
  // While LOST: TNT bits were dropped, and later TIPs may have been deferred over some of them.
  bool bits_dropped = false;
  // False once the stream shows that this processor does not defer TIPs. This needs less proof than TipOrder:
  // a wrong value here causes an error and a gap, which are visible; a wrong time would not be visible.
  bool tips_deferred = true;
  bool tnt_disabled = false;  // conditional branches are not recorded
  bool no_code_reported = false;
  bool after_branch = false;              // no event was bound since the last branch that used a packet
  std::optional<std::uint64_t> abort_ip;  // a transaction was aborted there, and its TIP follows
  std::uint64_t resume_ip = 0;  // OFF: where packets are enabled if nothing else executes; 0: nowhere
};

class EventBinder {
 public:
  using Flow = BinderState::Flow;

  EventBinder(FlowSink& sink, Walker& walker, ContextTracker& context, Recovery& recovery, TntProbe& probe,
              const BinderOptions& options)
      : sink_(sink),
        walker_(walker),
        context_(context),
        recovery_(recovery),
        probe_(probe),
        options_(options) {
    state_.tnt_disabled = options.tnt_disabled;
  }

  // The state between two packets.
  [[nodiscard]] const BinderState& state() const noexcept { return state_; }
  void set_state(const BinderState& state) noexcept { state_ = state; }
  // True if a target was dropped because of BinderState::tips_deferred: for SpeculationDeps.
  [[nodiscard]] bool depends_on_deferral() const noexcept { return depends_on_deferral_; }

  [[nodiscard]] bool on() const noexcept { return state_.flow != Flow::OFF; }
  [[nodiscard]] bool lost() const noexcept { return state_.flow == Flow::LOST; }
  [[nodiscard]] bool has_code() const noexcept { return !options_.no_code; }
  [[nodiscard]] bool waits_for_target() const noexcept { return walker_.bits_left() != 0; }
  // True if decoding can only continue at a PSB: after an error with to_next_psb, or after a contradiction in
  // a PSB+.
  [[nodiscard]] bool needs_psb() const noexcept { return needs_psb_; }
  void require_psb() noexcept { needs_psb_ = true; }
  void psb_found() noexcept { needs_psb_ = false; }

  // True if the next TIP.PGE may be a sign of an address filter: see AddressFilter::watch().
  [[nodiscard]] bool checks_enable() const noexcept { return left_call_ip_ != 0; }

  // The packet that is applied, for errors.
  void set_packet(packet::PacketKind kind) noexcept { packet_ = kind; }
  void tnt(std::uint64_t bits, unsigned count);
  // the remaining bits of a packet, after tnt() used its first bits
  void more_tnt(std::uint64_t bits, unsigned count);
  // `deferred`: the packet may be younger than its branch. Returns true if the branch is an indirect jump or
  // call and no TNT bits waited for the target.
  bool tip(std::uint64_t ip, bool deferred);
  // a packet flushed the TNT bits, and no TIP is deferred over it
  void tnt_flushed() noexcept { state_.bits_dropped = false; }
  void tips_are_not_deferred() noexcept { state_.tips_deferred = false; }
  void event(Event event);  // EV_IP_KNOWN: the event has the IP of a FUP or TIP
  // A PSB+ reports whether packets are enabled. `first`: earlier state is void.
  void status(bool enabled, std::uint64_t ip, bool first);
  // A PSB+ lacks its PSBEND. `enabled`: what it says about packets, if anything.
  void header_cut(std::optional<bool> enabled, bool first);
  void pause();                                  // OVF: control flow is unknown until the OVERFLOW event
  void lose(GapCause cause, base::Status code);  // the stream is damaged here; emits no error row
  void lose_start(GapCause cause, base::Status code);  // packets before are missing
  void finish();                                       // end of the stream
  // The packets contradict each other.
  void contradiction(base::Status code);
  void contradiction(base::Status code, std::uint64_t argument, std::uint64_t argument2);

 private:
  base::Status bind(Event& event);
  base::Status bind_enabled(Event& event);
  base::Status bind_disabled(Event& event);
  void watch_for_filter();
  void leave_elsewhere(const Event& event);
  base::Status bind_async(Event& event);
  base::Status bind_tx(const Event& event);
  base::Status bind_trig(Event& event);
  base::Status bind_at_ip(const Event& event);
  base::Status bind_at(Event& event, BindingInsn insn_kind, bool after);
  base::Status bind_overflow(const Event& event);
  void bind_lost(Event event);
  void bind_lost_branch(const Event& event);
  void apply_state(const Event& event);
  void emit(Event event, bool ip_reported);
  void emit_async(const Event& event);
  void report(base::Status code, std::uint64_t argument, std::uint64_t argument2);
  void fail(base::Status status, const Event* event);
  bool lost_to_missing_tnt(base::Status status);
  void emit_unseen_branch(std::uint64_t to_ip);
  void resync(std::uint64_t ip);
  void resync_without_code(std::uint64_t ip);
  void switch_off(std::uint64_t resume_ip);
  void set_flow(Flow flow, std::uint64_t resume_ip = 0) noexcept {
    state_.flow = flow;
    state_.resume_ip = resume_ip;
  }
  void move_icnt(EventKind kind, bool ip_reported);

  FlowSink& sink_;
  Walker& walker_;
  ContextTracker& context_;
  Recovery& recovery_;
  TntProbe& probe_;
  BinderOptions options_;
  packet::PacketKind packet_ = packet::PacketKind::PAD;
  BinderState state_;
  bool needs_psb_ = false;
  std::uint64_t left_call_ip_ = 0;  // packets are off: return address of the last call that was followed
  bool depends_on_deferral_ = false;
};

}  // namespace ptkit::flow
