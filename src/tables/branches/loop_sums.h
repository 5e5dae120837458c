// Sums over the visits of each loop.
#pragma once

#include <cstdint>
#include <vector>

#include "tables/branches/loop_walk.h"
#include "tables/calls/sums/quantiles.h"

namespace ptkit::tables::branches {

struct LoopTrips {
  calls::Quantiles trips;    // of whole visits: executions of the head
  std::uint64_t rounds = 0;  // sum of these
  std::uint64_t cut = 0;     // visits that are not whole

  void add_all(const LoopTrips& others) {
    trips.add_all(others.trips);
    rounds += others.rounds;
    cut += others.cut;
  }
};

class LoopSums final : public LoopWatcher {
 public:
  explicit LoopSums(std::size_t loops) : sums_(loops) {}

  void on_enter(Visit&, Visit*) override {}
  void on_round(Visit&) override {}
  void on_leave(Visit& visit) override {
    LoopTrips& sum = sums_[static_cast<std::size_t>(visit.loop)];
    if (!visit.is_whole) {
      ++sum.cut;
      return;
    }
    sum.trips.add(visit.rounds);
    sum.rounds += visit.rounds;
  }
  void on_row(const calls::BranchStep&, std::uint8_t, Visit*, const calls::Owner&) override {}
  [[nodiscard]] std::vector<LoopTrips>& sums() noexcept { return sums_; }

 private:
  std::vector<LoopTrips> sums_;
};

}  // namespace ptkit::tables::branches
