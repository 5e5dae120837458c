// From the blocks that an emulated thread executed to Processor Trace of its user code.
//
// What happened at the end of a block shows when the next one begins: a conditional branch was taken if the
// next block is at its target, and so on. A block may be left half-way: by an INTERRUPT mark (a fault, a
// signal), or because the emulator executes one instruction of it alone (GuestBlock::single) and goes on
// behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "capture/address_filter.h"
#include "capture/guest_code.h"
#include "capture/truth_log.h"
#include "softpt/unit.h"

namespace ptkit::capture {

// What was executed and traced, for tests.
struct BlockTruth {
  TruthLog instructions;  // IP of each
  // IP and time of each branch instruction: when the next block began, or its own if code changed in between.
  TruthLog branches;
  [[nodiscard]] bool on() const noexcept { return instructions.on() || branches.on(); }
};

class BlockEncoder {
 public:
  // Called with the id of a watched address (AddressFilter::watch) whenever the instruction there has been
  // executed, and a TSC: when that was, as well as is known.
  using Watcher = std::function<void(std::uint32_t id, std::uint64_t tsc)>;

  // `code` is shared by the threads of a process and outlives this, as does `filter`, which may be null:
  // everything is traced. What was added to it holds from the next line on.
  BlockEncoder(const softpt::UnitConfig& config, const GuestCode& code, softpt::PtUnit::Output sink,
               BlockTruth truth = {}, const AddressFilter* filter = nullptr, Watcher watcher = {});
  ~BlockEncoder();
  BlockEncoder(BlockEncoder&&) noexcept;
  BlockEncoder& operator=(BlockEncoder&&) noexcept;

  // Blocks in order: the first began at exactly `tsc`, the others later, and none after `tsc_end`. No packet
  // claims to know more, save CYC packets, for which they are taken as evenly spread. `true_times` (for the
  // truth log only) has one for each, or is empty.
  void blocks(std::span<const std::uint32_t> numbers, std::uint64_t tsc, std::uint64_t tsc_end,
              std::span<const std::uint64_t> true_times = {});
  // A block that began at exactly `tsc`.
  void block(std::uint32_t number, std::uint64_t tsc);
  // The thread left for the kernel at `ip`, which was not executed (signal, fault).
  void interrupted(std::uint64_t ip, std::uint64_t tsc);
  // Back in user code, at `ip`, which has not been executed yet. `signal` is the one that was delivered, if
  // any. Without one, and at the same `ip`, nothing has happened.
  void resumed(std::uint64_t ip, std::uint64_t tsc, int signal = 0);
  void syscall(std::uint64_t tsc);      // the last block's SYSCALL
  void syscall_end(std::uint64_t tsc);  // before the next block
  // Packets that are made are written, also those that more branches would have made shorter.
  void flush();
  // The last block of the thread has ended, as far as is known. Packets that wait are written.
  void end(std::uint64_t tsc);

  // Of what is traced.
  [[nodiscard]] std::uint64_t instructions() const noexcept;
  [[nodiscard]] std::uint64_t branches() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;  // of trace made so far
  // Blocks that do not follow from what came before them, told as interrupts; numbers that are no block's.
  [[nodiscard]] std::uint64_t unexplained() const noexcept;
  [[nodiscard]] bool truth_failed() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptkit::capture
