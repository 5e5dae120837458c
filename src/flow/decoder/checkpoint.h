// The complete state of a decoder after a PSB+: to continue from there later, or to compare the predicted
// state of a speculative decoder with the actual state.
#pragma once

#include <cstddef>
#include <optional>

#include "flow/events/event_decoder.h"

namespace ptkit::flow {

// Taken only where EventDecoder::at_rest(): no event waits for a packet, and no branch waits for its target.
// Instruction counts start at 0 here.
struct Checkpoint {
  struct Events {
    std::uint64_t psb = 0;  // PSB of the PSB+ before the checkpoint
    std::uint64_t since = 0;
    std::optional<std::uint64_t> tnt_before;
    std::uint8_t tip_watch = 0;
    TipOrder tip_order;
    bool mode_known = false;
    std::uint64_t mode_bits = 0;
    bool iflag = false;
    bool first_psb = true;
    EventTrace event_trace = EventTrace::UNKNOWN;
    bool time_moved = false;  // for ticks, as the next two members
    bool cycles_give_time = false;
    unsigned mtcs = 0;
  };
  struct Binder {
    EventBinder::State state = EventBinder::State::OFF;
    bool bits_dropped = false;
    bool tips_deferred = true;
    bool tnt_disabled = false;
    bool no_code_reported = false;
    bool after_branch = false;
    bool abort_known = false;
    std::uint64_t abort_ip = 0;
    std::uint64_t resume_ip = 0;
    bool trig_base_known = false;
    std::uint64_t since_trig = 0;  // in instructions
    std::uint64_t bound = 0;
  };
  struct Walk {
    StreamSpan place;
    std::uint64_t ip = 0;
    // the branch at the end of an emitted block, if it waits for its packet
    std::optional<BasicBlock> branch;
    bool in_tx = false;
    bool binding_known = false;
    BlockInsn binding_insn;
    std::uint64_t binding_ip = 0;
    WalkBudget budget;
    CallStack calls;
  };
  struct Tracker {
    Context context;
    insn::ExecMode mode = insn::ExecMode::BITS64;
    std::uint64_t tsc = trace::kTscMin;
    std::size_t next_switch = 0;
  };

  packet::DecoderState packets;
  std::size_t next_loss = 0;
  Events events;
  Binder binder;
  Walk walk;
  Tracker tracker;
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
[[nodiscard]] bool equivalent(const Checkpoint& predicted, const Checkpoint& actual,
                              const SpeculationDeps& deps) noexcept;

// Replaces what was unknown in `end`. The speculative decoder reached it from a state that was equivalent to
// `actual`.
void complete(Checkpoint& end, const Checkpoint& actual) noexcept;

// Reads and writes the private state of the parts of a decoder.
struct CheckpointAccess {
  static void save(const EventDecoder& events, Checkpoint& out);
  static void save(const EventBinder& binder, Checkpoint& out);
  static void save(const Walker& walker, Checkpoint& out);
  static void save(const ContextTracker& context, Checkpoint& out);
  static void load(EventDecoder& events, const Checkpoint& from);
  static void load(EventBinder& binder, const Checkpoint& from);
  static void load(Walker& walker, const Checkpoint& from);
  static void load(ContextTracker& context, const Checkpoint& from);
  // Starts speculation: records from here on which predictions the decoder depends on.
  static void begin_speculation(Walker& walker) noexcept;
  [[nodiscard]] static SpeculationDeps speculation_deps(const EventDecoder& events, const EventBinder& binder,
                                                        const Walker& walker) noexcept;
};

}  // namespace ptkit::flow
