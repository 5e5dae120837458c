// Straight code in large steps. Long walks without rows of instructions pass over it, so that each
// instruction of it is decoded once here, however many walks lead over it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "code/insn/insn.h"

namespace ptkit::flow {

class BlockCache;

// Kinds of instructions, a bit each.
class InsnKinds {
 public:
  constexpr InsnKinds() = default;
  void add(code::insn::InsnClass cls, code::insn::InsnKind kind) noexcept {
    if (kind != code::insn::InsnKind::OTHER) bits_ |= std::uint64_t{1} << static_cast<unsigned>(kind);
    if (cls == code::insn::InsnClass::PTWRITE) bits_ |= kPtwrite;
  }
  void add(const InsnKinds& others) noexcept { bits_ |= others.bits_; }
  [[nodiscard]] bool any_of(const InsnKinds& others) const noexcept { return (bits_ & others.bits_) != 0; }

 private:
  static constexpr std::uint64_t kPtwrite = std::uint64_t{1} << 63U;
  static_assert(static_cast<unsigned>(code::insn::InsnKind::POPF) < 63);

  std::uint64_t bits_ = 0;
};

// Address or instructions that a walk looks for, and may not pass.
struct StraightGoal {
  StraightGoal() = default;
  explicit StraightGoal(std::uint64_t to) noexcept : ip(to) {}
  explicit StraightGoal(const InsnKinds& of) noexcept : kinds(of) {}

  std::optional<std::uint64_t> ip;
  InsnKinds kinds;
  std::uint64_t most = UINT64_MAX;  // instructions
};

struct StraightStep {
  explicit StraightStep(std::uint64_t begin) noexcept : next(begin) {}

  std::uint64_t next;  // where it leads
  std::uint64_t insns = 0;
  InsnKinds kinds;
  bool goes_on = true;  // false: the instruction at `next` is a branch, or cannot be decoded
};

// A skip list over addresses. A step of level 0 leads to the next multiple of 4 KiB, one of each higher level
// to that of 64 steps of the level below; all of them end before the first branch.
//
//   level 2  |------------------------------------------------> ...
//   level 1  |----------->|----------->|----------->|---------> ...
//   level 0  |->|->|->|...
class StraightCode {
 public:
  explicit StraightCode(BlockCache& code) noexcept : code_(code) {}
  StraightCode(const StraightCode&) = delete;
  StraightCode& operator=(const StraightCode&) = delete;

  // Passes over instructions from `ip` on that are no branches and that the goal allows: not all of them.
  [[nodiscard]] StraightStep pass(std::uint64_t ip, const StraightGoal& goal);
  [[nodiscard]] std::size_t bytes() const noexcept;  // of memory, approximately

 private:
  static constexpr unsigned kLevels = 3;
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20U;  // then the steps are dropped

  [[nodiscard]] StraightStep step(unsigned level, std::uint64_t ip);
  [[nodiscard]] StraightStep decode(std::uint64_t ip);
  [[nodiscard]] std::optional<StraightStep> allowed(unsigned level, std::uint64_t ip, std::uint64_t most,
                                                    const StraightGoal& goal);

  BlockCache& code_;
  std::array<std::unordered_map<std::uint64_t, StraightStep>, kLevels> steps_;
};

}  // namespace ptkit::flow
