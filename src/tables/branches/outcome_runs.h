// Outcomes of the conditional branches of one stream, by thread: how often, and in runs of the same outcome.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "tables/calls/sums/quantiles.h"
#include "trace/bundle.h"

namespace ptkit::tables::branches {

// By outcome: 0 is not taken, 1 is taken.
struct BranchRuns {
  std::uint64_t ip = 0;
  trace::SpaceId space = 0;
  std::array<std::uint64_t, 2> executions{};
  std::array<calls::Quantiles, 2> lengths;  // of runs
  std::uint64_t cut = 0;                    // runs that end because rows are missing behind them

  void add_all(const BranchRuns& others);
  // Shannon entropy of (outcome, length) of the runs, in bits. Of many different lengths, similar ones count
  // as one, and lengths are not exact: then it is a lower bound.
  [[nodiscard]] double run_entropy() const;
};

class OutcomeRuns {
 public:
  // The following rows are of this thread and space. Its rows before are the last ones of its sequence
  // unless it `was_elsewhere`.
  void follow(std::int64_t pid, std::int64_t tid, trace::SpaceId space, bool was_elsewhere);
  // Rows of all threads may be missing.
  void cut() noexcept { ++round_; }
  void add(std::uint64_t ip, bool taken) {
    Slot& slot = thread_->find(ip);
    const std::uint64_t round = round_ + thread_->switches;
    if (slot.length != 0 && slot.taken == taken && slot.round == round) [[likely]] {
      ++slot.length;
      return;
    }
    turn(slot, ip, taken, round);
  }
  // All branches by space and address. Ends all runs.
  [[nodiscard]] std::vector<BranchRuns> take();
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  // The open run of a branch. Without a length, the slot is free.
  struct Slot {
    std::uint64_t ip = 0;
    std::uint64_t length = 0;
    std::uint64_t round = 0;
    std::uint32_t branch = 0;
    bool taken = false;
  };
  // Open addressing by address.
  struct Thread {
    std::vector<Slot> slots = std::vector<Slot>(64);
    std::vector<BranchRuns> branches;
    std::uint64_t switches = 0;
    trace::SpaceId space = 0;

    [[nodiscard]] Slot& find(std::uint64_t ip) noexcept {
      constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
      const std::size_t last = slots.size() - 1;
      std::size_t at = static_cast<std::size_t>(ip * kGoldenRatio >> 32U) & last;
      while (slots[at].length != 0 && slots[at].ip != ip) at = (at + 1) & last;
      return slots[at];
    }
  };
  void turn(Slot& slot, std::uint64_t ip, bool taken, std::uint64_t round);
  void close(Thread& thread, const Slot& slot, bool is_cut);

  std::map<std::tuple<std::int64_t, std::int64_t, trace::SpaceId>, Thread> threads_;
  Thread* thread_ = nullptr;
  std::uint64_t round_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace ptkit::tables::branches
