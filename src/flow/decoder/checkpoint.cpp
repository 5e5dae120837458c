#include "flow/decoder/checkpoint.h"

#include <algorithm>

namespace ptkit::flow {

namespace {

// Two MTCs are enough to compute the length of a cycle.
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
         a.cycles_give_time == b.cycles_give_time && a.mtcs == b.mtcs;
}

bool same_branch(const std::optional<BasicBlock>& a, const std::optional<BasicBlock>& b) noexcept {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->end == b->end && a->last_ip == b->last_ip && a->next_ip == b->next_ip && a->target == b->target &&
         a->branch == b->branch && a->pushes == b->pushes;
}

// Compares the position in the code, which matters only while packets are enabled. Later, TIP.PGE gives a new
// position.
bool same_spot(const Checkpoint& a, const Checkpoint& b) noexcept {
  if (a.walk.ip != b.walk.ip || !same_branch(a.walk.branch, b.walk.branch)) return false;
  if (a.binder.trig_base_known != b.binder.trig_base_known) return false;
  if (a.binder.trig_base_known && a.binder.since_trig != b.binder.since_trig) return false;
  if (a.walk.binding_known != b.walk.binding_known) return false;
  return !a.walk.binding_known ||
         (a.walk.binding_ip == b.walk.binding_ip && a.walk.binding_insn.kind == b.walk.binding_insn.kind &&
          a.walk.binding_insn.cls == b.walk.binding_insn.cls && a.binder.bound == b.binder.bound);
}

bool same_binder(const Checkpoint::Binder& a, const Checkpoint::Binder& b) noexcept {
  if (a.state != b.state || a.abort_known != b.abort_known) return false;
  if (a.abort_known && a.abort_ip != b.abort_ip) return false;
  // If packets are enabled now, a later TIP.PGD gives a new resume_ip.
  if (a.state == EventBinder::State::OFF && a.resume_ip != b.resume_ip) return false;
  return a.bits_dropped == b.bits_dropped && a.tnt_disabled == b.tnt_disabled &&
         a.no_code_reported == b.no_code_reported && a.after_branch == b.after_branch;
}

bool same_tracker(const Checkpoint::Tracker& a, const Checkpoint::Tracker& b) noexcept {
  return a.context.space == b.context.space && a.context.cpu == b.context.cpu &&
         a.context.pid == b.context.pid && a.context.tid == b.context.tid && a.mode == b.mode &&
         a.tsc == b.tsc && a.next_switch == b.next_switch;
}

// Compares the proofs that the actual decoder has found, and the speculative decoder did without.
bool same_proofs(const Checkpoint& predicted, const Checkpoint& actual,
                 const SpeculationDeps& deps) noexcept {
  if (predicted.binder.tips_deferred != actual.binder.tips_deferred &&
      (!predicted.binder.tips_deferred || deps.tips_deferred)) {
    return false;
  }
  return predicted.events.event_trace == actual.events.event_trace ||
         (predicted.events.event_trace == EventTrace::UNKNOWN && !deps.event_trace);
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
  const bool tnt_disabled = binder.tnt_disabled;
  binder = {};
  binder.tnt_disabled = tnt_disabled;
  walk = {};
  walk.place = {psb, psb};
  gap.reset();
  if (!stream.switches_by_offset) return;
  const auto next =
      std::upper_bound(stream.switches.begin(), stream.switches.end(), psb,
                       [](std::uint64_t offset, const trace::Switch& one) { return offset < one.offset; });
  tracker.next_switch = static_cast<std::size_t>(next - stream.switches.begin());
  if (next == stream.switches.begin()) return;
  tracker.context.space = std::prev(next)->space;
  tracker.context.pid = std::prev(next)->pid;
  tracker.context.tid = std::prev(next)->tid;
}

bool equivalent(const Checkpoint& predicted, const Checkpoint& actual, const SpeculationDeps& deps) noexcept {
  return !deps.kept_returns && same_packets(predicted.packets, actual.packets) &&
         predicted.next_loss == actual.next_loss && same_events(predicted.events, actual.events) &&
         same_binder(predicted.binder, actual.binder) && same_proofs(predicted, actual, deps) &&
         predicted.walk.in_tx == actual.walk.in_tx && predicted.walk.place.since == actual.walk.place.since &&
         predicted.walk.place.offset == actual.walk.place.offset &&
         predicted.walk.budget.same_from(actual.walk.budget, actual.packets.position) &&
         predicted.walk.calls.same_but_for_placeholders(actual.walk.calls) &&
         same_tracker(predicted.tracker, actual.tracker) && same_gap(predicted.gap, actual.gap) &&
         (actual.binder.state != EventBinder::State::ON || same_spot(predicted, actual));
}

void complete(Checkpoint& end, const Checkpoint& actual) noexcept {
  end.binder.tips_deferred = end.binder.tips_deferred && actual.binder.tips_deferred;
  if (end.events.event_trace == EventTrace::UNKNOWN) end.events.event_trace = actual.events.event_trace;
  end.walk.calls.fill_in(actual.walk.calls);
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
  to.cycles_give_time = events.cycles_give_time_;
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
  events.cycles_give_time_ = from.events.cycles_give_time;
  events.mtcs_ = from.events.mtcs;
}

void CheckpointAccess::save(const EventBinder& binder, Checkpoint& out) {
  Checkpoint::Binder& to = out.binder;
  to.state = binder.state_;
  to.bits_dropped = binder.bits_dropped_;
  to.tips_deferred = binder.tips_deferred_;
  to.tnt_disabled = binder.options_.tnt_disabled;
  to.no_code_reported = binder.no_code_reported_;
  to.after_branch = binder.after_branch_;
  to.abort_known = binder.abort_known_;
  // Fields without effect are 0, because decoders that started elsewhere have other values there.
  to.abort_ip = binder.abort_known_ ? binder.abort_ip_ : 0;
  to.resume_ip = binder.state_ == EventBinder::State::OFF ? binder.resume_ip_ : 0;
  to.trig_base_known = binder.trig_base_known_;
  to.since_trig = binder.walker_.instructions() - binder.trig_base_;
  to.bound = binder.bound_;
  out.gap.reset();
  if (binder.recovery_.is_open()) out.gap = binder.recovery_.gap();
}

void CheckpointAccess::load(EventBinder& binder, const Checkpoint& from) {
  const Checkpoint::Binder& saved = from.binder;
  binder.state_ = saved.state;
  binder.bits_dropped_ = saved.bits_dropped;
  binder.tips_deferred_ = saved.tips_deferred;
  binder.options_.tnt_disabled = saved.tnt_disabled;
  binder.no_code_reported_ = saved.no_code_reported;
  binder.after_branch_ = saved.after_branch;
  binder.abort_known_ = saved.abort_known;
  binder.abort_ip_ = saved.abort_ip;
  binder.resume_ip_ = saved.resume_ip;
  binder.trig_base_known_ = saved.trig_base_known;
  binder.trig_base_ = binder.walker_.instructions() - saved.since_trig;
  binder.bound_ = saved.bound;
  binder.recovery_.set_gap(from.gap);
}

void CheckpointAccess::save(const Walker& walker, Checkpoint& out) {
  Checkpoint::Walk& to = out.walk;
  to.place = walker.place_;
  to.ip = walker.ip_;
  to.branch.reset();
  if (walker.at_end_) to.branch = *walker.block_;
  to.in_tx = walker.in_tx_;
  to.binding_known = walker.binding_known_;
  to.binding_insn = walker.binding_insn_;
  to.binding_ip = walker.binding_known_ ? walker.binding_ip_ : 0;
  to.budget = walker.budget_;
  to.calls = walker.calls_;
}

void CheckpointAccess::load(Walker& walker, const Checkpoint& from) {
  const Checkpoint::Walk& walk = from.walk;
  walker.place_ = walk.place;
  walker.jump_to(walk.ip);
  if (walk.branch) {
    walker.at_end_ = true;
    walker.block_ = &(walker.crossing_ = *walk.branch);
    walker.crossing_.next_block = walker.crossing_.target_block = nullptr;
  }
  walker.bits_left_ = 0;
  walker.in_tx_ = walk.in_tx;
  walker.binding_known_ = walk.binding_known;
  walker.binding_insn_ = walk.binding_insn;
  walker.binding_ip_ = walk.binding_ip;
  walker.budget_ = walk.budget;
  walker.calls_ = walk.calls;
}

void CheckpointAccess::save(const ContextTracker& context, Checkpoint& out) {
  out.tracker = {context.context_, context.mode_, context.tsc_, context.next_switch_};
}

void CheckpointAccess::load(ContextTracker& context, const Checkpoint& from) {
  context.context_ = from.tracker.context;
  context.mode_ = from.tracker.mode;
  context.tsc_ = from.tracker.tsc;
  context.next_switch_ = from.tracker.next_switch;
  context.find_switch_at();
  context.look_up_code();
  context.emit_row(from.packets.position);
}

void CheckpointAccess::begin_speculation(Walker& walker) noexcept { walker.calls_.fill_with_placeholders(); }

SpeculationDeps CheckpointAccess::speculation_deps(const EventDecoder& events, const EventBinder& binder,
                                                   const Walker& walker) noexcept {
  return {walker.calls_.used_placeholder(), binder.depends_on_deferral_, events.depends_on_event_trace_};
}

}  // namespace ptkit::flow
