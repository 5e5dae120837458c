#include "tables/branches/outcome_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ptkit::tables::branches {

void BranchRuns::add_all(const BranchRuns& others) {
  for (std::size_t outcome = 0; outcome < lengths.size(); ++outcome) {
    executions[outcome] += others.executions[outcome];
    lengths[outcome].add_all(others.lengths[outcome]);
  }
  cut += others.cut;
}

double BranchRuns::run_entropy() const {
  const auto total = static_cast<double>(lengths[0].count() + lengths[1].count());
  double bits = 0;
  for (const calls::Quantiles& of : lengths) {
    of.for_each([&](std::uint64_t times) {
      const double share = static_cast<double>(times) / total;
      bits -= share * std::log2(share);
    });
  }
  return std::max(bits, 0.0);  // not -0.0
}

void OutcomeRuns::follow(std::int64_t pid, std::int64_t tid, trace::SpaceId space, bool was_elsewhere) {
  thread_ = &threads_[{pid, tid, space}];
  thread_->space = space;
  if (was_elsewhere) ++thread_->switches;
}

// The branch's run ends, if it has one, and the next one begins.
void OutcomeRuns::turn(Slot& slot, std::uint64_t ip, bool taken, std::uint64_t round) {
  Slot* at = &slot;
  if (at->length != 0) {
    close(*thread_, *at, at->round != round);
  } else {
    std::vector<Slot>& slots = thread_->slots;
    if ((thread_->branches.size() + 1) * 2 > slots.size()) {
      const std::vector<Slot> before = std::exchange(slots, std::vector<Slot>(slots.size() * 2));
      for (const Slot& one : before) {
        if (one.length != 0) thread_->find(one.ip) = one;
      }
      at = &thread_->find(ip);
    }
    at->branch = static_cast<std::uint32_t>(thread_->branches.size());
    at->ip = ip;
    BranchRuns& branch = thread_->branches.emplace_back();
    branch.ip = ip;
    branch.space = thread_->space;
    bytes_ += 2 * sizeof(BranchRuns) + 4 * sizeof(Slot);
  }
  at->length = 1;
  at->taken = taken;
  at->round = round;
}

void OutcomeRuns::close(Thread& thread, const Slot& slot, bool is_cut) {
  BranchRuns& branch = thread.branches[slot.branch];
  const std::size_t outcome = slot.taken ? 1 : 0;
  calls::Quantiles& lengths = branch.lengths[outcome];
  const std::size_t before = lengths.bytes();
  branch.executions[outcome] += slot.length;
  lengths.add(slot.length);
  branch.cut += is_cut ? 1 : 0;
  bytes_ += lengths.bytes() - before;
}

std::vector<BranchRuns> OutcomeRuns::take() {
  std::vector<BranchRuns> all;
  for (auto& [key, thread] : threads_) {
    const std::uint64_t round = round_ + thread.switches;
    for (const Slot& slot : thread.slots) {
      if (slot.length != 0) close(thread, slot, slot.round != round);
    }
    std::ranges::move(thread.branches, std::back_inserter(all));
  }
  threads_.clear();
  thread_ = nullptr;
  const auto key = [](const BranchRuns& one) { return std::pair(one.space, one.ip); };
  std::ranges::stable_sort(all, {}, key);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept != 0 && key(all[kept - 1]) == key(all[i])) {
      all[kept - 1].add_all(all[i]);
    } else {
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
  }
  all.resize(kept);
  return all;
}

}  // namespace ptkit::tables::branches
