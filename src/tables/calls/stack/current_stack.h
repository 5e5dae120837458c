// The stack in use, and the code that is executed on it. Branches of all kinds open and end its frames by the
// steps of this class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "flow/rows/rows.h"
#include "tables/calls/code/code_facts.h"
#include "tables/calls/code/edge_cache.h"
#include "tables/calls/code/inline_facts.h"
#include "tables/calls/stack/frame.h"
#include "tables/calls/stack/thread.h"

namespace ptkit::tables::calls {

// A branch as call stacks see it, and counts of the rows before it.
struct BranchStep {
  StreamPosition position;
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  flow::BranchKind kind = flow::BranchKind::COND;
  std::uint8_t flags = 0;  // flow::RowFlag
  bool leaves = false;     // to code that is not traced: packets are disabled there

  [[nodiscard]] bool from_known() const noexcept { return (flags & flow::FROM_KNOWN) != 0; }
  [[nodiscard]] bool to_known() const noexcept { return (flags & flow::TO_KNOWN) != 0; }
};

[[nodiscard]] inline StreamPosition after_branch(StreamPosition position) noexcept {
  ++position.instructions;
  ++position.stream_instructions;
  ++position.branches;
  return position;
}

// Tail calls: the function that jumps stays below the other one, or ends.
enum class Tails : std::uint8_t { NESTED, REPLACED };

[[nodiscard]] constexpr bool is_far_transfer(flow::BranchKind kind) noexcept {
  return kind == flow::BranchKind::FAR_JUMP || kind == flow::BranchKind::FAR_RETURN ||
         kind == flow::BranchKind::IRET;
}

inline constexpr std::size_t kNoFrame = SIZE_MAX;

// The code of one address space at one time.
class CurrentCode {
 public:
  explicit CurrentCode(CodeFacts& facts) : facts_(facts), edges_(facts) {}

  [[nodiscard]] CodeFacts& facts() noexcept { return facts_; }
  [[nodiscard]] EdgeCache& edges() noexcept { return edges_; }
  // Null: inlined calls have no frames.
  [[nodiscard]] InlineFacts* inlines() const noexcept { return inlines_; }
  void set_inlines(InlineFacts* inlines) noexcept { inlines_ = inlines; }

  void follow(trace::SpaceId space, const StreamPosition& position) {
    if (!is_known_ || may_differ_at(position)) find(space, position);
  }
  [[nodiscard]] bool may_differ_at(const StreamPosition& position) const noexcept {
    return position.time_known && position.tsc >= version_.until;
  }
  // The code that is known is that at a position.
  template <typename PositionOf>
  [[nodiscard]] bool is_known_at(const PositionOf& position_of) const {
    return is_known_ && (version_.until == trace::kTscMax || !may_differ_at(position_of()));
  }
  // The next code may be that of another space.
  void leave_space() noexcept { is_known_ = false; }

 private:
  void find(trace::SpaceId space, const StreamPosition& position);

  CodeFacts& facts_;
  EdgeCache edges_;
  InlineFacts* inlines_ = nullptr;
  CodeVersion version_;
  bool is_known_ = false;
};

struct CurrentState {
  FrameIds ids;
  ThreadKey key;  // of the thread
  Owner owner;
  std::uint64_t search = 0;        // frames that may still be searched: see frame_returning_to()
  bool has_unseen_stacks = false;  // stacks may have been left before the trace, or within a gap
};

class CurrentStack {
 public:
  // Frames of a thread that may be open.
  static constexpr std::size_t kMostFrames = std::size_t{1} << 20U;

  // `groups`: by which recursion is looked for, too; null: by function only.
  CurrentStack(CodeFacts& facts, FrameSink& sink, MoreGroups* groups)
      : code_(facts), facts_(facts), sink_(sink), groups_(groups) {}

  [[nodiscard]] ThreadStack& stack() noexcept { return thread_->stack; }
  [[nodiscard]] const ThreadStack& stack() const noexcept { return thread_->stack; }
  [[nodiscard]] Thread& thread() noexcept { return *thread_; }
  [[nodiscard]] const Thread& thread() const noexcept { return *thread_; }
  [[nodiscard]] const ThreadKey& key() const noexcept { return state_.key; }
  [[nodiscard]] const Owner& owner() const noexcept { return state_.owner; }
  [[nodiscard]] CurrentCode& code() noexcept { return code_; }
  [[nodiscard]] FrameSink& sink() noexcept { return sink_; }
  [[nodiscard]] FrameIds& ids() noexcept { return state_.ids; }
  [[nodiscard]] CurrentState& state() noexcept { return state_; }
  [[nodiscard]] const CurrentState& state() const noexcept { return state_; }

  // The pointer to the thread that is used from now on.
  using Slot = std::unique_ptr<Thread>;
  void use(Slot& slot, const ThreadKey& key, const Owner& owner) noexcept {
    slot_ = &slot;
    thread_ = slot.get();
    state_.key = key;
    state_.owner = owner;
  }
  [[nodiscard]] Slot& slot() noexcept { return *slot_; }
  // The thread goes on with another stack. Returns the one that it leaves.
  [[nodiscard]] Slot exchange(Slot next) noexcept {
    std::swap(*slot_, next);
    thread_ = slot_->get();
    return next;
  }
  [[nodiscard]] Slot new_thread(const Owner& owner) {
    return std::make_unique<Thread>(state_.ids, groups_, sink_, owner);
  }
  // The position with counts of the thread.
  [[nodiscard]] StreamPosition local(const StreamPosition& position) const noexcept {
    return thread_->counts.local(position);
  }
  void follow_code(const StreamPosition& position) { code_.follow(state_.owner.space, position); }

  // The top frame is a system call or interrupt of which the code is not traced.
  [[nodiscard]] bool in_leaf() const noexcept {
    return !stack().empty() && stack().top().function - kSyscallFunction < kFirstFunction - kSyscallFunction;
  }
  // Only frames that share a return address are open, and it is not known.
  [[nodiscard]] bool is_bottom() const noexcept;
  // The function at the top was called while packets were disabled, by functions above those that are known.
  [[nodiscard]] bool is_unseen() const noexcept;

  // A frame of the function at `ip`.
  [[nodiscard]] OpenFrame frame_at(CallKind how, std::uint64_t ip) const;
  // A frame of the function that covers an address in its middle.
  [[nodiscard]] OpenFrame frame_within(CallKind how, const CodeLocation& location) const;
  // Opens a frame at the top. Too many open frames end as at a gap.
  void push(OpenFrame& frame, const StreamPosition& begin);
  [[nodiscard]] bool has_room() const noexcept { return stack().size() < kMostFrames; }
  // As push(), where has_room(). `fill` sets what a new frame does not have.
  template <typename Fill>
  void push_plain(const Fill& fill) {
    ++state_.search;
    static_cast<void>(stack().push_filled(fill));
  }
  // Opens the frame of code that runs without a call in the trace, if no frame is open.
  void ensure_frame(std::uint64_t ip, const StreamPosition& position) {
    if (stack().empty()) push_first(ip, position);
  }
  // Opens a frame for instructions of which the function is not known.
  void push_unknown();
  void end_all(CallEnd how, const StreamPosition& end);
  // The thread ends, or its program.
  void end_thread(const StreamPosition& end) {
    end_all(CallEnd::END, end);
    thread_->begun = false;
  }

  // Returns of the top frame: to its caller, which is below it; to the caller of a frame below it (false:
  // there is none); to a caller that is not known to be open.
  void end_call(std::uint64_t to, const StreamPosition& after);
  [[nodiscard]] bool return_deeper(const BranchStep& step, const StreamPosition& after);
  void return_to_unseen(const BranchStep& step, const StreamPosition& after);
  // The innermost frame that returns to `ip`; kNoFrame: there is none.
  [[nodiscard]] std::size_t frame_returning_to(std::uint64_t ip) noexcept;

  void note(AnomalyKind kind, const BranchStep& step, const StreamPosition& position);

 private:
  void push_first(std::uint64_t ip, const StreamPosition& position);
  // The outermost frame of a thread, without known callers.
  [[nodiscard]] OpenFrame outermost_frame(CallKind how, const CodeLocation& location) const;
  [[nodiscard]] std::uint32_t unknown_function() const;

  CurrentCode code_;
  CodeFacts& facts_;
  FrameSink& sink_;
  MoreGroups* groups_;
  Slot* slot_ = nullptr;
  Thread* thread_ = nullptr;  // of the slot
  CurrentState state_;
};

// Flags of a frame of one of the kernel's functions: OpenFlag.
[[nodiscard]] std::uint16_t kernel_open_flags(std::uint32_t code_flags) noexcept;

}  // namespace ptkit::tables::calls
