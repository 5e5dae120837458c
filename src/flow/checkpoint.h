// All that decoding a stream carries across a synchronization point: taken behind a PSB+, to go on from there
// later, or to tell whether a decoder that began ahead knew what it had to know.
#pragma once

#include <cstddef>
#include <optional>

#include "flow/event_decoder.h"

namespace ptkit::flow {

// Taken only where EventDecoder::at_rest(): no event waits, no branch waits for its target. Instructions are
// counted from here on.
struct Checkpoint {
  struct Events {
    std::uint64_t psb = 0;  // of the PSB+ behind which it was taken
    std::uint64_t since = 0;
    std::optional<std::uint64_t> tnt_before;
    std::uint8_t tip_watch = 0;
    TipOrder tip_order;
    bool mode_known = false;
    std::uint64_t mode_bits = 0;
    bool iflag = false;
    bool first_psb = true;
    EventTrace event_trace = EventTrace::UNKNOWN;
    bool time_moved = false;  // this and the next two: for ticks
    bool cycles_tell_time = false;
    unsigned mtcs = 0;
  };
  struct Placed {
    Placer::State state = Placer::State::OFF;
    bool bits_dropped = false;
    bool tips_deferred = true;
    bool tnt_disabled = false;
    bool no_code_told = false;
    bool after_branch = false;
    bool abort_known = false;
    std::uint64_t abort_ip = 0;
    std::uint64_t resume_ip = 0;
    bool trig_anchored = false;
    std::uint64_t since_trig = 0;  // instructions
    std::uint64_t bound = 0;
  };
  struct Walk {
    Place place;
    std::uint64_t ip = 0;
    std::optional<Run> branch;  // its block was given, it was not
    bool in_tx = false;
    bool anchor_known = false;
    BlockInsn anchor;
    std::uint64_t anchor_ip = 0;
    WalkBudget budget;
    CallStack calls;
  };
  struct Seen {
    Context context;
    insn::ExecMode mode = insn::ExecMode::BITS64;
    std::uint64_t tsc = trace::kTscMin;
    std::size_t next_switch = 0;
  };

  packet::DecoderState packets;
  std::size_t next_loss = 0;
  Events events;
  Placed placed;
  Walk walk;
  Seen seen;
  std::optional<Gap> gap;  // that is open

  // Nothing of before counts, at the PSB at `psb`: where a decoder may begin that is ahead of its turn.
  // What changes rarely is taken to be as it was: among it TipOrder, which decides on times. A decoder that
  // took the wrong one is found out by equivalent(), whether it used it or not.
  void begin_at_psb(std::uint64_t psb, const trace::Stream& stream);
};

// What a decoder that began with an assumption took from it that only the real state can tell.
struct Reliance {
  bool kept_returns = false;   // call stack: entries that are older than the assumption
  bool tips_deferred = false;  // after errors: that no packet had shown yet that TIPs are not deferred
  bool event_trace = false;    // that no packet had shown yet that event trace was on
  [[nodiscard]] bool any() const noexcept { return kept_returns || tips_deferred || event_trace; }
};

// Does decoding on from `assumed`, which relied on this much of it, give what decoding on from `real` gives?
[[nodiscard]] bool equivalent(const Checkpoint& assumed, const Checkpoint& real,
                              const Reliance& relied) noexcept;

// `end` was reached from an assumption that was equivalent to `real`: puts in what only that knew.
void complete(Checkpoint& end, const Checkpoint& real) noexcept;

// Reads and writes what the parts of a decoder keep to themselves.
struct CheckpointAccess {
  static void save(const EventDecoder& events, Checkpoint& out);
  static void save(const Placer& placer, Checkpoint& out);
  static void save(const Walker& walker, Checkpoint& out);
  static void save(const ContextTracker& context, Checkpoint& out);
  static void load(EventDecoder& events, const Checkpoint& from);
  static void load(Placer& placer, const Checkpoint& from);
  static void load(Walker& walker, const Checkpoint& from);
  static void load(ContextTracker& context, const Checkpoint& from);
  // The decoder begins with an assumption: what it takes from it that may be wrong is noted from here on.
  static void assume(Walker& walker) noexcept;
  [[nodiscard]] static Reliance reliance(const EventDecoder& events, const Placer& placer,
                                         const Walker& walker) noexcept;
};

}  // namespace ptkit::flow
