#include "tables/calls/timeline/slice_walk.h"

#include <algorithm>

namespace ptkit::tables::calls {

SliceWalk::SliceWalk(const SliceNodes& nodes, NodeNumber list) : nodes_(nodes), last_(list) {
  Open root;
  root.next = list == kNoNode ? kNoNode : nodes[list].next;
  root.end = UINT64_MAX;
  path_.push_back(root);
}

void SliceWalk::set(const Open& open) {
  const SliceNode& node = nodes_[open.node];
  slice_.begin = open.begin;
  slice_.end = open.end;
  slice_.id = node.id;
  slice_.covered = node.covered;
  slice_.instructions = node.instructions;
  slice_.branches = node.branches;
  slice_.begin_error = node.begin_error;
  slice_.end_error = node.end_error;
  slice_.function = node.function;
  slice_.calls = node.calls;
  slice_.flags = static_cast<std::uint16_t>(node.flags);
  slice_.how = static_cast<CallKind>(node.how);
  slice_.end_how = static_cast<CallEnd>(node.end_how);
  slice_.has_loss = node.has_loss != 0;
}

bool SliceWalk::next() {
  Open& top = path_.back();
  if (top.next == kNoNode) {
    if (path_.size() == 1) return false;
    set(top);
    path_.pop_back();
    path_.back().at = slice_.end;
    depth_ = static_cast<std::uint32_t>(path_.size() - 1);
    is_begin_ = false;
    return true;
  }
  const SliceNode& node = nodes_[top.next];
  Open open{.node = top.next};
  open.begin = open.at = std::clamp(node.begin, top.at, top.end);
  open.end = std::clamp(node.end, open.begin, top.end);
  if (node.children != kNoNode) open.next = nodes_[node.children].next;
  if (open.begin != node.begin || open.end != node.end) ++clamped_;
  // The last one of a list has the first one behind it.
  const NodeNumber list = path_.size() == 1 ? last_ : nodes_[top.node].children;
  top.next = top.next == list ? kNoNode : node.next;
  depth_ = static_cast<std::uint32_t>(path_.size() - 1);
  set(open);
  path_.push_back(open);
  is_begin_ = true;
  return true;
}

}  // namespace ptkit::tables::calls
