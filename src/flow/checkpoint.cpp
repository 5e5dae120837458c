#include "flow/checkpoint.h"

#include <algorithm>

namespace ptkit::flow {

namespace {

// Two MTCs are enough to tell how long a cycle is.
constexpr unsigned kMtcsThatCount = 2;

bool same_gap(const std::optional<Gap>& a, const std::optional<Gap>& b) noexcept {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->begin == b->begin && a->from_ip == b->from_ip && a->cause == b->cause && a->code == b->code &&
         a->flags == b->flags;
}

bool same_packets(const packet::DecoderState& a, const packet::DecoderState& b) noexcept {
  return a.position == b.position && a.last_ip == b.last_ip && a.last_ip_known == b.last_ip_known &&
         a.in_psb == b.in_psb && a.block_open == b.block_open && a.block_items_4 == b.block_items_4 &&
         a.has_cs_base == b.has_cs_base;
}

bool same_events(const Checkpoint::Events& a, const Checkpoint::Events& b) noexcept {
  if (a.mode_known != b.mode_known) return false;
  if (a.mode_known && (a.mode_bits != b.mode_bits || a.iflag != b.iflag)) return false;
  return a.since == b.since && a.tnt_before == b.tnt_before && a.tip_watch == b.tip_watch &&
         a.tip_order == b.tip_order && a.first_psb == b.first_psb && a.time_moved == b.time_moved &&
         a.cycles_tell_time == b.cycles_tell_time && a.mtcs == b.mtcs;
}

bool same_branch(const std::optional<Run>& a, const std::optional<Run>& b) noexcept {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->end == b->end && a->last_ip == b->last_ip && a->next_ip == b->next_ip && a->target == b->target &&
         a->branch == b->branch && a->pushes == b->pushes;
}

// Where execution stands: matters only while that is known. Each way to know it again begins anew.
bool same_spot(const Checkpoint& a, const Checkpoint& b) noexcept {
  if (a.walk.ip != b.walk.ip || !same_branch(a.walk.branch, b.walk.branch)) return false;
  if (a.placed.trig_anchored != b.placed.trig_anchored) return false;
  if (a.placed.trig_anchored && a.placed.since_trig != b.placed.since_trig) return false;
  if (a.walk.anchor_known != b.walk.anchor_known) return false;
  return !a.walk.anchor_known ||
         (a.walk.anchor_ip == b.walk.anchor_ip && a.walk.anchor.kind == b.walk.anchor.kind &&
          a.walk.anchor.cls == b.walk.anchor.cls && a.placed.bound == b.placed.bound);
}

bool same_placed(const Checkpoint::Placed& a, const Checkpoint::Placed& b) noexcept {
  if (a.state != b.state || a.abort_known != b.abort_known) return false;
  if (a.abort_known && a.abort_ip != b.abort_ip) return false;
  // Packets that go off later say themselves where they would go on.
  if (a.state == Placer::State::OFF && a.resume_ip != b.resume_ip) return false;
  return a.bits_dropped == b.bits_dropped && a.tnt_disabled == b.tnt_disabled &&
         a.no_code_told == b.no_code_told && a.after_branch == b.after_branch;
}

bool same_seen(const Checkpoint::Seen& a, const Checkpoint::Seen& b) noexcept {
  return a.context.space == b.context.space && a.context.cpu == b.context.cpu &&
         a.context.pid == b.context.pid && a.context.tid == b.context.tid && a.mode == b.mode &&
         a.tsc == b.tsc && a.next_switch == b.next_switch;
}

// Proofs that the real decoder has and the other one did without.
bool same_proofs(const Checkpoint& assumed, const Checkpoint& real, const Reliance& relied) noexcept {
  if (assumed.placed.tips_deferred != real.placed.tips_deferred &&
      (!assumed.placed.tips_deferred || relied.tips_deferred)) {
    return false;
  }
  return assumed.events.event_trace == real.events.event_trace ||
         (assumed.events.event_trace == EventTrace::UNKNOWN && !relied.event_trace);
}

}  // namespace

void Checkpoint::begin_at_psb(std::uint64_t psb, const trace::Stream& stream) {
  const bool has_cs_base = packets.has_cs_base;
  packets = {};
  packets.position = psb;
  packets.has_cs_base = has_cs_base;
  next_loss = static_cast<std::size_t>(
      std::count_if(stream.losses.begin(), stream.losses.end(),
                    [psb](const trace::KnownLoss& loss) { return loss.offset <= psb; }));
  const EventTrace event_trace = events.event_trace;
  const TipOrder tip_order = events.tip_order;
  events = {};
  events.since = psb;
  events.event_trace = event_trace;
  events.tip_order = tip_order;
  events.tip_order.other();
  const bool tnt_disabled = placed.tnt_disabled;
  placed = {};
  placed.tnt_disabled = tnt_disabled;
  walk = {};
  walk.place = {psb, psb};
  gap.reset();
  if (!stream.switches_by_offset) return;
  const auto next =
      std::upper_bound(stream.switches.begin(), stream.switches.end(), psb,
                       [](std::uint64_t offset, const trace::Switch& one) { return offset < one.offset; });
  seen.next_switch = static_cast<std::size_t>(next - stream.switches.begin());
  if (next == stream.switches.begin()) return;
  seen.context.space = std::prev(next)->space;
  seen.context.pid = std::prev(next)->pid;
  seen.context.tid = std::prev(next)->tid;
}

bool equivalent(const Checkpoint& assumed, const Checkpoint& real, const Reliance& relied) noexcept {
  return !relied.kept_returns && same_packets(assumed.packets, real.packets) &&
         assumed.next_loss == real.next_loss && same_events(assumed.events, real.events) &&
         same_placed(assumed.placed, real.placed) && same_proofs(assumed, real, relied) &&
         assumed.walk.in_tx == real.walk.in_tx && assumed.walk.place.since == real.walk.place.since &&
         assumed.walk.place.offset == real.walk.place.offset &&
         assumed.walk.budget.same_from(real.walk.budget, real.packets.position) &&
         assumed.walk.calls.same_but_for_guesses(real.walk.calls) && same_seen(assumed.seen, real.seen) &&
         same_gap(assumed.gap, real.gap) &&
         (real.placed.state != Placer::State::ON || same_spot(assumed, real));
}

void complete(Checkpoint& end, const Checkpoint& real) noexcept {
  end.placed.tips_deferred = end.placed.tips_deferred && real.placed.tips_deferred;
  if (end.events.event_trace == EventTrace::UNKNOWN) end.events.event_trace = real.events.event_trace;
  end.walk.calls.fill_in(real.walk.calls);
}

void CheckpointAccess::save(const EventDecoder& events, Checkpoint& out) {
  Checkpoint::Events& to = out.events;
  to.psb = events.header_at_;
  to.since = events.since_;
  to.tnt_before = events.tnt_before_;
  to.tip_watch = static_cast<std::uint8_t>(events.tip_watch_);
  to.tip_order = events.tip_order_;
  to.mode_known = events.mode_known_;
  to.mode_bits = events.mode_bits_;
  to.iflag = events.iflag_;
  to.first_psb = events.first_psb_;
  to.event_trace = events.event_trace_;
  if (!events.ticks_.on) return;
  to.time_moved = events.time_moved_;
  to.cycles_tell_time = events.cycles_tell_time_;
  to.mtcs = std::min(events.mtcs_, kMtcsThatCount);
}

void CheckpointAccess::load(EventDecoder& events, const Checkpoint& from) {
  events.restart();
  events.header_at_ = from.events.psb;
  events.since_ = from.events.since;
  events.tnt_before_ = from.events.tnt_before;
  events.tip_watch_ = static_cast<EventDecoder::TipWatch>(from.events.tip_watch);
  events.tip_order_ = from.events.tip_order;
  events.mode_known_ = from.events.mode_known;
  events.mode_bits_ = from.events.mode_bits;
  events.iflag_ = from.events.iflag;
  events.first_psb_ = from.events.first_psb;
  events.event_trace_ = from.events.event_trace;
  events.time_moved_ = from.events.time_moved;
  events.cycles_tell_time_ = from.events.cycles_tell_time;
  events.mtcs_ = from.events.mtcs;
}

void CheckpointAccess::save(const Placer& placer, Checkpoint& out) {
  Checkpoint::Placed& to = out.placed;
  to.state = placer.state_;
  to.bits_dropped = placer.bits_dropped_;
  to.tips_deferred = placer.tips_deferred_;
  to.tnt_disabled = placer.options_.tnt_disabled;
  to.no_code_told = placer.no_code_told_;
  to.after_branch = placer.after_branch_;
  to.abort_known = placer.abort_known_;
  // What counts for nothing is left out: decoders that began elsewhere have other values there.
  to.abort_ip = placer.abort_known_ ? placer.abort_ip_ : 0;
  to.resume_ip = placer.state_ == Placer::State::OFF ? placer.resume_ip_ : 0;
  to.trig_anchored = placer.trig_anchored_;
  to.since_trig = placer.walker_.instructions() - placer.trig_anchor_;
  to.bound = placer.bound_;
  out.gap.reset();
  if (placer.recovery_.is_open()) out.gap = placer.recovery_.gap();
}

void CheckpointAccess::load(Placer& placer, const Checkpoint& from) {
  const Checkpoint::Placed& placed = from.placed;
  placer.state_ = placed.state;
  placer.bits_dropped_ = placed.bits_dropped;
  placer.tips_deferred_ = placed.tips_deferred;
  placer.options_.tnt_disabled = placed.tnt_disabled;
  placer.no_code_told_ = placed.no_code_told;
  placer.after_branch_ = placed.after_branch;
  placer.abort_known_ = placed.abort_known;
  placer.abort_ip_ = placed.abort_ip;
  placer.resume_ip_ = placed.resume_ip;
  placer.trig_anchored_ = placed.trig_anchored;
  placer.trig_anchor_ = placer.walker_.instructions() - placed.since_trig;
  placer.bound_ = placed.bound;
  placer.recovery_.set_gap(from.gap);
}

void CheckpointAccess::save(const Walker& walker, Checkpoint& out) {
  Checkpoint::Walk& to = out.walk;
  to.place = walker.place_;
  to.ip = walker.ip_;
  to.branch.reset();
  if (walker.at_end_) to.branch = *walker.run_;
  to.in_tx = walker.in_tx_;
  to.anchor_known = walker.anchor_known_;
  to.anchor = walker.anchor_insn_;
  to.anchor_ip = walker.anchor_known_ ? walker.anchor_ip_ : 0;
  to.budget = walker.budget_;
  to.calls = walker.calls_;
}

void CheckpointAccess::load(Walker& walker, const Checkpoint& from) {
  const Checkpoint::Walk& walk = from.walk;
  walker.place_ = walk.place;
  walker.jump_to(walk.ip);
  if (walk.branch) {
    walker.at_end_ = true;
    walker.run_ = &(walker.crossing_ = *walk.branch);
    walker.crossing_.next_run = walker.crossing_.target_run = nullptr;
  }
  walker.bits_left_ = 0;
  walker.in_tx_ = walk.in_tx;
  walker.anchor_known_ = walk.anchor_known;
  walker.anchor_insn_ = walk.anchor;
  walker.anchor_ip_ = walk.anchor_ip;
  walker.budget_ = walk.budget;
  walker.calls_ = walk.calls;
}

void CheckpointAccess::save(const ContextTracker& context, Checkpoint& out) {
  out.seen = {context.context_, context.mode_, context.tsc_, context.next_switch_};
}

void CheckpointAccess::load(ContextTracker& context, const Checkpoint& from) {
  context.context_ = from.seen.context;
  context.mode_ = from.seen.mode;
  context.tsc_ = from.seen.tsc;
  context.next_switch_ = from.seen.next_switch;
  context.find_switch_at();
  context.see();
  context.give(from.packets.position);
}

void CheckpointAccess::assume(Walker& walker) noexcept { walker.calls_.guess_kept(); }

Reliance CheckpointAccess::reliance(const EventDecoder& events, const Placer& placer,
                                    const Walker& walker) noexcept {
  return {walker.calls_.relied_on_guess(), placer.relied_on_deferral_, events.relied_on_event_trace_};
}

}  // namespace ptkit::flow
