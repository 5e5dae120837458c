#include "formats/page_tables.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ptkit::formats {

namespace {

using trace::SpaceId;

constexpr std::size_t kMostAtOnce = 64;  // spaces that are seen with the same tables in turns

// When one space was seen with some tables.
class Seen {
 public:
  void add(std::uint64_t tsc, std::uint64_t ticks) {
    times_.push_back(tsc);
    sums_.push_back(sums_.back() + ticks);
  }
  [[nodiscard]] std::uint64_t first() const { return times_.front(); }
  [[nodiscard]] std::uint64_t last() const { return times_.back(); }
  // For how long, of what began in [from, to].
  [[nodiscard]] std::uint64_t ticks(std::uint64_t from, std::uint64_t to) const {
    const auto begin = std::ranges::lower_bound(times_, from) - times_.begin();
    const auto end = std::ranges::upper_bound(times_, to) - times_.begin();
    return sums_[static_cast<std::size_t>(end)] - sums_[static_cast<std::size_t>(begin)];
  }
  // Somebody else was there from `from` to `to`: as others begin later and later, `from` does not go back.
  void exclude(std::uint64_t from, std::uint64_t to) {
    if (!excluded_.empty() && from <= excluded_.back().second) {
      excluded_.back().second = std::max(excluded_.back().second, to);
    } else {
      excluded_.emplace_back(from, to);
    }
  }
  [[nodiscard]] bool excludes(std::uint64_t tsc) const {
    const auto behind =
        std::ranges::upper_bound(excluded_, tsc, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
    return behind != excluded_.begin() && tsc <= std::prev(behind)->second;
  }

 private:
  std::vector<std::uint64_t> times_;
  std::vector<std::uint64_t> sums_{0};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> excluded_;
};

void exclude(std::map<SpaceId, Seen>& all) {
  std::vector<Seen*> order;
  order.reserve(all.size());
  for (auto& [space, seen] : all) order.push_back(&seen);
  std::ranges::stable_sort(order, {}, &Seen::first);
  std::vector<Seen*> open;  // those that may reach into the next ones
  for (Seen* const later : order) {
    std::erase_if(open, [&](const Seen* one) { return one->last() < later->first(); });
    for (Seen* const earlier : open) {
      const std::uint64_t from = later->first();
      const std::uint64_t to = std::min(earlier->last(), later->last());
      const std::uint64_t a = earlier->ticks(from, to);
      const std::uint64_t b = later->ticks(from, to);
      if (a < b) earlier->exclude(from, to);
      if (b < a) later->exclude(from, to);
    }
    if (open.size() < kMostAtOnce) open.push_back(later);
  }
}

// The page tables that a CPU keeps from another process. A thread that ends gives its own back (Linux:
// exit_mm()), and when it comes again, CR3 stays as it is: it says nothing about the thread that runs.
class Borrowed {
 public:
  explicit Borrowed(std::uint64_t doubt) : doubt_(doubt) {}

  // A thread comes; `now` was the last change before it, at `until` is the next one.
  void come(const trace::Switch& one, bool has_code, const TableChange& now, std::uint64_t until) {
    const bool same_thread = std::exchange(tid_, one.tid) == one.tid;  // exec()
    if (!has_code || one.space == space_) return;
    const bool is_first = std::exchange(space_, one.space) == trace::kAnySpace;
    const bool stays = now.tsc + now.error + doubt_ < one.tsc && one.tsc + doubt_ < until;
    cr3_ = stays && !is_first && !same_thread ? now.cr3 : 0;
  }
  // Whether these page tables, in force now, are another process'. Those that come after others are not.
  bool are(std::uint64_t cr3) {
    if (cr3 != cr3_) cr3_ = 0;
    return cr3_ != 0;
  }

 private:
  std::uint64_t doubt_;
  SpaceId space_ = trace::kAnySpace;  // of the process that came last
  std::int64_t tid_ = trace::kNoId;
  std::uint64_t cr3_ = 0;  // 0: none
};

}  // namespace

void PageTables::learn(const std::vector<TableChange>& changes, const std::vector<trace::Switch>& switches) {
  Borrowed borrowed(doubt_);
  std::size_t first = 0;  // the last switch that is not after the change
  std::size_t next = 0;   // switch that has not come
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    const std::uint64_t begin = changes[i].guess;
    const std::uint64_t end = changes[i + 1].guess;
    while (first + 1 < switches.size() && switches[first + 1].tsc <= begin) ++first;
    const std::uint64_t error = std::max(changes[i].error, changes[i + 1].error);
    for (std::size_t j = first; j < switches.size() && switches[j].tsc < end; ++j) {
      const SpaceId space = switches[j].space;
      for (; next <= j; ++next)
        borrowed.come(switches[next], has_code_[switches[next].space], changes[i], changes[i + 1].tsc);
      if (borrowed.are(changes[i].cr3) || changes[i].cr3 == 0 || !has_code_[space]) continue;
      const std::uint64_t from = std::max(begin, switches[j].tsc);
      const std::uint64_t to = j + 1 < switches.size() ? std::min(end, switches[j + 1].tsc) : end;
      if (from < to) uses_[changes[i].cr3].push_back({from, to - from, error, space});
    }
  }
}

// Where two were seen in turns, the one who was there for longer is right.
std::vector<PageTables::Use> PageTables::settled(std::vector<Use> uses) const {
  std::ranges::stable_sort(uses, {}, &Use::tsc);
  std::map<SpaceId, Seen> all;
  for (const Use& use : uses) all[use.space].add(use.tsc, use.ticks);
  exclude(all);
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
  std::erase_if(kept, [&](const Use& use) { return use.ticks < std::min(doubt_ + use.error, most); });
  return kept;
}

void PageTables::settle() {
  for (auto& [cr3, uses] : uses_) {
    uses = settled(std::move(uses));
    for (const Use& use : uses) since_[use.space] = std::min(since_[use.space], use.tsc);
  }
}

const PageTables::Use* PageTables::use_at(std::uint64_t cr3, std::uint64_t tsc) const {
  const auto found = uses_.find(cr3);
  if (found == uses_.end() || found->second.empty()) return nullptr;
  const std::vector<Use>& uses = found->second;
  const auto behind = std::ranges::upper_bound(uses, tsc, {}, &Use::tsc);
  return behind == uses.begin() ? &uses.front() : &*std::prev(behind);
}

trace::SpaceId PageTables::owner(std::uint64_t cr3, std::uint64_t tsc) const {
  const Use* const use = use_at(cr3, tsc);
  return use != nullptr ? use->space : trace::kAnySpace;
}

bool PageTables::is_certain(std::uint64_t cr3, std::uint64_t tsc) const {
  const Use* const use = use_at(cr3, tsc);
  return use != nullptr && use->ticks >= doubt_ + use->error;
}

trace::SpaceId PageTables::owner_before(std::uint64_t cr3, std::uint64_t tsc) const {
  const Use* const use = tsc != 0 ? use_at(cr3, tsc - 1) : nullptr;
  return use != nullptr && use->tsc < tsc ? use->space : trace::kAnySpace;
}

}  // namespace ptkit::formats
