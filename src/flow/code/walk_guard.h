// Bounds of walks and searches, so that wrong code and wrong packets take no more time than right ones.
#pragma once

#include <cstdint>

#include "flow/code/loop_guard.h"

namespace ptkit::flow {

// A walk that consumes no packets: whether it loops, and when it has to look ahead.
class WalkGuard {
 public:
  // Instructions without a look ahead: more than almost any code has without a branch that needs a packet.
  static constexpr std::uint64_t kSure = std::uint64_t{1} << 12U;

  // Instructions between two questions whether the walk is cancelled.
  static constexpr std::uint64_t kAsk = std::uint64_t{1} << 15U;

  // `instructions` were walked before.
  WalkGuard(std::uint64_t ip, std::uint64_t instructions) noexcept
      : loop_(ip), begin_(instructions), next_ask_(instructions + kAsk) {}

  [[nodiscard]] bool loops(std::uint64_t ip) noexcept { return loop_.loops(ip); }
  [[nodiscard]] bool is_long(std::uint64_t instructions) const noexcept {
    return instructions - begin_ >= kSure;
  }
  // True if the walk has to ask whether it is cancelled.
  [[nodiscard]] bool asks(std::uint64_t instructions) noexcept {
    if (instructions < next_ask_) return false;
    next_ask_ = instructions + kAsk;
    return true;
  }
  // True once: it then has to look ahead.
  [[nodiscard]] bool looks_ahead() noexcept {
    const bool first = !looked_ahead_;
    looked_ahead_ = true;
    return first;
  }

 private:
  LoopGuard loop_;
  std::uint64_t begin_;
  std::uint64_t next_ask_;
  bool looked_ahead_ = false;
};

// Limit of a search for an address through code that may be wrong.
class SearchLimit {
 public:
  static constexpr std::uint64_t kBlocks = std::uint64_t{1} << 16U;
  static constexpr std::uint64_t kInsns = std::uint64_t{1} << 20U;

  // Adds a block of `insns` instructions. False: the search ends.
  [[nodiscard]] bool allows(std::uint64_t insns) noexcept {
    insns_ += insns;
    return ++blocks_ < kBlocks && insns_ < kInsns;
  }
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }

 private:
  std::uint64_t blocks_ = 0;
  std::uint64_t insns_ = 0;
};

}  // namespace ptkit::flow
