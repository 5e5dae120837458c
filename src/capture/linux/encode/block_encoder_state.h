// The state of a BlockEncoder. Only the BlockEncoder's .cpp files include this file.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "capture/linux/encode/block_encoder.h"
#include "capture/linux/encode/user_tracer.h"

namespace ptkit::capture {

inline constexpr std::uint32_t kNoNumber = 0xffff'ffff;

// Cached properties of a block for the fast path: 32 bytes in a table by block number.
struct HotBlock {
  enum class Kind : std::uint8_t {
    SLOW,           // the slow path encodes the block
    PLAIN,          // the block's end needs one TNT bit or no packet
    CALL,           // direct near CALL
    REPEAT,         // as PLAIN, or the block `other` begins: the next iteration of the string instruction
    RETURN,         //
    JUMP_INDIRECT,  //
    CALL_INDIRECT,  //
  };
  static constexpr std::uint64_t kBranch = std::uint64_t{1} << 32;

  std::array<std::uint32_t, 2> next{kNoNumber, kNoNumber};  // PLAIN, REPEAT: not taken, taken
  std::uint64_t pc = 0;
  std::uint64_t counts = 0;         // instructions, and kBranch if the last one is a branch
  std::uint32_t other = kNoNumber;  // CALL, REPEAT
  std::uint16_t size = 0;           // bytes
  Kind kind = Kind::SLOW;
  std::int8_t bits = 0;  // a mask: -1 if the last instruction is a conditional branch, so needs a TNT bit
};
static_assert(sizeof(HotBlock) == 32);

// Encodes blocks on one of two paths:
//
//   begin()  slow path. Any block, any transition. Defines the packets.
//   run()    fast path. Blocks and transitions that the slow path encoded before (memoization in `hot`).
//            Writes the same bytes.
//
//            open_fast_path()
//   slow path <-----------> fast path     Every member except run() closes the fast path first.
//            close_fast_path()
struct BlockEncoder::State {
  State(const trace_unit::generator::GeneratorConfig& config, const GuestCode& code,
        trace_unit::generator::PacketGenerator::Output sink, BlockLogs logs, const AddressFilter* filter,
        Watcher watcher);

  // The time of a block: `tsc` is for packets, `logged_tsc` and `logged_sp` (RSP) for the execution logs.
  struct BlockTime {
    std::uint64_t tsc = 0;
    std::uint64_t logged_tsc = 0;
    std::uint64_t logged_sp = 0;
  };
  struct Interruption {
    std::uint64_t ip = 0;
    std::uint64_t tsc = 0;
    std::uint64_t sp = 0;
  };

  // Encodes blocks in order. `time_of(i)` is the time of block i: exact for the first, estimated for the
  // others.
  template <typename TimeOf>
  void encode_blocks(std::span<const std::uint32_t> numbers, const TimeOf& time_of);
  void begin_first(std::uint32_t number, const BlockTime& at);
  // Encodes the first block. CYC packets stand before packets of this block only.
  void begin_first_with_cyc(std::uint32_t number, const BlockTime& at);
  // Sets the time between two blocks to exactly `tsc`.
  void advance_to(std::uint64_t tsc);
  // As advance_to(). `encode_end` encodes the end of the last block and the entry to the kernel; its argument
  // is the time of both. If the code is stale(), the packets of `encode_end` come before those of time `tsc`.
  template <typename Encode>
  void advance_to(std::uint64_t tsc, Encode&& encode_end);
  // Returns true if code has changed by `tsc` and the packets of this thread have given no exact time since.
  // Then the packets of the blocks before `tsc` must precede a packet with that time: otherwise a decoder
  // uses the new code for these blocks.
  [[nodiscard]] bool stale(std::uint64_t tsc);
  void set_exact_tsc(std::uint64_t tsc);
  // Begins a block. `resync`: packets give the exact time there (UserTracer::code_changed).
  void begin(std::uint32_t number, const BlockTime& at, bool resync = false);
  void emit_psb();
  void interrupt(const Interruption& at, bool fault);
  // Retires the first `count` instructions.
  void retire(const GuestBlock& block, std::size_t count, const BlockTime& at);
  void retire_all(const GuestBlock& block, std::uint64_t to, const BlockTime& at);
  void retire_end(const GuestBlock& block, std::uint64_t to, const BlockTime& at);
  void leave_by_end(const GuestBlock& block);
  void log_transfer(const GuestBlock& block, std::uint64_t to, std::uint64_t sp);
  void enter(std::uint32_t number, std::uint64_t tsc, bool resync);
  void finish(std::uint64_t tsc);
  [[nodiscard]] const GuestBlock* take_last();

  // Filters.
  void update_rules();
  void check_points(std::span<const AddressFilter::Point> points, std::uint64_t ip, std::uint64_t tsc);
  void land_at(std::uint64_t ip);  // updates FilterEn and TraceStop after a taken branch or an event
  [[nodiscard]] bool traced() const noexcept { return armed && in_range && !stopped; }

  // Fast path (trace_unit::generator::FastEncoder). All other members need the fast path closed.
  [[nodiscard]] bool open_fast_path() {
    return fast_path_open ||
           (fast_path_open = fast_path_allowed && tracer.generator().begin_fast_path(fast_encoder));
  }
  void close_fast_path();
  [[nodiscard]] bool quiet_until(std::uint64_t tsc) const noexcept {
    return fast_path_open && !interruption && fast_encoder.quiet_until(tsc);
  }
  // Encodes blocks until one needs the slow path or the output buffer is full. Returns the number of blocks.
  [[nodiscard]] std::size_t run(std::span<const std::uint32_t> numbers);
  void learn_block(std::uint32_t number);
  void learn_transition(std::uint32_t from, std::uint32_t to, bool repeated);

  UserTracer tracer;
  const GuestCode& code;
  BlockLogs logs;
  bool cyc;
  std::uint32_t last = kNoNumber;  // the block that began last; its end is not known yet
  // The time when the block `last` began, for the execution log. If code changes before the next block
  // begins, the branch at the end of `last` is older: its packets come before the time of the change.
  std::uint64_t began_at = 0;
  std::optional<Interruption> interruption;
  bool has_untimed_blocks = false;  // since the last advance_to(), blocks without a known time were encoded
  bool branched_here = true;        // a taken branch or an event led to the next block
  bool begun = false;
  std::uint64_t exact_tsc = 0;                    // the last time that packets give exactly
  std::uint64_t next_change = GuestCode::kNever;  // the first code change after exact_tsc
  std::uint32_t changes = 0;                      // code changes that next_change takes into account
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;
  std::uint64_t unexplained = 0;

  const AddressFilter* filter;
  const AddressFilter::Rules* rules = nullptr;  // the filter's rules at the last update_rules()
  Watcher watcher;
  bool armed = true;     // false: tracing waits for a START address
  bool in_range = true;  // FilterEn
  bool stopped = false;  // TraceStop: a TRACESTOP range was entered

  bool fast_path_allowed;  // false: the execution log needs each instruction
  bool fast_path_open = false;
  trace_unit::generator::FastEncoder fast_encoder;
  std::vector<HotBlock> hot;  // by number
};

template <typename Encode>
void BlockEncoder::State::advance_to(std::uint64_t tsc, Encode&& encode_end) {
  const bool late = stale(tsc);
  if (!late) advance_to(tsc);
  close_fast_path();
  encode_end(BlockTime{tsc, late ? began_at : tsc});
  if (late) advance_to(tsc);
}

template <typename TimeOf>
void BlockEncoder::State::encode_blocks(std::span<const std::uint32_t> numbers, const TimeOf& time_of) {
  const BlockTime first = time_of(0);
  std::size_t done = 0;
  if (cyc) {
    begin_first_with_cyc(numbers[0], first);
    done = 1;
  } else if (quiet_until(first.tsc)) {
    fast_encoder.set_time(first.tsc);
  } else {
    begin_first(numbers[0], first);
    done = 1;
  }
  bool untimed = false;  // blocks without a known time were encoded
  for (;;) {
    const std::size_t ran = open_fast_path() ? run(numbers.subspan(done)) : 0;
    done += ran;
    untimed |= ran != 0 && done > 1;
    if (done == numbers.size()) break;
    untimed |= done != 0 && tracer.inside();
    begin(numbers[done], time_of(done));
    tracer.generator().hold_cyc();
    ++done;
  }
  has_untimed_blocks = untimed;
}

}  // namespace ptkit::capture
