#include "processes/page_tables.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ptkit::processes {

namespace {

using trace::SpaceId;

constexpr std::size_t kMaxOverlapping = 64;  // spaces that alternate with the same CR3

// The times of one space with one value of CR3, with prefix sums of durations.
class SeenTimes {
 public:
  void add(std::uint64_t tsc, std::uint64_t ticks) {
    times_.push_back(tsc);
    sums_.push_back(sums_.back() + ticks);
  }
  [[nodiscard]] std::uint64_t first() const { return times_.front(); }
  [[nodiscard]] std::uint64_t last() const { return times_.back(); }
  // The total duration of uses that began in [from, to].
  [[nodiscard]] std::uint64_t ticks(std::uint64_t from, std::uint64_t to) const {
    const auto begin = std::ranges::lower_bound(times_, from) - times_.begin();
    const auto end = std::ranges::upper_bound(times_, to) - times_.begin();
    return sums_[static_cast<std::size_t>(end)] - sums_[static_cast<std::size_t>(begin)];
  }
  // In [from, to] the page tables belong to another space. Spaces are compared in the order of their first
  // use, so `from` never decreases.
  void exclude(std::uint64_t from, std::uint64_t to) {
    if (!excluded_.empty() && from <= excluded_.back().second) {
      excluded_.back().second = std::max(excluded_.back().second, to);
    } else {
      excluded_.emplace_back(from, to);
    }
  }
  [[nodiscard]] bool excludes(std::uint64_t tsc) const {
    const auto after =
        std::ranges::upper_bound(excluded_, tsc, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
    return after != excluded_.begin() && tsc <= std::prev(after)->second;
  }

 private:
  std::vector<std::uint64_t> times_;
  std::vector<std::uint64_t> sums_{0};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> excluded_;
};

void exclude_shorter_uses(std::map<SpaceId, SeenTimes>& all) {
  std::vector<SeenTimes*> order;
  order.reserve(all.size());
  for (auto& [space, seen] : all) order.push_back(&seen);
  std::ranges::stable_sort(order, {}, &SeenTimes::first);
  std::vector<SeenTimes*> open;  // spaces that may overlap the next ones
  for (SeenTimes* const later : order) {
    std::erase_if(open, [&](const SeenTimes* one) { return one->last() < later->first(); });
    for (SeenTimes* const earlier : open) {
      const std::uint64_t from = later->first();
      const std::uint64_t to = std::min(earlier->last(), later->last());
      const std::uint64_t a = earlier->ticks(from, to);
      const std::uint64_t b = later->ticks(from, to);
      if (a < b) earlier->exclude(from, to);
      if (b < a) later->exclude(from, to);
    }
    if (open.size() < kMaxOverlapping) open.push_back(later);
  }
}

// Page tables that a CPU keeps from another process. An exiting thread frees its own (exit_mm() in
// kernel/exit.c). When the thread is switched in again, CR3 is not written, and does not identify the thread.
class BorrowedTables {
 public:
  explicit BorrowedTables(std::uint64_t max_skew) : max_skew_(max_skew) {}

  // A thread is switched in. `now`: the last change before that; `until`: TSC of the next one.
  void switch_in(const trace::Switch& one, bool has_code, const Cr3Change& now, std::uint64_t until) {
    const bool same_thread = std::exchange(tid_, one.tid) == one.tid;  // exec()
    if (!has_code || one.space == space_) return;
    const bool is_first = std::exchange(space_, one.space) == trace::kAnySpace;
    const bool stays = now.tsc + now.error + max_skew_ < one.tsc && one.tsc + max_skew_ < until;
    cr3_ = stays && !is_first && !same_thread ? now.cr3 : 0;
  }
  // Whether the current page tables belong to another process. A write to CR3 ends that.
  bool has(std::uint64_t cr3) {
    if (cr3 != cr3_) cr3_ = 0;
    return cr3_ != 0;
  }

 private:
  std::uint64_t max_skew_;
  SpaceId space_ = trace::kAnySpace;  // of the process that was switched in last
  std::int64_t tid_ = trace::kNoId;
  std::uint64_t cr3_ = 0;  // 0: none
};

}  // namespace

void PageTables::learn(const std::vector<Cr3Change>& changes, const std::vector<trace::Switch>& switches) {
  BorrowedTables borrowed(max_skew_);
  std::size_t first = 0;  // the last switch that is not after the change
  std::size_t next = 0;   // the next switch for `borrowed`
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    const std::uint64_t begin = changes[i].estimate;
    const std::uint64_t end = changes[i + 1].estimate;
    while (first + 1 < switches.size() && switches[first + 1].tsc <= begin) ++first;
    const std::uint64_t error = std::max(changes[i].error, changes[i + 1].error);
    for (std::size_t j = first; j < switches.size() && switches[j].tsc < end; ++j) {
      const SpaceId space = switches[j].space;
      for (; next <= j; ++next)
        borrowed.switch_in(switches[next], has_code_[switches[next].space], changes[i], changes[i + 1].tsc);
      if (borrowed.has(changes[i].cr3) || changes[i].cr3 == 0 || !has_code_[space]) continue;
      const std::uint64_t from = std::max(begin, switches[j].tsc);
      const std::uint64_t to = j + 1 < switches.size() ? std::min(end, switches[j + 1].tsc) : end;
      if (from < to) uses_[changes[i].cr3].push_back({from, to - from, error, space});
    }
  }
}

// If two spaces alternate, the one with the longer duration is the owner.
std::vector<PageTables::Use> PageTables::resolved(std::vector<Use> uses) const {
  std::ranges::stable_sort(uses, {}, &Use::tsc);
  std::map<SpaceId, SeenTimes> all;
  for (const Use& use : uses) all[use.space].add(use.tsc, use.ticks);
  exclude_shorter_uses(all);
  std::vector<Use> kept;
  for (const Use& use : uses) {
    if (all[use.space].excludes(use.tsc)) continue;
    if (kept.empty() || kept.back().space != use.space) {
      kept.push_back(use);
    } else {
      kept.back().ticks += use.ticks;
      kept.back().error = std::max(kept.back().error, use.error);
    }
  }
  if (kept.empty()) return kept;
  const std::uint64_t most = std::ranges::max(kept, {}, &Use::ticks).ticks;
  std::erase_if(kept, [&](const Use& use) { return use.ticks < std::min(max_skew_ + use.error, most); });
  return kept;
}

void PageTables::resolve_owners() {
  for (auto& [cr3, uses] : uses_) {
    uses = resolved(std::move(uses));
    for (const Use& use : uses) since_[use.space] = std::min(since_[use.space], use.tsc);
  }
}

const PageTables::Use* PageTables::use_at(std::uint64_t cr3, std::uint64_t tsc) const {
  const auto found = uses_.find(cr3);
  if (found == uses_.end() || found->second.empty()) return nullptr;
  const std::vector<Use>& uses = found->second;
  const auto after = std::ranges::upper_bound(uses, tsc, {}, &Use::tsc);
  return after == uses.begin() ? &uses.front() : &*std::prev(after);
}

trace::SpaceId PageTables::owner(std::uint64_t cr3, std::uint64_t tsc) const {
  const Use* const use = use_at(cr3, tsc);
  return use != nullptr ? use->space : trace::kAnySpace;
}

bool PageTables::is_certain(std::uint64_t cr3, std::uint64_t tsc) const {
  const Use* const use = use_at(cr3, tsc);
  return use != nullptr && use->ticks >= max_skew_ + use->error;
}

trace::SpaceId PageTables::owner_before(std::uint64_t cr3, std::uint64_t tsc) const {
  const Use* const use = tsc != 0 ? use_at(cr3, tsc - 1) : nullptr;
  return use != nullptr && use->tsc < tsc ? use->space : trace::kAnySpace;
}

}  // namespace ptkit::processes
