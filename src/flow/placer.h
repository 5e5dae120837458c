// Applies what packets say to the code: takes branches, finds where events happened, gives rows, and handles
// what does not fit.
#pragma once

#include "flow/context.h"
#include "flow/recovery.h"
#include "flow/tnt_probe.h"
#include "flow/walker.h"
#include "packet/errata.h"

namespace ptkit::flow {

struct PlacerOptions {
  bool to_next_psb = false;   // after an error: give up until the next PSB
  bool tnt_disabled = false;  // IA32_RTIT_CTL.DisTNT was set
  bool ptw_disabled = false;  // IA32_RTIT_CTL.PTWEn was clear: whoever recorded put PTW packets in
  bool no_code = false;       // there is none at all: give what needs no code, and say so once
  packet::Errata errata;
};

class Placer {
 public:
  enum class State : std::uint8_t {
    OFF,   // packets are off: no control flow
    ON,    // the walker knows where execution is
    LOST,  // packets are on, but where execution is is not known; a gap is open
  };

  Placer(FlowSink& sink, Walker& walker, ContextTracker& context, Recovery& recovery, TntProbe& probe,
         const PlacerOptions& options)
      : sink_(sink),
        walker_(walker),
        context_(context),
        recovery_(recovery),
        probe_(probe),
        options_(options) {}

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool on() const noexcept { return state_ != State::OFF; }
  [[nodiscard]] bool waits_for_target() const noexcept { return walker_.bits_left() != 0; }
  // Only a PSB can help: after an error with to_next_psb, or after a contradiction in a PSB+.
  [[nodiscard]] bool wants_psb() const noexcept { return wants_psb_; }
  void want_psb() noexcept { wants_psb_ = true; }
  void psb_found() noexcept { wants_psb_ = false; }

  void set_packet(packet::PacketKind kind) noexcept {
    packet_ = kind;
  }  // the one that is being applied, for errors
  void tnt(std::uint64_t bits, unsigned count);
  void more_tnt(std::uint64_t bits, unsigned count);  // the rest of a packet whose first bits were given
  // `deferred`: the packet may be younger than its branch. True: the branch is an indirect jump or call, and
  // no bits waited for its target.
  bool tip(std::uint64_t ip, bool deferred);
  void tnt_flushed() noexcept { bits_dropped_ = false; }  // by a packet that no TIP is deferred over
  void tips_are_not_deferred() noexcept { tips_deferred_ = false; }
  void event(Event event);  // EV_IP_KNOWN: where it happened, told by a FUP or TIP
  // What a PSB+ says about packets being on. `first`: nothing before it counts.
  void status(bool enabled, std::uint64_t ip, bool first);
  void pause();                                  // overflow: until its event tells, nothing is known
  void lose(GapCause cause, base::Status code);  // the stream itself is damaged here; gives no error row
  void finish();                                 // end of the stream
  // Something that the packets alone show to be wrong.
  void contradiction(base::Status code);
  void contradiction(base::Status code, std::uint64_t argument, std::uint64_t argument2);

 private:
  friend struct CheckpointAccess;
  friend class FastFlow;

  base::Status place(Event& event);
  base::Status place_enabled(Event& event);
  base::Status place_disabled(Event& event);
  base::Status place_async(Event& event);
  base::Status place_tx(const Event& event);
  base::Status place_trig(Event& event);
  base::Status place_at_ip(const Event& event);
  base::Status place_at(Event& event, Anchor anchor, bool behind);
  base::Status place_overflow(const Event& event);
  void place_lost(Event event);
  void place_lost_branch(const Event& event);
  void apply_state(const Event& event);
  void give(Event event, bool ip_told);
  void give_async(const Event& event);
  void fail(base::Status status, const Event* event);
  bool lost_to_missing_tnt(base::Status status);
  void give_unseen_branch(std::uint64_t to_ip);
  void anchor(std::uint64_t ip);
  void anchor_without_code(std::uint64_t ip);
  void switch_off(std::uint64_t resume_ip);
  void move_trig_anchor(EventKind kind, bool ip_told);

  FlowSink& sink_;
  Walker& walker_;
  ContextTracker& context_;
  Recovery& recovery_;
  TntProbe& probe_;
  PlacerOptions options_;
  packet::PacketKind packet_ = packet::PacketKind::PAD;
  State state_ = State::OFF;
  bool wants_psb_ = false;
  // While LOST: TNT bits were dropped, and TIPs that follow may have been deferred over some of them.
  bool bits_dropped_ = false;
  // Unless the stream shows that this processor does not defer TIPs. Less is needed for that than for times
  // (TipOrder): a wrong guess here costs another error and gap, which are given; a wrong time would not show.
  bool tips_deferred_ = true;
  bool relied_on_deferral_ = false;  // a target was left out because of it; for Reliance
  bool no_code_told_ = false;
  bool after_branch_ = false;  // nothing was placed since the last branch that took a packet
  bool abort_known_ = false;   // a transaction was aborted at abort_ip_, and its TIP is yet to come
  bool trig_anchored_ = false;
  std::uint64_t bound_ = 0;  // kinds of events (bits) that were bound to the instruction the walker stands at
  std::uint64_t abort_ip_ = 0;
  std::uint64_t resume_ip_ = 0;    // where packets would go on if nothing else was executed; 0: nowhere
  std::uint64_t trig_anchor_ = 0;  // instructions given when the last anchor of TRIG packets was
};

}  // namespace ptkit::flow
