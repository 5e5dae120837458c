// The state of a FlowDecoder after a PSB+: to continue from there later, or to compare the predicted state of
// a speculative decoder with the actual state.
#pragma once

#include <cstddef>
#include <optional>

#include "flow/events/event_decoder.h"

namespace ptkit::flow {

// Each part is the state of one class, which works on it. Taken only where EventDecoder::at_rest(): no event
// waits for a packet, and no branch waits for its target. A copy is a checkpoint. state_fields.h describes
// the fields.
struct FlowState {
  packet::DecoderState packets;
  std::size_t next_loss = 0;  // index in Stream::losses
  EventState events;
  BinderState binder;
  WalkState walk;
  ContextState context;
  std::optional<Gap> gap;  // the open gap

  // Resets the state to that at the PSB at `psb`, where a speculative decoder starts. State that rarely
  // changes keeps its predicted value, e.g. TipOrder, which times depend on. equivalent() detects wrong
  // predictions of such state, even if the decoder did not use them.
  void begin_at_psb(std::uint64_t psb, const trace::Stream& stream);
};

// Predictions that a speculative decoder depended on, and that only the actual state can confirm.
struct SpeculationDeps {
  bool kept_returns = false;   // call stack entries from before the start of speculation
  bool tips_deferred = false;  // after errors: no packet had proved yet that TIPs are not deferred
  bool event_trace = false;    // no packet had proved yet that event trace was on
  [[nodiscard]] bool any() const noexcept { return kept_returns || tips_deferred || event_trace; }
};

// True if decoding from `predicted` emits the same rows as decoding from `actual`. `deps`: the predictions
// that the speculative decoder depended on.
[[nodiscard]] bool equivalent(const FlowState& predicted, const FlowState& actual,
                              const SpeculationDeps& deps) noexcept;

// Replaces what was unknown in `end`. The speculative decoder reached it from a state that was equivalent to
// `actual`.
void complete(FlowState& end, const FlowState& actual) noexcept;

}  // namespace ptkit::flow
