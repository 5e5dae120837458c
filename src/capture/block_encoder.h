// From the blocks that an emulated thread executed to Processor Trace of its user code.
//
// What happened at the end of a block shows when the next one begins: a conditional branch was taken if the
// next block is at its target, and so on. A block may be left half-way: by an INTERRUPT mark (a fault, a
// signal), or because the emulator executes one instruction of it alone (GuestBlock::single) and goes on
// behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "capture/guest_code.h"
#include "capture/truth_log.h"
#include "softpt/unit.h"

namespace ptkit::capture {

class AddressFilter;

class BlockEncoder {
 public:
  // `code` is shared by the threads of a process and outlives this. `filter` may be null: everything is
  // traced.
  BlockEncoder(const softpt::UnitConfig& config, const GuestCode& code, softpt::PtUnit::Output sink,
               TruthLog truth, const AddressFilter* filter);
  ~BlockEncoder();

  // Blocks that began at `tsc` or later, in order, and not after `tsc_end`. Their times are not known better:
  // they are taken as evenly spread. `true_times` (for the truth log only) has one for each, or is empty.
  void blocks(std::span<const std::uint32_t> numbers, std::uint64_t tsc, std::uint64_t tsc_end,
              std::span<const std::uint64_t> true_times = {});
  // A block that began at exactly `tsc`.
  void block(std::uint32_t number, std::uint64_t tsc);
  // The thread left for the kernel at `ip`, which was not executed (signal, fault).
  void interrupted(std::uint64_t ip, std::uint64_t tsc);
  // Back in user code, at `ip`, which has not been executed yet.
  void resumed(std::uint64_t ip, std::uint64_t tsc);
  void syscall(std::uint64_t tsc);      // the last block's SYSCALL
  void syscall_end(std::uint64_t tsc);  // before the next block
  // The last block of the thread has ended, as far as is known. Packets that wait are written.
  void end(std::uint64_t tsc);

  [[nodiscard]] std::uint64_t instructions() const noexcept;
  [[nodiscard]] std::uint64_t branches() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;  // of trace made so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptkit::capture
