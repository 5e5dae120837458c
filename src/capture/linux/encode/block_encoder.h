// From the blocks that an emulated thread executed to Processor Trace of its user code.
//
// The next block shows how a block ended: a conditional branch was taken if the next block is at its target,
// and so on. A block can end before its last instruction: at an INTERRUPT mark (a fault, a signal), or where
// the emulator executes one instruction as a block of its own (GuestBlock::single) and continues after it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "capture/linux/encode/execution_log.h"
#include "capture/linux/encode/guest_code.h"
#include "capture/linux/process/address_filter.h"
#include "trace_unit/generator/packet_generator.h"

namespace ptkit::capture {

// Execution logs of the traced instructions and branches, for tests.
struct BlockLogs {
  ExecutionLog instructions;  // IP of each instruction
  // IP and time of each branch instruction. The time is when the next block began; if code changed in
  // between, it is when the branch's own block began.
  ExecutionLog branches;
  TransferLog transfers;
  [[nodiscard]] bool on() const noexcept { return instructions.on() || branches.on() || transfers.on(); }
};

class BlockEncoder {
 public:
  // Called each time the instruction at a watched address was executed: with the address's id
  // (AddressFilter::watch) and the estimated TSC of the execution.
  using Watcher = std::function<void(std::uint32_t id, std::uint64_t tsc)>;

  // `code` is shared by the threads of a process. `code` and `filter` outlive the encoder. A null `filter`
  // traces everything. Ranges that are added to `filter` apply from the next line on.
  BlockEncoder(const trace_unit::generator::GeneratorConfig& config, const GuestCode& code,
               trace_unit::generator::PacketGenerator::Output sink, BlockLogs logs = {},
               const AddressFilter* filter = nullptr, Watcher watcher = {});
  ~BlockEncoder();
  BlockEncoder(BlockEncoder&&) noexcept;
  BlockEncoder& operator=(BlockEncoder&&) noexcept;

  // Encodes blocks in order: the first began at exactly `tsc`, the others later, none after `tsc_end`.
  // Packets claim no more than that. `logged_times` and `logged_sps` (RSP) are for the execution logs: one
  // for each block, or empty.
  void blocks(std::span<const std::uint32_t> numbers, std::uint64_t tsc, std::uint64_t tsc_end,
              std::span<const std::uint64_t> logged_times = {},
              std::span<const std::uint64_t> logged_sps = {});
  // Encodes a block that began at exactly `tsc`.
  void block(std::uint32_t number, std::uint64_t tsc);
  // The thread left for the kernel at `ip`, which was not executed (signal, fault). `sp` (RSP) is for the log
  // of transfers.
  void interrupted(std::uint64_t ip, std::uint64_t tsc, std::uint64_t sp = 0);
  // The thread is back in user code at `ip`, which was not executed yet. `signal` is the delivered signal, or
  // 0. Without a signal and at the same `ip`, the interruption has no effect.
  void resumed(std::uint64_t ip, std::uint64_t tsc, int signal = 0);
  void syscall(std::uint64_t tsc);      // the last block's SYSCALL
  void syscall_end(std::uint64_t tsc);  // before the next block
  // Writes all packets, also partly filled TNT packets.
  void flush();
  // The last known block of the thread has ended. Writes all packets.
  void end(std::uint64_t tsc);

  // Counts of traced instructions and branches.
  [[nodiscard]] std::uint64_t instructions() const noexcept;
  [[nodiscard]] std::uint64_t branches() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;  // trace bytes so far
  // Blocks that their predecessor cannot lead to (while packets are on, the trace shows an interrupt there),
  // and block numbers that `code` does not have.
  [[nodiscard]] std::uint64_t unexplained() const noexcept;
  [[nodiscard]] bool log_failed() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptkit::capture
