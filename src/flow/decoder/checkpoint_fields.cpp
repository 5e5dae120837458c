#include "flow/decoder/checkpoint_fields.h"

#include <utility>

#include "base/fields.h"

namespace ptkit::flow {
namespace {

using base::optional_fields;

// Blocks are rebuilt from the code: their neighbours and instructions are not saved.

template <typename Fields>
void describe(Fields& fields, packet::DecoderState& state) {
  fields(state.position);
  fields(state.last_ip);
  fields(state.last_ip_known);
  fields(state.in_psb);
  fields(state.block_open);
  fields(state.block_items_4);
  fields(state.has_cs_base);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint::Events& events) {
  fields(events.psb);
  fields(events.since);
  optional_fields(fields, events.tnt_before, [&](std::uint64_t& offset) { fields(offset); });
  fields(events.tip_watch, 2);
  events.tip_order.describe(fields);
  fields(events.mode_known);
  fields(events.mode_bits);
  fields(events.iflag);
  fields(events.first_psb);
  fields(events.event_trace, EventTrace::UNKNOWN);
  fields(events.time_moved);
  fields(events.cycles_give_time);
  fields(events.mtcs);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint::Binder& binder) {
  fields(binder.state, EventBinder::State::LOST);
  fields(binder.bits_dropped);
  fields(binder.tips_deferred);
  fields(binder.tnt_disabled);
  fields(binder.no_code_reported);
  fields(binder.after_branch);
  fields(binder.abort_known);
  fields(binder.abort_ip);
  fields(binder.resume_ip);
  fields(binder.trig_base_known);
  fields(binder.since_trig);
  fields(binder.bound);
}

template <typename Fields>
void describe(Fields& fields, BasicBlock& block) {
  fields(block.ip);
  fields(block.last_ip);
  fields(block.next_ip);
  fields(block.target);
  fields(block.size);
  fields(block.end, Terminator::FAIL);
  fields(block.branch, BranchKind::TX_ABORT);
  fields(block.kind);
  fields(block.pushes);
  fields(block.failure, base::Status::BUFFER_FULL);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint::Walk& walk) {
  fields(walk.place.since);
  fields(walk.place.offset);
  fields(walk.ip);
  optional_fields(fields, walk.branch, [&](BasicBlock& block) { describe(fields, block); });
  fields(walk.in_tx);
  fields(walk.binding_known);
  fields(walk.binding_insn.size);
  fields(walk.binding_insn.cls, insn::InsnClass::PTWRITE);
  fields(walk.binding_insn.kind);
  fields(walk.binding_ip);
  walk.budget.describe(fields);
  walk.calls.describe(fields);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint::Tracker& tracker) {
  fields(tracker.context.offset);
  fields(tracker.context.space);
  fields(tracker.context.cpu);
  fields(tracker.context.pid);
  fields(tracker.context.tid);
  fields(tracker.mode);
  fields(tracker.tsc);
  fields(tracker.next_switch);
}

template <typename Fields>
void describe(Fields& fields, Gap& gap) {
  fields(gap.begin);
  fields(gap.end);
  fields(gap.from_ip);
  fields(gap.to_ip);
  fields(gap.cause, GapCause::TRACE_STOP);
  fields(gap.code, base::Status::BUFFER_FULL);
  fields(gap.flags);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint& checkpoint) {
  describe(fields, checkpoint.packets);
  fields(checkpoint.next_loss);
  describe(fields, checkpoint.events);
  describe(fields, checkpoint.binder);
  describe(fields, checkpoint.walk);
  describe(fields, checkpoint.tracker);
  optional_fields(fields, checkpoint.gap, [&](Gap& gap) { describe(fields, gap); });
}

bool is_mode(insn::ExecMode mode) noexcept {
  return mode == insn::ExecMode::BITS16 || mode == insn::ExecMode::BITS32 || mode == insn::ExecMode::BITS64;
}

// True if all indices and offsets are in range. Packets and places are before the position.
bool fits(const Checkpoint& checkpoint, const trace::Stream& stream, const trace::TraceBundle& bundle) {
  const std::uint64_t position = checkpoint.packets.position;
  const Checkpoint::Events& events = checkpoint.events;
  const StreamSpan& place = checkpoint.walk.place;
  return position <= stream.data.size() && events.psb < position && events.since < position &&
         events.tnt_before.value_or(0) < position && place.since < position && place.offset < position &&
         checkpoint.next_loss <= stream.losses.size() &&
         checkpoint.tracker.next_switch <= stream.switches.size() &&
         checkpoint.tracker.context.space < bundle.spaces.size() && is_mode(checkpoint.tracker.mode);
}

}  // namespace

std::vector<std::uint8_t> to_bytes(const Checkpoint& checkpoint) {
  base::FieldWriter fields;
  Checkpoint copy = checkpoint;
  describe(fields, copy);
  return std::move(fields.bytes());
}

bool from_bytes(base::Bytes bytes, const trace::Stream& stream, const trace::TraceBundle& bundle,
                Checkpoint& out) {
  base::FieldReader fields(bytes);
  Checkpoint read;
  describe(fields, read);
  if (!fields.good() || !fields.rest().empty() || !fits(read, stream, bundle)) return false;
  out = read;
  return true;
}

}  // namespace ptkit::flow
