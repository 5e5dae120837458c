#include "tables/calls/timeline/slice_sink.h"

#include <algorithm>

#include "base/node_bytes.h"

namespace ptkit::tables::calls {
namespace {

constexpr std::size_t kAllPoints = std::size_t{1} << 20U;  // of all threads, but for kLeastPoints of each
constexpr std::size_t kLeastPoints = 64;

[[nodiscard]] bool is_by_time(TimelineAxis axis) noexcept { return axis == TimelineAxis::TIME; }

}  // namespace

SliceList& RootLists::of(std::uint64_t begin, std::uint64_t error, std::uint64_t end) {
  const std::uint64_t latest = begin + std::min(error, UINT64_MAX - begin);
  auto found = by_end_.upper_bound(latest);
  const bool fits = found != by_end_.begin();
  if (!fits && lists_.size() < kMost) {
    lists_.emplace_back();
    by_end_.emplace(end, lists_.size() - 1);
    return lists_.back();
  }
  // Too many stacks: the root goes where it overlaps least.
  if (fits) --found;
  auto list = by_end_.extract(found);
  list.key() = std::max(list.key(), end);
  const std::size_t index = list.mapped();
  by_end_.insert(std::move(list));
  return lists_[index];
}

std::uint64_t RootLists::bytes() const noexcept {
  return lists_.capacity() * sizeof(SliceList) +
         by_end_.size() * base::node_bytes<decltype(by_end_)::value_type>();
}

SliceSink::SliceSink(TimelineAxis axis, const tables::columns::Selection& selection, std::size_t most)
    : axis_(axis),
      filter_(selection),
      most_(most),
      reduce_at_(2 * most),
      slowest_(most / 2),
      reducer_(nodes_, slowest_) {
  if (most == 0) slowest_.limit(0);
}

std::uint32_t SliceSink::thread_of(const Owner& owner) {
  if (last_thread_ != UINT32_MAX && owner == last_owner_) return last_thread_;
  const auto [found, is_new] = numbers_.emplace(key_of(owner), static_cast<std::uint32_t>(threads_.size()));
  if (is_new) threads_.push_back({owner, {}, {}, {}});
  last_owner_ = owner;
  return last_thread_ = found->second;
}

NodeNumber SliceSink::node_of(const Frame& frame, NodeNumber children) {
  const NodeNumber number = nodes_.add();
  SliceNode& node = nodes_[number];
  const bool by_time = is_by_time(axis_);
  node.begin = by_time ? frame.begin.tsc : frame.begin.instructions;
  node.end = std::max(node.begin, by_time ? frame.end.tsc : frame.end.instructions);
  node.covered = node.length();
  node.instructions = frame.instructions;
  node.branches = frame.branches;
  node.id = frame.id & SliceNode::kMostShort;
  node.flags = frame.flags;
  node.longest = std::min(node.length(), SliceNode::kMostShort) & SliceNode::kMostShort;
  node.how = static_cast<std::uint8_t>(frame.how) & 0x7fU;
  node.has_loss = frame.end_how == CallEnd::GAP || frame.off_cpu.lost.most != 0;
  node.end_how = static_cast<std::uint8_t>(frame.end_how);
  node.begin_error = by_time ? frame.begin.tsc_error : 0;
  node.end_error = by_time ? frame.end.tsc_error : 0;
  node.function = frame.function;
  node.calls = 1;
  node.children = children;
  return nodes_.alone(number);
}

void SliceSink::on_frame(const Frame& frame, const Owner& owner) {
  ids_ = std::max(ids_, frame.id + 1);
  SliceList list = open_.take(frame.id);
  const std::uint32_t thread = thread_of(owner);
  list.thread = thread;
  if (!filter_.selects(frame, owner)) return pass_on(frame, list);
  if (is_by_time(axis_) && !frame.has_times()) {
    ++counts_.without_times;
    return pass_on(frame, list);
  }
  ++counts_.frames;
  count_branches(frame, threads_[thread]);
  const auto depth = static_cast<std::uint32_t>(std::max(frame.depth, 0));
  const std::uint64_t begin = is_by_time(axis_) ? frame.begin.tsc : frame.begin.instructions;
  const std::uint64_t end = std::max(begin, is_by_time(axis_) ? frame.end.tsc : frame.end.instructions);
  if (most_ != 0) slowest_.add(frame.function, end - begin, frame.id);
  if (reducer_.deepest().leaves_out(depth, frame.id) &&
      !slowest_.has(frame.function, end - begin, frame.id)) {
    reducer_.leave_out(1, reducer_.deepest());
    return pass_on(frame, list);
  }
  const NodeNumber node = node_of(frame, list.nodes);
  const bool has_parent = (frame.flags & FRAME_PARENT) != 0;
  SliceList& to =
      has_parent ? open_.of(frame.parent) : threads_[thread].roots.of(begin, nodes_[node].begin_error, end);
  to.thread = thread;
  to.depth = depth;
  to.has_tails = to.has_tails || frame.how == CallKind::TAIL;
  join_lists(nodes_, reducer_.rules(), to.nodes, node);
  if (most_ != 0 && nodes_.size() >= reduce_at_) reduce();
}

// What the frame has called belongs to its caller, or is at the bottom.
void SliceSink::pass_on(const Frame& frame, SliceList list) {
  if (list.nodes == kNoNode) return;
  if ((frame.flags & FRAME_PARENT) == 0) return add_roots(list.thread, list);
  SliceList& to = open_.of(frame.parent);
  to.thread = list.thread;
  to.depth = list.depth;
  to.has_tails = to.has_tails || list.has_tails;
  join_lists(nodes_, reducer_.rules(), to.nodes, list.nodes);
}

void SliceSink::add_roots(std::uint32_t thread, SliceList list) {
  while (list.nodes != kNoNode) {
    const NodeNumber node = nodes_.alone(nodes_.take_first(list.nodes));
    const SliceNode& root = nodes_[node];
    SliceList& to = threads_[thread].roots.of(root.begin, root.begin_error, root.end);
    to.thread = thread;
    join_lists(nodes_, reducer_.rules(), to.nodes, node);
  }
}

// Where a hidden frame jumped to a function, that function was called as the hidden one was.
void SliceSink::on_hidden(const Frame& frame) {
  ids_ = std::max(ids_, frame.id + 1);
  SliceList list = open_.take(frame.id);
  if (list.has_tails && frame.how != CallKind::TAIL) {
    NodeNumber number = list.nodes;
    do {
      SliceNode& node = nodes_[number];
      if (node.how == static_cast<std::uint8_t>(CallKind::TAIL))
        node.how = static_cast<std::uint8_t>(frame.how) & 0x7fU;
      number = node.next;
    } while (number != list.nodes);
    list.has_tails = false;
  }
  pass_on(frame, list);
}

void SliceSink::count_branches(const Frame& frame, Thread& thread) {
  if (thread.has_stacks) return;
  const std::size_t most = std::clamp(kAllPoints / threads_.size(), kLeastPoints, BranchPoints::kMost);
  const bool by_time = is_by_time(axis_);
  thread.branches.add(by_time ? frame.begin.tsc : frame.begin.instructions, frame.begin.branches, most);
  thread.branches.add(by_time ? frame.end.tsc : frame.end.instructions, frame.end.branches, most);
}

// What came before the window is not shown.
void SliceSink::on_window(std::span<const std::uint64_t>, std::uint64_t frames) {
  ids_ = std::max(ids_, frames);
  for (Thread& thread : threads_) thread.bands.clear();
}

void SliceSink::on_off_cpu(const OffCpuInterval& interval, const Owner& owner) {
  BandLists& bands = threads_[thread_of(owner)].bands;
  if (is_by_time(axis_)) {
    if (interval.known) bands.add({interval.begin, interval.end, static_cast<Band::Kind>(interval.kind)});
  } else if (interval.kind == OffCpuInterval::Kind::LOST) {
    bands.add({interval.instructions, interval.instructions, Band::Kind::LOST});
  }
}

void SliceSink::on_other_stack(const Owner& owner) {
  Thread& thread = threads_[thread_of(owner)];
  thread.has_stacks = true;
  thread.branches.clear();
}

std::vector<SliceList*> SliceSink::lists() {
  std::vector<SliceList*> found;
  for (Thread& thread : threads_) {
    for (SliceList& list : thread.roots.lists()) found.push_back(&list);
  }
  open_.for_each([&found](std::uint64_t, SliceList& list) { found.push_back(&list); });
  return found;
}

void SliceSink::reduce() {
  const std::vector<SliceList*> found = lists();
  static_cast<void>(reducer_.reduce(found, most_ + most_ / 4));
  reduce_at_ = std::max(2 * most_, nodes_.size() + nodes_.size() / 2);
}

void SliceSink::finish() {
  // By frame: the table's own order depends on its size.
  std::vector<std::pair<std::uint64_t, SliceList>> left;
  open_.for_each([&left](std::uint64_t frame, const SliceList& list) { left.emplace_back(frame, list); });
  std::ranges::sort(left, {}, &std::pair<std::uint64_t, SliceList>::first);
  open_ = {};
  for (const auto& [frame, list] : left) add_roots(list.thread, list);
  if (nodes_.free_count() == 0) return;
  const std::vector<NodeNumber> moved = nodes_.compact();
  for (SliceList* const list : lists()) list->nodes = moved[list->nodes];
}

std::uint64_t SliceSink::bytes() const noexcept {
  std::uint64_t sum = nodes_.bytes() + slowest_.bytes() + open_.bytes() +
                      threads_.capacity() * sizeof(Thread) +
                      numbers_.size() * base::node_bytes<decltype(numbers_)::value_type>();
  for (const Thread& thread : threads_)
    sum += thread.roots.bytes() + thread.bands.bytes() + thread.branches.bytes();
  return sum;
}

std::uint64_t SliceSink::later_bytes(const FrameCounts& counts) const noexcept {
  const std::uint64_t nodes = most_ == 0 ? counts.open : std::min<std::uint64_t>(counts.open, 2 * most_);
  return nodes * sizeof(SliceNode) + counts.open * 2 * sizeof(SliceList);
}

}  // namespace ptkit::tables::calls
