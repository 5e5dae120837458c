// The blocks that an emulator translated, decoded. A block is straight-line code of one or more instructions:
// it may end anywhere (a page, a limit, an instruction that the emulator cannot continue after), but nothing
// in its middle branches.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "insn/insn.h"

namespace ptkit::capture {

struct GuestBlock {
  std::uint64_t pc = 0;
  std::uint64_t last = 0;        // IP of the last instruction
  std::uint64_t next = 0;        // after it
  std::uint64_t target = 0;      // of a direct branch
  std::uint64_t valid_from = 0;  // TSC: other code was here before; 0: none that was seen
  std::uint16_t insns = 0;       // 0: the bytes are no instructions
  insn::Insn end;                // the last instruction
  bool repeats = false;  // it is a string instruction with REP: the emulator re-enters it for each iteration
  bool single = false;   // one instruction, which by itself would not end a block: the emulator executes the
                        // rest of a block that it had to leave in such steps
};

// The blocks of one process between two execs, by the emulator's numbers. A child begins with a copy.
//
// One thread adds while others read blocks below a size() that they saw: what was added stays where it is.
class GuestCode {
 public:
  // `bytes` are the code at `pc`. Returns the block's number.
  std::uint32_t add(std::uint64_t pc, base::Bytes bytes, std::uint64_t valid_from);
  [[nodiscard]] std::uint32_t size() const noexcept;
  [[nodiscard]] const GuestBlock& operator[](std::uint32_t block) const noexcept;
  // Of each instruction, in bytes.
  [[nodiscard]] std::span<const std::uint8_t> sizes(const GuestBlock& block) const noexcept;
};

}  // namespace ptkit::capture
