#include "flow/checkpoint_fields.h"

#include <utility>

#include "base/fields.h"

namespace ptkit::flow {
namespace {

using base::optional_fields;

// What is not described here is found anew: a run's neighbours and its instructions.

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
  fields(events.cycles_tell_time);
  fields(events.mtcs);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint::Placed& placed) {
  fields(placed.state, Placer::State::LOST);
  fields(placed.bits_dropped);
  fields(placed.tips_deferred);
  fields(placed.tnt_disabled);
  fields(placed.no_code_told);
  fields(placed.after_branch);
  fields(placed.abort_known);
  fields(placed.abort_ip);
  fields(placed.resume_ip);
  fields(placed.trig_anchored);
  fields(placed.since_trig);
  fields(placed.bound);
}

template <typename Fields>
void describe(Fields& fields, Run& run) {
  fields(run.ip);
  fields(run.last_ip);
  fields(run.next_ip);
  fields(run.target);
  fields(run.size);
  fields(run.end, RunEnd::FAIL);
  fields(run.branch, BranchKind::TX_ABORT);
  fields(run.kind);
  fields(run.pushes);
  fields(run.failure, base::Status::BUFFER_FULL);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint::Walk& walk) {
  fields(walk.place.since);
  fields(walk.place.offset);
  fields(walk.ip);
  optional_fields(fields, walk.branch, [&](Run& run) { describe(fields, run); });
  fields(walk.in_tx);
  fields(walk.anchor_known);
  fields(walk.anchor.size);
  fields(walk.anchor.cls, insn::InsnClass::PTWRITE);
  fields(walk.anchor.kind);
  fields(walk.anchor_ip);
  walk.budget.describe(fields);
  walk.calls.describe(fields);
}

template <typename Fields>
void describe(Fields& fields, Checkpoint::Seen& seen) {
  fields(seen.context.offset);
  fields(seen.context.space);
  fields(seen.context.cpu);
  fields(seen.context.pid);
  fields(seen.context.tid);
  fields(seen.mode);
  fields(seen.tsc);
  fields(seen.next_switch);
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
  describe(fields, checkpoint.placed);
  describe(fields, checkpoint.walk);
  describe(fields, checkpoint.seen);
  optional_fields(fields, checkpoint.gap, [&](Gap& gap) { describe(fields, gap); });
}

bool is_mode(insn::ExecMode mode) noexcept {
  return mode == insn::ExecMode::BITS16 || mode == insn::ExecMode::BITS32 || mode == insn::ExecMode::BITS64;
}

// Does every number name something that is there?
bool fits(const Checkpoint& checkpoint, const trace::Stream& stream, const trace::TraceBundle& bundle) {
  return checkpoint.packets.position <= stream.data.size() && checkpoint.next_loss <= stream.losses.size() &&
         checkpoint.seen.next_switch <= stream.switches.size() &&
         checkpoint.seen.context.space < bundle.spaces.size() && is_mode(checkpoint.seen.mode);
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
