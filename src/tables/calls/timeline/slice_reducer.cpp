#include "tables/calls/timeline/slice_reducer.h"

#include <utility>

#include "tables/calls/sums/log_buckets.h"

namespace ptkit::tables::calls {

// False: it is to stop.
bool SliceReducer::goes_on() {
  constexpr std::size_t kPeriod = 4096;  // steps between calls of the function
  if (!is_stopped_ && *go_on_ && ++steps_ % kPeriod == 0) is_stopped_ = !(*go_on_)();
  return !is_stopped_;
}

// Merges pairs of slices by length, in buckets of 3 %.
class SliceReducer::Merge {
 public:
  Merge(SliceReducer& reducer, Lists lists)
      : reducer_(reducer), nodes_(reducer.nodes_), lists_(lists), is_last_(nodes_.end()), pairs_(kCount) {
    for (const SliceList* const list : lists) is_last_[list->nodes] = true;
    for (NodeNumber number = 1; number < nodes_.end(); ++number) {
      if (nodes_[number].calls != 0) is_last_[nodes_[number].children] = true;
    }
  }

  ~Merge() { close_lists(); }
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  // Until there are `most` slices, or nothing can merge. Returns the limits by which it merged.
  [[nodiscard]] MergeLimits run(std::size_t most) {
    while (merge_in_order(most)) {
    }
    for (NodeNumber number = 1; number < nodes_.end(); ++number) {
      if (nodes_[number].calls != 0) add(number);
    }
    MergeLimits limits{kNever, kNever, 0};
    for (bucket_ = 0; bucket_ < kCount && nodes_.size() > most; ++bucket_) limits = run_bucket(most);
    return nodes_.size() > most ? MergeLimits{kNever, kNever, 0} : limits;
  }

 private:
  using Buckets = LogBuckets<6>;
  static constexpr std::size_t kCount = Buckets::kCount;

  // The bucket of a node and the next one of its list; kCount if they cannot merge.
  [[nodiscard]] std::size_t bucket_of(NodeNumber number) const {
    const SliceNode& node = nodes_[number];
    if (node.calls == 0 || is_last_[number]) return kCount;
    const std::uint64_t length = reducer_.rules_.length_with(node, nodes_[node.next]);
    return length == kNever ? kCount : Buckets::bucket_of(length);
  }
  void add(NodeNumber number) {
    const std::size_t bucket = bucket_of(number);
    if (bucket != kCount) pairs_[std::max(bucket, bucket_)].push_back(number);
  }
  // Merges most of the pairs in the order of memory, which is faster, where far more have to merge. False: it
  // merged few.
  bool merge_in_order(std::size_t most) {
    constexpr std::size_t kFar = 8;
    if (nodes_.size() <= kFar * most) return false;
    std::vector<std::size_t> counts(kCount + 1);
    for (NodeNumber number = 1; number < nodes_.end() && reducer_.goes_on(); ++number)
      ++counts[bucket_of(number)];
    const std::size_t pairs = nodes_.end() - 1 - counts[kCount];
    const std::size_t few = nodes_.size() - kFar * most;
    std::size_t limit = 0;
    for (std::size_t sum = 0; limit < kCount && sum <= pairs - pairs / 8 && sum + counts[limit] <= few;
         ++limit)
      sum += counts[limit];
    const std::size_t before = nodes_.size();
    for (NodeNumber number = 1; number < nodes_.end(); ++number) {
      while (reducer_.goes_on() && bucket_of(number) < limit) join(number);
    }
    return before - nodes_.size() > before / 8;
  }
  [[nodiscard]] MergeLimits run_bucket(std::size_t most) {
    const std::uint64_t last = Buckets::last_of(bucket_);
    const std::uint64_t longest = last + (last != kNever ? 1 : 0);
    MergeLimits limits{longest, Buckets::first_of(bucket_), 0};
    std::vector<NodeNumber> pairs;
    while (nodes_.size() > most && !pairs_[bucket_].empty()) {
      pairs.clear();
      pairs.swap(pairs_[bucket_]);
      // Where not all of them are needed, those merge that are spread over all positions.
      if (pairs.size() > nodes_.size() - most) sort_by_hash(pairs);
      for (const NodeNumber number : pairs) {
        if (nodes_.size() == most) {
          limits.share = std::max<std::uint64_t>(limits.share, hash_of(nodes_[number].begin));
          return limits;
        }
        if (!reducer_.goes_on()) return limits;
        merge(number);
      }
      limits.share = std::uint64_t{1} << 32U;
    }
    return {longest, longest, 0};
  }
  void sort_by_hash(std::vector<NodeNumber>& pairs) const {
    std::vector<std::pair<std::uint32_t, NodeNumber>> keys;
    keys.reserve(pairs.size());
    for (const NodeNumber number : pairs) keys.emplace_back(hash_of(nodes_[number].begin), number);
    std::ranges::sort(keys);
    std::ranges::transform(keys, pairs.begin(), [](const auto& key) { return key.second; });
  }
  // A node that became longer since it was added waits for its turn.
  void merge(NodeNumber number) {
    if (bucket_of(number) <= bucket_) {
      const NodeNumber last = join(number);
      if (last != kNoNode) add(last);
    }
    add(number);
  }
  // A node takes the next one of its list. Returns the last one of its children that others follow now.
  NodeNumber join(NodeNumber number) {
    SliceNode& node = nodes_[number];
    const NodeNumber next = node.next;
    merge_into(node, nodes_[next]);
    node.next = nodes_[next].next;
    is_last_[number] = is_last_[next];
    const NodeNumber more = nodes_[next].children;
    nodes_.absorb(next, number);
    if (more == kNoNode) return kNoNode;
    const NodeNumber last = node.children == kNoNode ? kNoNode : nodes_.absorber(node.children);
    node.children = nodes_.append(last, nodes_.absorber(more));
    if (last != kNoNode) is_last_[last] = false;
    return last;
  }
  // The last nodes of lists may have become parts of others.
  void close_lists() {
    for (SliceList* const list : lists_) {
      if (list->nodes != kNoNode) list->nodes = nodes_.absorber(list->nodes);
    }
    for (NodeNumber number = 1; number < nodes_.end(); ++number) {
      SliceNode& node = nodes_[number];
      if (node.calls != 0 && node.children != kNoNode) node.children = nodes_.absorber(node.children);
    }
    nodes_.reuse();
  }

  SliceReducer& reducer_;
  SliceNodes& nodes_;
  Lists lists_;
  std::vector<bool> is_last_;                   // of their lists
  std::vector<std::vector<NodeNumber>> pairs_;  // by length, as it was when they were added
  std::size_t bucket_ = 0;
};

// Calls `visit` with each node, callers first, with how many callers it has, and with its list.
template <typename Visit>
void SliceReducer::walk(Lists lists, const Visit& visit) {
  for (const SliceList* const list : lists) {
    path_.clear();
    if (list->nodes != kNoNode) path_.push_back({nodes_[list->nodes].next, list->nodes});
    while (!path_.empty() && goes_on()) {
      Cursor& top = path_.back();
      if (top.next == kNoNode) {
        path_.pop_back();
        continue;
      }
      const SliceNode& node = nodes_[top.next];
      top.next = top.next == top.last ? kNoNode : node.next;
      visit(node, list->depth + path_.size() - 1, list);
      if (node.children != kNoNode) path_.push_back({nodes_[node.children].next, node.children});
    }
  }
}

// How many slices there are when all have merged that can. What has more callers is left out.
std::size_t SliceReducer::count(Lists lists, const SlowestCalls& slowest, std::uint32_t deepest) {
  struct Last {
    std::uint64_t begin = 0;
    bool may_grow = false;
  };
  const MergeRules rules(slowest);
  std::size_t slices = 0;
  std::vector<Last> levels;
  const SliceList* last_list = nullptr;
  walk(lists, [&](const SliceNode& node, std::size_t depth, const SliceList* list) {
    const bool is_kept = rules.keeps(node);
    if (depth > deepest) {
      slices += is_kept ? 1 : 0;
      return;
    }
    if (depth + 1 >= levels.size()) levels.resize(2 * depth + 2);
    Last& last = levels[depth];
    if (std::exchange(last_list, list) == list && last.may_grow && !is_kept && node.begin >= last.begin)
      return;
    ++slices;
    last = {node.begin, !is_kept};
    levels[depth + 1].may_grow = false;
  });
  return slices;
}

// As many as there is room for. Calls are left out only where they are too many even if none is kept whole.
// Once calls are left out, the slowest ones come first.
void SliceReducer::keep_fewer(Lists lists, std::size_t most) {
  std::uint32_t deepest = DepthLimit::kAny;
  const auto fits = [&](std::size_t of_one) {
    SlowestCalls fewer = slowest_;
    fewer.limit(of_one);
    return count(lists, fewer, deepest) <= most;
  };
  if (fits(slowest_.of_one())) return;
  if (deepest_.depth != DepthLimit::kAny || !fits(0)) {
    deepest = 0;
    if (fits(slowest_.of_one())) return;
  }
  std::size_t few = 0;
  std::size_t many = slowest_.of_one();  // too many
  while (few + 1 < many && goes_on()) {
    const std::size_t middle = few + (many - few) / 2;
    (fits(middle) ? few : many) = middle;
  }
  if (goes_on()) slowest_.limit(few);
}

// Callers by which no more than `most` slices are left.
DepthLimit SliceReducer::depth_for(Lists lists, std::size_t most) {
  std::vector<std::vector<std::uint32_t>> levels(1);
  walk(lists, [&](const SliceNode& node, std::size_t depth, const SliceList*) {
    if (depth >= levels.size()) levels.resize(depth + 1);
    if (!rules_.keeps(node)) levels[depth].push_back(hash_of(node.id));
  });
  std::size_t more = nodes_.size() - most;
  while (levels.size() > 1 && levels.back().size() <= more) {
    more -= levels.back().size();
    levels.pop_back();
  }
  DepthLimit limit{static_cast<std::uint32_t>(levels.size() - 1)};
  if (levels.size() == 1 || more == 0) return limit;
  const auto first = levels.back().begin() + static_cast<std::ptrdiff_t>(more);
  std::ranges::nth_element(levels.back(), first);
  limit.share = *first;
  return limit;
}

void SliceReducer::cut(SliceList& list, const DepthLimit& limit) {
  path_.clear();
  if (list.nodes != kNoNode) path_.push_back({nodes_[list.nodes].next, list.nodes, &list.nodes});
  list.nodes = kNoNode;
  while (!path_.empty()) {
    Cursor& top = path_.back();
    if (top.next == kNoNode) {
      path_.pop_back();
      continue;
    }
    const NodeNumber number = top.next;
    SliceNode& node = nodes_[number];
    const NodeNumber children = std::exchange(node.children, kNoNode);
    NodeNumber* to = top.to;
    top.next = number == top.last ? kNoNode : node.next;
    if (limit.leaves_out(list.depth + path_.size() - 1, node.id) && !rules_.keeps(node)) {
      left_out_ += node.calls;
      nodes_.remove(number);
    } else {
      *to = nodes_.append(*to, nodes_.alone(number));
      to = &node.children;
    }
    if (children != kNoNode) path_.push_back({nodes_[children].next, children, to});
  }
}

bool SliceReducer::reduce(Lists lists, std::size_t most, const GoOn& go_on) {
  go_on_ = &go_on;
  is_stopped_ = false;
  if (nodes_.size() > most) keep_fewer(lists, most);
  if (nodes_.size() > most && goes_on()) {
    const MergeLimits limits = Merge(*this, lists).run(most);
    if (goes_on()) rules_.raise(limits);
  }
  if (nodes_.size() > most && goes_on()) {
    const DepthLimit limit = depth_for(lists, most);
    if (!is_stopped_) {
      for (SliceList* const list : lists) cut(*list, limit);
      deepest_ = std::min(deepest_, limit);
    }
  }
  return !is_stopped_;
}

}  // namespace ptkit::tables::calls
