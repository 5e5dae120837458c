#include "tables/calls/timeline/slice_reducer.h"

namespace ptkit::tables::calls {
namespace {

constexpr std::uint64_t kNever = UINT64_MAX;

// Of each depth: the last node, and what it takes for it to become one with the node before it.
struct Last {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t above = kNever;  // the longest that the slices above become since the last node
  bool may_grow = false;
};

template <typename Level>
[[nodiscard]] Level& level_of(std::vector<Level>& levels, std::size_t depth) {
  if (depth + 1 >= levels.size()) levels.resize(std::max<std::size_t>(depth + 2, levels.size() * 2));
  return levels[depth];
}

}  // namespace

// Calls `visit` with each node, callers first, and with its depth in the list.
template <typename Visit>
void SliceReducer::walk(const SliceList& list, const Visit& visit) {
  if (list.nodes == kNoNode) return;
  path_.assign(1, {nodes_[list.nodes].next, list.nodes});
  while (!path_.empty()) {
    Cursor& top = path_.back();
    if (top.next == kNoNode) {
      path_.pop_back();
      continue;
    }
    const SliceNode& node = nodes_[top.next];
    top.next = top.next == top.last ? kNoNode : node.next;
    visit(node, path_.size() - 1);
    if (node.children != kNoNode) path_.push_back({nodes_[node.children].next, node.children});
  }
}

MergeLengths SliceReducer::lengths(Lists lists) {
  MergeLengths found;
  std::vector<Last> levels;
  for (const SliceList* const list : lists) {
    for (Last& level : levels) level = {};
    walk(*list, [&](const SliceNode& node, std::size_t depth) {
      Last& last = level_of(levels, depth);
      const bool may_grow = !rules_.keeps(node);
      std::uint64_t length = kNever;
      if (last.may_grow && may_grow && node.begin >= last.begin) {
        const std::uint64_t longest = std::max(node.length(), last.end - last.begin);
        length = std::max({std::max(node.end, last.end) - last.begin, longest + 1, last.above});
      }
      last = {node.begin, node.end, 0, may_grow};
      std::uint64_t& above = levels[depth + 1].above;
      above = std::max(above, length);
      if (length != kNever) found.add(length);
    });
  }
  return found;
}

std::size_t SliceReducer::count(Lists lists, const MergeRules& rules, std::vector<std::size_t>* by_depth) {
  std::size_t slices = 0;
  std::vector<OpenSlice> levels;
  for (const SliceList* const list : lists) {
    for (OpenSlice& level : levels) level = {};
    walk(*list, [&](const SliceNode& node, std::size_t depth) {
      const bool is_kept = rules.keeps(node);
      OpenSlice& open = level_of(levels, depth);
      if (depth + list->depth > rules.limits().depth) {
        slices += is_kept ? 1 : 0;
        return;
      }
      if (open.takes(node, is_kept)) {
        open.grow(node);
        return;
      }
      ++slices;
      open = rules.open(node, is_kept);
      levels[depth + 1].may_grow = false;
      if (by_depth == nullptr) return;
      if (depth + list->depth >= by_depth->size()) by_depth->resize(2 * (depth + list->depth) + 1);
      ++(*by_depth)[depth + list->depth];
    });
  }
  return slices;
}

void SliceReducer::merge(Lists lists) {
  for (SliceList* const list : lists) merge(*list);
}

void SliceReducer::merge(SliceList& list) {
  if (list.nodes == kNoNode) return;
  std::vector<OpenSlice> levels;
  path_.assign(1, {nodes_[list.nodes].next, list.nodes, &list.nodes});
  list.nodes = kNoNode;
  while (!path_.empty()) {
    Cursor& top = path_.back();
    if (top.next == kNoNode) {
      path_.pop_back();
      continue;
    }
    const std::size_t depth = path_.size() - 1;
    const NodeNumber number = top.next;
    SliceNode& node = nodes_[number];
    top.next = number == top.last ? kNoNode : node.next;
    const NodeNumber children = node.children;
    const bool is_kept = rules_.keeps(node);
    OpenSlice& open = level_of(levels, depth);
    NodeNumber* inner = top.to;
    const bool is_deep = depth + list.depth > limits().depth;
    const bool is_enough = nodes_.size() <= least_;
    if (is_deep && !is_kept) {
      left_out_ += node.calls;
      nodes_.remove(number);
    } else if (!is_deep && !is_enough && open.takes(node, is_kept)) {
      SliceNode& slice = nodes_[*top.to];
      merge_into(slice, node);
      open.grow(node);
      nodes_.remove(number);
      inner = &slice.children;
    } else {
      node.children = kNoNode;
      *top.to = nodes_.append(*top.to, nodes_.alone(number));
      open = rules_.open(node, is_kept);
      levels[depth + 1].may_grow = false;
      inner = &node.children;
    }
    if (children != kNoNode) path_.push_back({nodes_[children].next, children, inner});
  }
}

// Limits never fall: slices would be merged that later ones beside them are not.
void SliceReducer::raise(const MergeLimits& limits) noexcept {
  MergeLimits raised = this->limits();
  if (limits.length_of_share > std::max(raised.length, raised.length_of_share)) {
    raised.length = std::max(raised.length, limits.length);
    raised.length_of_share = limits.length_of_share;
    raised.share = limits.share;
  } else if (limits.length > raised.length) {
    raised.length = limits.length;
    raised.length_of_share = std::max(raised.length_of_share, raised.length);
  }
  rules_.set(raised);
}

// Merging everything is not enough: leaves out what is too deep, or keeps fewer calls whole. False: both is
// done already.
bool SliceReducer::cut(Lists lists, std::size_t most) {
  MergeLimits limits = this->limits();
  limits.length = limits.length_of_share = kNever;
  std::vector<std::size_t> by_depth;
  const SlowestCalls none(0);
  const std::size_t merged = count(lists, MergeRules(limits, none), &by_depth);
  if (merged <= most / 2 && slowest_.of_one() != 0) {
    constexpr std::size_t kParts = 8;
    slowest_.limit(slowest_.of_one() - slowest_.of_one() / kParts - 1);
    return true;
  }
  while (!by_depth.empty() && by_depth.back() == 0) by_depth.pop_back();
  std::size_t depth = 0;
  std::size_t sum = by_depth.empty() ? 0 : by_depth.front();
  while (depth + 1 < by_depth.size() && sum + by_depth[depth + 1] <= most / 2) sum += by_depth[++depth];
  if (depth + 1 < by_depth.size()) {
    limits = this->limits();
    limits.depth = static_cast<std::uint32_t>(depth);
    rules_.set(limits);
    merge(lists);
    return true;
  }
  const bool can_keep_fewer = slowest_.of_one() != 0;
  slowest_.limit(slowest_.of_one() / 2);
  return can_keep_fewer;
}

void SliceReducer::shrink(Lists lists, std::size_t least, std::size_t most) {
  constexpr std::size_t kProgress = 64;
  std::uint64_t times = 1;
  while (nodes_.size() > most) {
    const std::size_t before = nodes_.size();
    const MergeLengths found = lengths(lists);
    const std::uint64_t wanted = (before - least) * times;
    // What merges may let others merge, so fewer may be enough. Where a step from too few to too many is
    // large, merging stops at `least`.
    const MergeLimits limits = this->limits();
    const auto raise_for = [&](std::uint64_t slices) {
      rules_.set(limits);
      raise(found.limits_for(slices));
    };
    std::uint64_t slices = wanted;
    std::size_t left = 0;
    for (; slices > 0; slices /= 2) {
      raise_for(slices);
      left = count(lists, rules_);
      if (left >= least) break;
    }
    if (slices < wanted && left + before / kProgress >= before) raise_for(slices == 0 ? 1 : slices * 2);
    least_ = least;
    merge(lists);
    if (before - nodes_.size() > before / kProgress) continue;
    if (wanted < found.most()) {
      times *= 2;
    } else if (!cut(lists, least)) {
      return;
    }
  }
}

void SliceReducer::reduce(Lists lists, std::size_t most) {
  constexpr std::size_t kSteps = 24;
  constexpr std::size_t kSpare = 32;
  const auto set_to = [this](MergeLimits limits) {
    limits.depth = this->limits().depth;
    rules_.set(limits);
  };
  // Passes over fewer nodes are sooner there.
  set_to({});
  shrink(lists, most * 3, most * 4);
  const MergeLimits before = limits();
  const auto is_possible = [&] {
    set_to({kNever, kNever});
    const std::size_t slices = count(lists, rules_);
    set_to(before);
    return slices <= most - most / kSpare;
  };
  while (nodes_.size() > most && !is_possible() && cut(lists, most)) {
  }
  shrink(lists, most + most / 2, most * 2);
  if (nodes_.size() <= most) return;
  const MergeLengths found = lengths(lists);
  const auto count_of = [&](std::uint64_t slices) {
    set_to(found.limits_for(slices));
    return count(lists, rules_);
  };
  std::uint64_t few = 1;
  std::uint64_t many = std::max<std::uint64_t>(nodes_.size() - most, found.most());
  for (std::size_t i = 0; i < kSteps && many > few; ++i) {
    const std::uint64_t middle = few + (many - few) / 2;
    const std::size_t slices = count_of(middle);
    if (slices > most) {
      few = middle + 1;
    } else {
      many = middle;
      if (slices >= most - most / 32) break;
    }
  }
  set_to(found.limits_for(many));
  least_ = most;
  merge(lists);
}

}  // namespace ptkit::tables::calls
