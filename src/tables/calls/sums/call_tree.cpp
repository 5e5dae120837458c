#include "tables/calls/sums/call_tree.h"

#include <algorithm>
#include <tuple>

#include "base/node_bytes.h"
#include "tables/calls/stack/thread_stack.h"
#include "tables/columns/part_memory.h"

namespace ptkit::tables::calls {

CallTree::CallTree(const tables::columns::Selection& selection, bool by_callers)
    : filter_(selection), nodes_(1), by_callers_(by_callers && filter_.selects_all()) {}

CallTree::NodeId CallTree::make_node() {
  if (free_.empty()) {
    nodes_.emplace_back();
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  const NodeId node = free_.back();
  free_.pop_back();
  Node& made = nodes_[node];
  made.sums = {};
  made.inclusive = {};
  made.callees.clear();  // their memory stays
  made.function = 0;
  return node;
}

void CallTree::add(Node& to, const Node& from) noexcept {
  to.sums.add_all(from.sums);
  to.inclusive.add_all(from.inclusive);
}

void CallTree::merge(NodeId caller, NodeId node) {
  merging_.assign(1, {caller, node});
  while (!merging_.empty()) {
    const auto [to, from] = merging_.back();
    merging_.pop_back();
    auto& callees = nodes_[to].callees;
    const std::uint32_t function = nodes_[from].function;
    const auto found = std::lower_bound(callees.begin(), callees.end(), std::pair(function, NodeId{0}));
    if (found == callees.end() || found->first != function) {
      callees.insert(found, {function, from});
      continue;
    }
    const NodeId known = found->second;
    add(nodes_[known], nodes_[from]);
    for (const auto& [unused, callee] : nodes_[from].callees) merging_.emplace_back(known, callee);
    nodes_[from].callees.clear();
    free_.push_back(from);
  }
}

CallTree::NodeId CallTree::callee_of(NodeId caller, std::uint32_t function) {
  const auto find = [&] {
    auto& callees = nodes_[caller].callees;
    return std::lower_bound(callees.begin(), callees.end(), std::pair(function, NodeId{0}));
  };
  auto found = find();
  if (found != nodes_[caller].callees.end() && found->first == function) return found->second;
  const NodeId node = make_node();
  nodes_[node].function = function;
  nodes_[caller].callees.insert(find(), {function, node});
  return node;
}

// The node of the frame below. An outermost frame has a node of its own: a frame below it may become known.
// So has a frame that may get another function: one that began within its own function, or that has executed
// nothing when the frame above it began.
CallTree::NodeId CallTree::caller_of(const Frame& frame) {
  const std::size_t size = frame.callers_size;
  std::size_t known = std::min(size, chain_.size());
  while (known > 0 && chain_[known - 1].frame != frame.callers[known - 1].id) --known;
  // Stacks that are left and resumed while they are deep would take long: their nodes are merged.
  constexpr std::size_t kStepsOfFrame = 8;
  constexpr std::size_t kMostSteps = std::size_t{1} << 16U;
  chain_steps_ = std::min(chain_steps_ + kStepsOfFrame, kMostSteps);
  if (known == size) return chain_[size - 1].node;
  chain_.resize(known);
  if (size - known > chain_steps_) return open_node(frame.parent);
  chain_steps_ -= size - known;
  for (std::size_t i = known; i < size; ++i) {
    const OpenFrame& open = frame.callers[i];
    const std::uint64_t above =
        i + 1 < size ? frame.callers[i + 1].begin.instructions : frame.begin.instructions;
    const bool is_alone = i == 0 || (open.open & OPEN_INNER) != 0 || above == open.begin.instructions;
    const NodeId node = is_alone ? open_node(open.id) : callee_of(chain_[i - 1].node, open.function);
    chain_.push_back({open.id, node});
  }
  return chain_.back().node;
}

void CallTree::add_called(const Frame& frame) {
  const NodeId node = callee_of(caller_of(frame), frame.function);
  add(nodes_[node], frame);
  const NodeId alone = take_open(frame.id);
  if (alone == kTop) return;
  for (const auto& [unused, callee] : std::exchange(nodes_[alone].callees, {})) merge(node, callee);
  free_.push_back(alone);
}

void CallTree::on_frame(const Frame& frame, const Owner& owner) {
  if (by_callers_ && frame.callers != nullptr) return add_called(frame);
  if (!filter_.selects(frame, owner)) return on_hidden(frame);
  NodeId node = take_open(frame.id);
  const NodeId caller = (frame.flags & FRAME_PARENT) == 0 ? kTop : open_node(frame.parent);
  if (node == kTop) {
    // Most frames have none above: their sums go to the node of the frames before them.
    const auto& callees = nodes_[caller].callees;
    const auto found = std::lower_bound(callees.begin(), callees.end(), std::pair(frame.function, NodeId{0}));
    if (found != callees.end() && found->first == frame.function) return add(nodes_[found->second], frame);
    node = make_node();
  }
  nodes_[node].function = frame.function;
  add(nodes_[node], frame);
  merge(caller, node);
}

// A context has no frame of its own below.
void CallTree::add(Node& to, const Frame& frame) noexcept {
  to.sums.add(frame);
  to.inclusive.add(frame, {frame.instructions, frame.branches, false});
}

// Of one thread, a frame without frames above ends with the highest number so far: most need no search.
CallTree::NodeId CallTree::take_open(std::uint64_t frame) {
  if (last_.node != kTop && last_.frame == frame) return std::exchange(last_.node, kTop);
  if (frame > most_open_) return kTop;
  for (std::size_t i = recent_.size(); i-- > 0;) {
    if (recent_[i].frame != frame) continue;
    const NodeId node = recent_[i].node;
    recent_.erase(recent_.begin() + static_cast<std::ptrdiff_t>(i));
    return node;
  }
  const auto open = open_.find(frame);
  if (open == open_.end()) return kTop;
  const NodeId node = open->second;
  open_.erase(open);
  return node;
}

CallTree::NodeId CallTree::open_node(std::uint64_t frame) {
  if (last_.node != kTop && last_.frame == frame) return last_.node;
  const NodeId known = take_open(frame);
  if (last_.node != kTop) {
    if (recent_.size() == kMostRecent) {
      for (const Open& old : recent_) open_.emplace(old.frame, old.node);
      recent_.clear();
    }
    recent_.push_back(last_);
  }
  last_ = {frame, known != kTop ? known : make_node()};
  most_open_ = std::max(most_open_, frame);
  return last_.node;
}

void CallTree::on_hidden(const Frame& frame) {
  const NodeId node = take_open(frame.id);
  if (node == kTop) return;
  const NodeId parent = (frame.flags & FRAME_PARENT) != 0 ? open_node(frame.parent) : kTop;
  for (const auto& [unused, callee] : std::exchange(nodes_[node].callees, {})) merge(parent, callee);
  free_.push_back(node);
}

namespace {

// The list of a node's callees, where there is one.
constexpr std::uint64_t kListBytes = 32;

}  // namespace

std::uint64_t CallTree::bytes() const noexcept {
  return nodes_.capacity() * sizeof(Node) + nodes_.size() * kListBytes + free_.capacity() * sizeof(NodeId) +
         open_.size() * base::node_bytes<decltype(open_)::value_type>() + chain_.capacity() * sizeof(Open) +
         functions_.bytes();
}

// Each open frame may become a context; then all are copied in add_all(), and get rows.
std::uint64_t CallTree::later_bytes(const FrameCounts& counts) const noexcept {
  constexpr std::uint64_t kNode = sizeof(Node) + kListBytes;
  const std::uint64_t row =
      tables::columns::row_bytes(tables::columns::TableId::call_tree, tables::columns::kAllColumns);
  const std::uint64_t nodes = nodes_.size() - std::min(free_.size(), nodes_.size());
  return counts.open * kNode + (counts.open + nodes) * (kNode + row);
}

void CallTree::add_all(const CallTree& others, const FunctionTable& functions) {
  struct Copy {
    NodeId from;
    NodeId to;
  };
  for (const auto& [function, root] : others.nodes_[kTop].callees) {
    // Copies the tree below the root, and merges it as a whole.
    std::vector<Copy> left{{root, make_node()}};
    const NodeId copied = left.back().to;
    while (!left.empty()) {
      const Copy copy = left.back();
      left.pop_back();
      const Node& from = others.nodes_[copy.from];
      const bool known = from.function < kFirstFunction;
      nodes_[copy.to].function = known ? from.function : functions_.number(functions.at(from.function));
      add(nodes_[copy.to], from);
      for (const auto& [unused, callee] : from.callees) {
        const NodeId node = make_node();
        left.push_back({callee, node});
        const std::uint32_t old = others.nodes_[callee].function;
        nodes_[copy.to].callees.emplace_back(
            old < kFirstFunction ? old : functions_.number(functions.at(old)), node);
      }
      std::sort(nodes_[copy.to].callees.begin(), nodes_[copy.to].callees.end());
    }
    merge(kTop, copied);
  }
}

std::vector<CallTree::NodeId> CallTree::sorted_callees(NodeId node) const {
  std::vector<NodeId> sorted;
  for (const auto& [function, callee] : nodes_[node].callees) sorted.push_back(callee);
  const auto key = [this](NodeId id) {
    const Node& one = nodes_[id];
    const Function& function = functions_.at(one.function);
    return std::tuple(~one.inclusive.instructions, function.file, function.offset, function.entry_ip,
                      function.level, one.function);
  };
  std::sort(sorted.begin(), sorted.end(), [&](NodeId a, NodeId b) { return key(a) < key(b); });
  return sorted;
}

std::unique_ptr<tables::columns::Batch> CallTree::rows(tables::columns::ColumnMask mask) const {
  using enum tables::columns::Column;
  struct Row {
    NodeId node;
    std::uint32_t parent;
    std::int32_t depth;
  };
  auto batch = std::make_unique<tables::columns::Batch>(tables::columns::TableId::call_tree, mask);
  std::vector<Row> left;
  const auto push_callees = [&](NodeId node, std::uint32_t parent, std::int32_t depth) {
    const auto callees = sorted_callees(node);
    for (std::size_t i = callees.size(); i-- > 0;) left.push_back({callees[i], parent, depth});
  };
  push_callees(kTop, 0, 0);
  while (!left.empty()) {
    const Row at = left.back();
    left.pop_back();
    if (!batch->reserve(1)) return nullptr;
    const std::size_t row = batch->rows();
    const Node& node = nodes_[at.node];
    const Function& function = functions_.at(node.function);
    unsigned flags = function_flags(function, node.function) | sum_flags(node.sums);
    if (at.depth != 0) flags |= tables::columns::FUNCTION_PARENT_KNOWN;
    batch->put<call_tree_node>(row, static_cast<std::uint32_t>(row));
    batch->put<call_tree_parent>(row, at.parent);
    batch->put<call_tree_depth>(row, at.depth);
    batch->put<call_tree_flags>(row, static_cast<std::uint16_t>(flags));
#define PT_FUNCTION_CELL(name, value) batch->put<call_tree_##name>(row, value);
#define PT_FRAME_SUM(name, part) batch->put<call_tree_##name>(row, node.sums.name);
#define PT_GROUP_SUM(name, part) batch->put<call_tree_##name>(row, node.inclusive.name);
#define PT_GROUP_TIME(name, part) batch->put<call_tree_##name>(row, node.inclusive.name);
#include "tables/calls/sums/sums.def"
    batch->add_rows(1);
    push_callees(at.node, static_cast<std::uint32_t>(row), at.depth + 1);
  }
  return batch;
}

}  // namespace ptkit::tables::calls
