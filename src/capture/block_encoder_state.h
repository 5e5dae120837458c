// What a BlockEncoder consists of; included by its .cpp files only.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "capture/block_encoder.h"
#include "capture/user_unit.h"

namespace ptkit::capture {

inline constexpr std::uint32_t kNoNumber = 0xffff'ffff;

// What is known of a block that has begun before: the short way needs no more.
struct HotBlock {
  enum class Kind : std::uint8_t {
    SLOW,           // needs the simple way
    PLAIN,          // at most a TNT bit; also where no packet is needed
    CALL,           // direct
    REPEAT,         // as PLAIN, or the block `other` begins, which repeats the last instruction
    RETURN,         //
    JUMP_INDIRECT,  //
    CALL_INDIRECT,  //
  };
  static constexpr std::uint64_t kBranch = std::uint64_t{1} << 32;

  std::array<std::uint32_t, 2> next{kNoNumber, kNoNumber};  // PLAIN, REPEAT: the one behind, the one taken
  std::uint64_t pc = 0;
  std::uint64_t counts = 0;         // instructions, and kBranch if the last one is a branch
  std::uint32_t other = kNoNumber;  // CALL, REPEAT
  std::uint16_t size = 0;           // bytes
  Kind kind = Kind::SLOW;
  std::uint8_t bits = 0;  // 1: the last instruction is a conditional branch
};
static_assert(sizeof(HotBlock) == 32);

// begin() and what it calls are the simple way from blocks to packets: it defines the answer. run() is the
// short way for blocks and for ways between them that have been seen before.
struct BlockEncoder::State {
  State(const softpt::UnitConfig& config, const GuestCode& code, softpt::PtUnit::Output sink,
        BlockTruth truth, const AddressFilter* filter, Watcher watcher);

  // When something happened: what packets may be told, and what is true.
  struct Moment {
    std::uint64_t tsc = 0;
    std::uint64_t truth = 0;
  };
  struct Interruption {
    std::uint64_t ip = 0;
    std::uint64_t tsc = 0;
  };

  // Blocks of which the time of the first one is known; `moment(i)` says what is believed of the others.
  template <typename Moments>
  void tell_line(std::span<const std::uint32_t> numbers, const Moments& moment);
  void begin_first(std::uint32_t number, const Moment& at);
  // Time is known exactly to be `tsc` at this place among the blocks.
  void reach(std::uint64_t tsc);
  // As reach(), where `tell` is called with the moment at which it says what was executed before and leaves
  // for the kernel.
  template <typename Tell>
  void reach(std::uint64_t tsc, Tell&& tell);
  // Code has changed by `tsc`, and this thread's packets have not told that time: what was executed before
  // has to be told before it, or a decoder would take the new code for it.
  [[nodiscard]] bool stale(std::uint64_t tsc);
  void set_in_step(std::uint64_t tsc);
  // A block begins; `resync`: with the time told anew.
  void begin(std::uint32_t number, const Moment& at, bool resync = false);
  void place_psb();
  void interrupt(const Interruption& at, bool fault);
  void retire(const GuestBlock& block, std::size_t count, const Moment& at);  // the first instructions
  void retire_all(const GuestBlock& block, std::uint64_t to, const Moment& at);
  void retire_end(const GuestBlock& block, std::uint64_t to, const Moment& at);
  void enter(std::uint32_t number, std::uint64_t tsc, bool resync);
  void finish(std::uint64_t tsc);
  [[nodiscard]] const GuestBlock* take_last();

  // Filters.
  void look_at_filter();
  void pass_points(std::span<const AddressFilter::Point> points, std::uint64_t ip, std::uint64_t tsc);
  void land(std::uint64_t ip);  // packets may go on here
  [[nodiscard]] bool traced() const noexcept { return armed && in_range && !stopped; }

  // The short way. All other members want it closed.
  [[nodiscard]] bool open_lane() { return lane_open || (lane_open = may_hurry && unit.unit().lend(lane)); }
  void close_lane();
  [[nodiscard]] bool quiet_until(std::uint64_t tsc) const noexcept {
    return lane_open && !interruption && lane.quiet_until(tsc);
  }
  // Blocks as far as it goes; returns how many.
  [[nodiscard]] std::size_t run(std::span<const std::uint32_t> numbers) {
    return cyc ? run_as<true>(numbers) : run_as<false>(numbers);
  }
  template <bool kTimed>
  [[nodiscard]] std::size_t run_as(std::span<const std::uint32_t> numbers);
  void learn_block(std::uint32_t number);
  void learn_way(std::uint32_t from, std::uint32_t to, bool repeated);

  UserUnit unit;
  const GuestCode& code;
  BlockTruth truth;
  bool cyc;
  std::uint32_t last = kNoNumber;  // has begun; how it ended is not known yet
  // When it began, for the truth log. Code that changed before the next block was begun is newer than the
  // branch at its end, which packets tell before the time of the change.
  std::uint64_t began_at = 0;
  std::optional<Interruption> interruption;
  bool loose = false;  // blocks were told whose times are not known since time was reached
  bool landed = true;  // the next block is reached by a taken branch or an event
  bool begun = false;
  std::uint64_t in_step = 0;  // a decoder knew the time exactly at this time, and not since
  std::uint64_t next_change = GuestCode::kNever;  // of code, after that
  std::uint32_t changes = 0;                      // of code, that next_change knows
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;
  std::uint64_t unexplained = 0;

  const AddressFilter* filter;
  const AddressFilter::Rules* rules = nullptr;  // of the filter, as looked at last
  Watcher watcher;
  bool armed = true;     // no START is waited for
  bool in_range = true;  // FilterEn
  bool stopped = false;  // by TRACESTOP

  bool may_hurry;  // nothing has to be known of every instruction
  bool lane_open = false;
  softpt::Lane lane;
  std::vector<HotBlock> hot;  // by number
};

template <typename Tell>
void BlockEncoder::State::reach(std::uint64_t tsc, Tell&& tell) {
  const bool late = stale(tsc);
  if (!late) reach(tsc);
  close_lane();
  tell(Moment{tsc, late ? began_at : tsc});
  if (late) reach(tsc);
}

template <typename Moments>
void BlockEncoder::State::tell_line(std::span<const std::uint32_t> numbers, const Moments& moment) {
  const Moment first = moment(0);
  std::size_t done = 0;
  if (quiet_until(first.tsc)) {
    lane.set_time(first.tsc);
  } else {
    begin_first(numbers[0], first);
    done = 1;
  }
  bool told = false;  // something of which the time is not known
  for (;;) {
    const std::size_t ran = open_lane() ? run(numbers.subspan(done)) : 0;
    done += ran;
    told |= ran != 0 && done > 1;
    if (done == numbers.size()) break;
    told |= done != 0 && unit.inside();
    begin(numbers[done], moment(done));
    ++done;
  }
  loose = told;
}

}  // namespace ptkit::capture
