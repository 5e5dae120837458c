// Walks the code: from the current instruction to the next place that a packet decides, giving blocks and
// branches.
#pragma once

#include <array>

#include "flow/code_cache_pool.h"
#include "flow/return_stack.h"
#include "flow/sink.h"
#include "flow/walk_budget.h"
#include "trace/bundle.h"

namespace ptkit::flow {

// Filter ranges of the configuration (IA32_RTIT_ADDRn_A/B with ADDRn_CFG).
class AddressFilter {
 public:
  explicit AddressFilter(const trace::Configuration& configuration) noexcept;
  [[nodiscard]] bool known() const noexcept { return known_; }
  // Would packets be on at `ip`, as far as address ranges are concerned?
  [[nodiscard]] bool traced(std::uint64_t ip) const noexcept;

 private:
  std::array<trace::AddressRange, 4> ranges_;
  bool known_ = false;       // any range is in use
  bool has_filter_ = false;  // any FILTER range
};

// The kinds of instructions that packets without an IP bind to.
enum class Anchor : std::uint8_t {
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

[[nodiscard]] bool is_anchor(const BlockInsn& insn, Anchor anchor) noexcept;

// The branch by which execution left the traced code, for `ip` if that is known.
struct LeavingBranch {
  std::uint64_t to = 0;
  std::uint64_t resume_ip = 0;  // where a callee returns to, or 0
  std::uint8_t flags = 0;
};

// `run` ends with a branch that takes a packet.
[[nodiscard]] LeavingBranch leaving_branch(const Run& run, const std::uint64_t* ip,
                                           const AddressFilter& filter) noexcept;
// Does the direct branch at its end lead out of the traced ranges?
[[nodiscard]] bool leaves_filter(const Run& run, const AddressFilter& filter) noexcept;

class Walker {
 public:
  Walker(FlowSink& sink, const AddressFilter& filter, CodeCachePool* pool, std::uint32_t cs_base)
      : sink_(sink), filter_(filter), caches_(pool, cs_base) {}

  // A packet is to be applied: walks up to the next one have a budget of their own.
  void begin_packet(const Place& place) noexcept { begin_packet(place, place.since); }
  // `bits_since`: Place::since of the first bit's branch and of what follows it.
  void begin_packet(const Place& place, std::uint64_t bits_since) noexcept {
    place_ = place;
    bits_since_ = bits_since;
    place_.before_first_bit = bits_left_ != 0 && first_bit_waits_;
    no_bit_used_ = true;
    budget_.begin_packet(instructions_, place.offset);
  }
  // Of the packet's bits, `used` were taken already, and `walked` is instructions() from before them.
  void continue_packet(std::uint64_t walked, unsigned used) noexcept {
    no_bit_used_ = used == 0;
    if (used != 0) place_.since = bits_since_;
    budget_.continue_packet(walked, used);
  }
  // What this packet led to was wrong.
  void pay_for_error() noexcept { budget_.pay(instructions_, place_.offset); }
  // Forgets decoded code if there is too much of it. Between packets only.
  void bound_memory() {
    if (cache_ != nullptr && cache_->too_big()) forget_code();
  }

  // Where rows stand from here on.
  void set_place(const Place& place) noexcept { place_ = place; }
  [[nodiscard]] const Place& place() const noexcept { return place_; }

  // --- State
  // ---------------------------------------------------------------------------------------------------------------
  void set_code(const image::CodeView& view, insn::ExecMode mode);
  void set_in_tx(bool in_tx) noexcept { in_tx_ = in_tx; }
  void set_return_compression(bool on) noexcept {
    return_compression_ = on;
  }  // off: IA32_RTIT_CTL.DisRETC was set
  [[nodiscard]] const image::CodeView& view() const noexcept { return cache_->view(); }
  [[nodiscard]] std::uint64_t ip() const noexcept { return at_end_ ? run_->last_ip : ip_; }
  [[nodiscard]] CallStack& calls() noexcept { return calls_; }
  [[nodiscard]] std::uint64_t instructions() const noexcept { return instructions_; }  // given so far

  // Execution is at `ip`; no row tells how it got there.
  void jump_to(std::uint64_t ip) noexcept {
    ip_ = ip;
    run_ = nullptr;
    at_end_ = false;
    anchor_known_ = false;
  }

  // --- Branches
  // ------------------------------------------------------------------------------------------------------------
  // Takes bits (oldest in bit 0), at most 64. OK with bits_left() > 0: an indirect branch stands in the way,
  // and a TIP must follow.
  [[nodiscard]] base::Status take_bits(std::uint64_t bits, unsigned count);
  // Goes on with the bits that are left. `deferred`: its packet may be younger than the branch.
  [[nodiscard]] base::Status take_target(std::uint64_t ip, bool deferred = false);
  // Was the branch of the last target that was taken an indirect jump or call?
  [[nodiscard]] bool target_was_near() const noexcept { return target_was_near_; }
  [[nodiscard]] unsigned bits_left() const noexcept { return bits_left_; }
  void add_bits(std::uint64_t bits, unsigned count) noexcept {
    bits_ |= bits << bits_left_;
    bits_left_ += count;
  }
  void drop_bits() noexcept { bits_left_ = 0; }

  // --- Without packets
  // -----------------------------------------------------------------------------------------------------
  [[nodiscard]] base::Status walk_to_ip(std::uint64_t ip);  // FUP_MISMATCH if a branch needs a packet before
  [[nodiscard]] base::Status walk_to_anchor(
      Anchor anchor);                      // behind such an instruction, or at it if it is a branch
  [[nodiscard]] base::Status walk_over();  // the instruction here, which then is an anchor
  [[nodiscard]] base::Status walk_count(std::uint64_t count);  // so many instructions on
  [[nodiscard]] base::Status walk_to_decision();               // to the next branch that needs a packet
  // The last instruction that walk_to_anchor() found, while execution has not moved on.
  [[nodiscard]] bool at_anchor(Anchor anchor) const noexcept {
    return anchor_known_ && is_anchor(anchor_insn_, anchor);
  }
  [[nodiscard]] std::uint64_t anchor_ip() const noexcept { return anchor_ip_; }
  // To the branch that left the traced code. `ip` is where it went, if known. Gives the branch; execution
  // stands behind it.
  [[nodiscard]] base::Status leave(const std::uint64_t* ip);
  [[nodiscard]] std::uint64_t resume_ip() const noexcept {
    return resume_ip_;
  }  // after leave(): where a callee returns to, or 0
  // The kind of the instruction at `ip`, if it can be decoded.
  [[nodiscard]] insn::InsnKind kind_at(std::uint64_t ip);
  // Does straight code (with direct branches) lead from `from` to `to` in so many blocks? Gives no rows.
  [[nodiscard]] bool reaches(std::uint64_t from, std::uint64_t to, unsigned limit);
  // The one branch that a TIP must belong to if execution goes on at `ip` and conditionals may go either way;
  // null if there are several.
  [[nodiscard]] const Run* only_indirect_from(std::uint64_t ip);
  [[nodiscard]] bool plausible(std::uint64_t ip) { return cache_->at(ip).end != RunEnd::FAIL; }
  [[nodiscard]] bool at_branch() const noexcept {
    return at_end_;
  }  // the block before it was given, the branch was not
  [[nodiscard]] RunEnd branch_end() const noexcept { return run_->end; }

  // --- For who finds the way himself (route.h)
  [[nodiscard]] BlockCache& code() noexcept { return *cache_; }
  // Are so many instructions too many for what is to be applied, besides those that were given?
  [[nodiscard]] bool too_far(std::uint64_t walked) const noexcept {
    return budget_.spent(instructions_ + walked);
  }
  // They were, or led nowhere.
  void pay_for_walk(std::uint64_t walked) noexcept { budget_.charge(walked, place_.offset); }
  // The first `count` instructions of the run, which have `size` bytes.
  void give_part(const Run& run, std::uint32_t count, std::uint32_t size);
  void give_block(const Run& run) { give_part(run, run.count, run.size); }

  void give_branch(BranchKind kind, std::uint64_t from, std::uint64_t to, std::uint8_t flags) {
    sink_.on_branch(Branch{place_, from, to, kind, static_cast<std::uint8_t>(flags | tx_flag())});
  }
  // The branch at the end of a run through which control went unseen: the run's block is not given.
  void give_unseen_branch(const Run& run, std::uint64_t to) {
    constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;
    sink_.on_branch(
        Branch{place_, run.last_ip, to, run.branch, static_cast<std::uint8_t>(kWent | tx_flag()), false});
  }

 private:
  friend struct CheckpointAccess;
  friend class FastFlow;

  [[nodiscard]] std::uint8_t tx_flag() const noexcept {
    return in_tx_ ? std::uint8_t{IN_TX} : std::uint8_t{0};
  }
  Run& run() {
    if (run_ == nullptr) run_ = &cache_->at(ip_);
    return *run_;
  }
  void enter(Run& run) noexcept {
    run_ = &run;
    ip_ = run.ip;
    at_end_ = false;
  }
  void keep_branch() noexcept;
  void forget_code();
  void follow_direct(Run& run);
  void give_conditional(Run& run, bool taken);
  base::Status take_return(Run& run, bool bit);
  void use_bit() noexcept {
    bits_ >>= 1U;
    --bits_left_;
    if (place_.before_first_bit) place_.since = bits_since_;
    first_bit_waits_ = place_.before_first_bit = false;
  }
  base::Status use_bits();
  base::Status step(Run& run);
  base::Status leave_at_branch(const std::uint64_t* ip);
  bool part_to_ip(const Run& run, std::uint64_t ip);
  bool part_to_anchor(const Run& run, Anchor anchor);
  void stop_behind(const Run& run, std::uint32_t index, std::uint64_t at);

  FlowSink& sink_;
  const AddressFilter& filter_;
  CodeCaches caches_;
  BlockCache* cache_ = nullptr;
  CallStack calls_;
  Place place_;

  std::uint64_t ip_ = 0;
  Run* run_ = nullptr;   // at ip_, if already looked up
  Run crossing_;         // a branch that waits for its packet while the code under it changes
  bool at_end_ = false;  // run_ was given as a block, its branch was not
  bool in_tx_ = false;
  std::uint64_t bits_ = 0;
  unsigned bits_left_ = 0;
  std::uint64_t bits_since_ = 0;  // Place::since from the first bit on
  bool no_bit_used_ = true;       // of the packet that is applied
  bool first_bit_waits_ = false;  // no bit was used of the packet that bits are left of
  bool target_was_near_ = false;
  bool return_compression_ = true;
  bool anchor_known_ = false;
  BlockInsn anchor_insn_;
  std::uint64_t anchor_ip_ = 0;
  std::uint64_t resume_ip_ = 0;
  std::uint64_t instructions_ = 0;
  WalkBudget budget_;
};

}  // namespace ptkit::flow
