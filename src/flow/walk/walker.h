// Walks the code from the current instruction to the next decision that needs a packet, and emits blocks and
// branches.
#pragma once

#include <cstdint>
#include <optional>

#include "flow/code/block_cache.h"
#include "flow/code/code_source.h"
#include "flow/code/return_stack.h"
#include "flow/code/walk_guard.h"
#include "flow/rows/rows.h"
#include "flow/rows/sink.h"
#include "flow/walk/address_filter.h"
#include "trace/bundle.h"

namespace ptkit::flow {

// The instruction that events were bound to, while execution is right after it, or at its branch.
struct BoundInsn {
  BlockInsn insn;
  std::uint64_t ip = 0;
  std::uint64_t kinds = 0;  // of these events, a bit each
};

// State of the Walker between two packets: no TNT bits wait for a target.
struct WalkState {
  StreamSpan span;       // of the last packet's rows
  std::uint64_t ip = 0;  // where execution continues, unless a branch waits
  // The branch at the end of an emitted block, if it waits for its packet: without neighbours.
  std::optional<BasicBlock> branch;
  bool in_tx = false;
  std::optional<BoundInsn> binding;
  // Instructions since the last packet with an IP, from which ICNT of TRIG packets counts.
  std::optional<std::uint64_t> icnt;
  CallStack calls;
};

// Kinds of instructions that packets without an IP bind to.
enum class BindingInsn : std::uint8_t {
  PIP,   // MOV CR3, VM entry, far transfers
  VMCS,  // VMPTRLD, VM entry, far transfers
  PTWRITE,
  IRET,  // IRET, SYSRET, SYSEXIT, ERETS, ERETU
  UIRET,
  VMENTRY,
  SWINT,      // INT n, INT3, INT1, INTO
  SYSCALL,    // SYSCALL, SYSENTER
  CR3_WRITE,  // MOV CR3
};

// Goal of a walk before the next branch that needs a packet: an address or kinds of instructions.
struct WalkGoal {
  StraightGoal straight;
  unsigned kind = 0;  // distinct for each kind of search: see FailedSearches
};

[[nodiscard]] bool is_binding_insn(const BlockInsn& insn, BindingInsn insn_kind) noexcept;

// The branch by which execution left the traced code; `ip` is its target, if known.
struct LeavingBranch {
  std::uint64_t to = 0;
  std::uint64_t resume_ip = 0;  // return address of a call, or 0
  std::uint8_t flags = 0;
};

// The branch at the end of `block`, which needs a packet.
[[nodiscard]] LeavingBranch leaving_branch(const BasicBlock& block, const std::uint64_t* ip,
                                           const AddressFilter& filter) noexcept;
// True if the branch at the end of `block` can disable packets, and lead to `ip` (if known).
[[nodiscard]] bool may_leave(const BasicBlock& block, const std::uint64_t* ip,
                             const AddressFilter& filter) noexcept;
// True if the direct branch at the end of `block` leads out of the traced ranges.
[[nodiscard]] bool leaves_filter(const BasicBlock& block, const AddressFilter& filter) noexcept;

class Walker {
 public:
  Walker(FlowSink& sink, AddressFilter& filter, CodeSource& source) noexcept
      : sink_(sink), filter_(filter), source_(source) {}

  // The next packet is applied.
  void begin_packet(const StreamSpan& span) noexcept { begin_packet(span, span.since); }
  // `bits_since`: StreamSpan::since of the rows from the first bit's branch on.
  void begin_packet(const StreamSpan& span, std::uint64_t bits_since) noexcept {
    state_.span = span;
    bits_since_ = bits_since;
    state_.span.before_first_bit = bits_left_ != 0 && first_bit_waits_;
    no_bit_used_ = true;
  }
  // Continues with a packet of which the first bits are used.
  void continue_packet() noexcept {
    no_bit_used_ = false;
    state_.span.since = bits_since_;
  }
  // Empties a code cache that is too large. Between packets only.
  void bound_memory() {
    if (cache_ != nullptr && cache_->too_big()) forget_code();
  }

  // Sets the span of the rows that follow.
  void set_span(const StreamSpan& span) noexcept { state_.span = span; }
  [[nodiscard]] const StreamSpan& span() const noexcept { return state_.span; }

  // State.
  //
  // Between two packets.
  [[nodiscard]] WalkState state() const;
  void set_state(const WalkState& state);
  void set_code(const code::image::CodeView& view, code::insn::ExecMode mode);
  void set_in_tx(bool in_tx) noexcept { state_.in_tx = in_tx; }
  // false: IA32_RTIT_CTL.DisRETC was set
  void set_return_compression(bool on) noexcept { return_compression_ = on; }
  // Nothing will read the call stack: see keeps_calls().
  void leave_out_calls() noexcept { keeps_calls_ = false; }
  [[nodiscard]] const code::image::CodeView& view() const noexcept { return cache_->view(); }
  [[nodiscard]] std::uint64_t ip() const noexcept { return at_end_ ? block_->last_ip : state_.ip; }
  [[nodiscard]] CallStack& calls() noexcept { return state_.calls; }
  [[nodiscard]] const CallStack& calls() const noexcept { return state_.calls; }
  [[nodiscard]] std::uint64_t instructions() const noexcept { return instructions_; }  // emitted so far

  // Moves execution to `ip` without a row.
  void jump_to(std::uint64_t ip) noexcept {
    state_.ip = ip;
    block_ = nullptr;
    at_end_ = false;
    state_.binding.reset();
  }

  // Branches.
  //
  // Uses TNT bits (oldest in bit 0), at most 64. OK with bits_left() > 0: execution is at an indirect branch,
  // and a TIP must follow.
  [[nodiscard]] base::Status take_bits(std::uint64_t bits, unsigned count);
  // Uses the target of the indirect branch, then the remaining bits. `deferred`: the packet may be younger
  // than the branch.
  [[nodiscard]] base::Status take_target(std::uint64_t ip, bool deferred = false);
  // True if the branch of the last target was an indirect jump or call.
  [[nodiscard]] bool target_was_near() const noexcept { return target_was_near_; }
  [[nodiscard]] unsigned bits_left() const noexcept { return bits_left_; }
  void add_bits(std::uint64_t bits, unsigned count) noexcept {
    bits_ |= bits << bits_left_;
    bits_left_ += count;
  }
  void drop_bits() noexcept { bits_left_ = 0; }

  // Walks without TNT bits and TIPs.
  //
  // FUP_MISMATCH: a branch before `ip` needs a packet
  [[nodiscard]] base::Status walk_to_ip(std::uint64_t ip);
  // To the position after the next instruction of this kind, or to the instruction if it is a branch.
  [[nodiscard]] base::Status walk_to_binding_insn(BindingInsn insn_kind);
  [[nodiscard]] base::Status walk_over();  // one instruction, which becomes the binding instruction
  [[nodiscard]] base::Status walk_count(std::uint64_t count);  // `count` instructions
  [[nodiscard]] base::Status walk_to_decision();               // to the next branch that needs a packet
  // True if execution is still at the last instruction that walk_to_binding_insn() found, and it is of this
  // kind.
  [[nodiscard]] bool at_binding_insn(BindingInsn insn_kind) const noexcept {
    return state_.binding && is_binding_insn(state_.binding->insn, insn_kind);
  }
  [[nodiscard]] std::uint64_t binding_ip() const noexcept { return state_.binding->ip; }
  // Notes that an event of this kind is bound to that instruction, if there is one.
  void bind(EventKind kind) noexcept {
    if (state_.binding) state_.binding->kinds |= bit_of(kind);
  }
  void unbind_all() noexcept {
    if (state_.binding) state_.binding->kinds = 0;
  }
  [[nodiscard]] bool is_bound(EventKind kind) const noexcept {
    return state_.binding && (state_.binding->kinds & bit_of(kind)) != 0;
  }

  // ICNT of TRIG packets: see WalkState::icnt.
  void begin_icnt() noexcept { state_.icnt = 0; }
  void end_icnt() noexcept { state_.icnt.reset(); }
  [[nodiscard]] const std::optional<std::uint64_t>& icnt() const noexcept { return state_.icnt; }

  // Walks to the branch that left the traced code, and emits it. `ip` is its target, if known. Execution is
  // then after the branch. TNT_MISMATCH: the walk ends at a branch that cannot have done so.
  [[nodiscard]] base::Status leave(const std::uint64_t* ip);
  void leave_at_branch(const std::uint64_t* ip);  // uses the branch at the current position
  // After leave(): true if a near branch disabled packets.
  [[nodiscard]] bool left_by_near_branch() const noexcept { return left_by_near_branch_; }
  // After leave(): return address of a call, or 0.
  [[nodiscard]] std::uint64_t resume_ip() const noexcept { return resume_ip_; }
  // Kind of the instruction at `ip`, if it can be decoded.
  [[nodiscard]] code::insn::InsnKind kind_at(std::uint64_t ip);
  // True if code without branches that need packets leads from `from` to `to` within `limit` blocks. Emits
  // nothing.
  [[nodiscard]] bool reaches(std::uint64_t from, std::uint64_t to, unsigned limit);
  // The indirect branch that a TIP belongs to if execution continues at `ip` and conditional branches may go
  // either way. Null if there are several.
  [[nodiscard]] const BasicBlock* only_indirect_from(std::uint64_t ip);
  [[nodiscard]] bool plausible(std::uint64_t ip) { return cache_->at(ip).end != Terminator::FAIL; }
  // True if the block is emitted and the branch at its end is not.
  [[nodiscard]] bool at_branch() const noexcept { return at_end_; }
  [[nodiscard]] Terminator branch_end() const noexcept { return block_->end; }

  [[nodiscard]] const AddressFilter& filter() const noexcept { return filter_; }

  // For FastFlow and Route, which find paths themselves.
  [[nodiscard]] BlockCache& code() noexcept { return *cache_; }
  [[nodiscard]] bool return_compression() const noexcept { return return_compression_; }
  // Compressed returns and AddressFilter::watch() need the call stack. Without them it stays empty.
  [[nodiscard]] bool keeps_calls() const noexcept { return keeps_calls_; }
  // True if the walk depends on nothing but the code: in no transaction, without bits.
  [[nodiscard]] bool plain() const noexcept { return !state_.in_tx && bits_left_ == 0 && !state_.binding; }
  // `count` instructions were emitted, and later rows are not older than the packet at `since`.
  void add_emitted(std::uint64_t count, std::uint64_t since) noexcept {
    instructions_ += count;
    if (state_.icnt) *state_.icnt += count;
    state_.span.since = since;
  }
  // Emits the first `count` instructions of the block, which have `size` bytes.
  void emit_part(const BasicBlock& block, std::uint32_t count, std::uint32_t size);
  void emit_block(const BasicBlock& block) { emit_part(block, block.count, block.size); }

  void emit_branch(BranchKind kind, std::uint64_t from, std::uint64_t to, std::uint8_t flags) {
    sink_.on_branch(Branch{state_.span, from, to, kind, static_cast<std::uint8_t>(flags | tx_flag())});
  }
  // Emits the branch at the end of a block that was not walked. The block itself is not emitted.
  void emit_unseen_branch(const BasicBlock& block, std::uint64_t to) {
    sink_.on_branch(Branch{state_.span, block.last_ip, to, block.branch,
                           static_cast<std::uint8_t>(kTakenBranch | tx_flag()), false});
  }

 private:
  [[nodiscard]] static std::uint64_t bit_of(EventKind kind) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(kind);
  }
  [[nodiscard]] std::uint8_t tx_flag() const noexcept {
    return state_.in_tx ? std::uint8_t{IN_TX} : std::uint8_t{0};
  }
  BasicBlock& block() {
    if (block_ == nullptr) block_ = &cache_->at(state_.ip);
    return *block_;
  }
  void enter(BasicBlock& block) noexcept {
    block_ = &block;
    state_.ip = block.ip;
    at_end_ = false;
  }
  void keep_branch() noexcept;
  void forget_code();
  void follow_direct(BasicBlock& block);
  void emit_conditional(BasicBlock& block, bool taken);
  base::Status take_return(BasicBlock& block, bool bit);
  void use_bit() noexcept {
    bits_ >>= 1U;
    --bits_left_;
    if (state_.span.before_first_bit) state_.span.since = bits_since_;
    first_bit_waits_ = state_.span.before_first_bit = false;
  }
  base::Status use_bits();
  base::Status step(BasicBlock& block);
  [[nodiscard]] WalkGuard guard() const noexcept { return WalkGuard(state_.ip, instructions_); }
  base::Status bound(WalkGuard& guard, bool fell);
  template <typename Goal, typename Found>
  base::Status bound(WalkGuard& guard, bool fell, const Goal& goal, const Found& found);
  void pass_straight(const StraightGoal& goal);
  [[nodiscard]] std::optional<std::uint64_t> common_start(const BasicBlock& block) const;
  template <typename Found>
  [[nodiscard]] bool finds(const WalkGoal& goal, const Found& found);
  [[nodiscard]] std::optional<std::uint32_t> count_to(const BasicBlock& block, std::uint64_t ip) const;
  [[nodiscard]] bool has_binding_insn(const BasicBlock& block, BindingInsn insn_kind) const;
  bool part_to_ip(const BasicBlock& block, std::uint64_t ip);
  bool part_to_binding_insn(const BasicBlock& block, BindingInsn insn_kind);
  void stop_after(const BasicBlock& block, std::uint32_t index, std::uint64_t at);

  FlowSink& sink_;
  AddressFilter& filter_;
  CodeSource& source_;
  BlockCache* cache_ = nullptr;
  WalkState state_;              // `branch` has a value only while the code of the branch is gone
  BasicBlock* block_ = nullptr;  // block at the IP, if already looked up
  bool at_end_ = false;          // block_ is emitted as a block, its branch is not
  std::uint64_t bits_ = 0;
  unsigned bits_left_ = 0;
  std::uint64_t bits_since_ = 0;  // StreamSpan::since of the rows from the first bit on
  bool no_bit_used_ = true;       // no bit of the current packet is used
  bool first_bit_waits_ = false;  // no bit is used of the packet that the remaining bits come from
  bool target_was_near_ = false;
  bool return_compression_ = true;
  bool keeps_calls_ = true;
  std::uint64_t resume_ip_ = 0;
  bool left_by_near_branch_ = false;
  std::uint64_t instructions_ = 0;
};

}  // namespace ptkit::flow
