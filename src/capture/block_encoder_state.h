// What a BlockEncoder consists of; included by its .cpp files only.
#pragma once

#include <optional>

#include "capture/block_encoder.h"
#include "capture/user_unit.h"

namespace ptkit::capture {

// The simple way from blocks to packets: it defines the answer.
struct BlockEncoder::State {
  State(const softpt::UnitConfig& config, const GuestCode& code, softpt::PtUnit::Output sink,
        BlockTruth truth);

  // When something happened: what packets may be told, and what is true.
  struct Moment {
    std::uint64_t tsc = 0;
    std::uint64_t truth = 0;
  };
  struct Interruption {
    std::uint64_t ip = 0;
    std::uint64_t tsc = 0;
  };

  // Time is known exactly to be `tsc` at this place among the blocks.
  void reach(std::uint64_t tsc);
  void begin(std::uint32_t number, const Moment& at);  // a block begins
  // The place where time was reached is behind what has been told by now: a PSB may stand here.
  void place_psb();
  void interrupt(const Interruption& at, bool fault);
  void retire(const GuestBlock& block, std::size_t count);  // the first ones, not the last
  void retire_all(const GuestBlock& block, std::uint64_t to, std::uint64_t true_tsc);
  void enter(const GuestBlock& block, std::uint64_t tsc);
  void finish(std::uint64_t tsc);

  UserUnit unit;
  const GuestCode& code;
  BlockTruth truth;
  bool cyc;
  const GuestBlock* last = nullptr;  // has begun; how it ended is not known yet
  std::optional<Interruption> interruption;
  bool loose = false;  // blocks were told whose times are not known since time was reached
  bool begun = false;
  std::uint64_t in_step = 0;  // a decoder knew the time exactly at this time, and not since
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;
  std::uint64_t unexplained = 0;
};

}  // namespace ptkit::capture
