#include "tables/calls/timeline/slice_merge.h"

namespace ptkit::tables::calls {

void merge_into(SliceNode& slice, const SliceNode& next) noexcept {
  const bool is_exact = (slice.flags & next.flags & FRAME_EXACT) != 0;
  if (next.longest > slice.longest) {
    slice.longest = next.longest;
    slice.id = next.id;
    slice.function = next.function;
    slice.how = next.how;
    slice.end_how = next.end_how;
    slice.flags = next.flags;
  }
  if (!is_exact) slice.flags = slice.flags & static_cast<std::uint16_t>(~FRAME_EXACT);
  if (next.end >= slice.end) {
    slice.end = next.end;
    slice.end_error = next.end_error;
  }
  slice.has_loss = slice.has_loss | next.has_loss;
  slice.covered += next.covered;
  slice.instructions += next.instructions;
  slice.branches += next.branches;
  slice.calls += next.calls;
}

void join_lists(SliceNodes& nodes, const MergeRules& rules, NodeNumber& list, NodeNumber more) {
  NodeNumber* to = &list;
  while (more != kNoNode && *to != kNoNode) {
    const NodeNumber last = *to;
    const NodeNumber first = nodes[more].next;
    SliceNode& slice = nodes[last];
    const SliceNode& next = nodes[first];
    if (!rules.join(slice, next)) break;
    static_cast<void>(nodes.take_first(more));
    *to = nodes.append(last, more);
    merge_into(slice, next);
    more = next.children;
    nodes.remove(first);
    to = &slice.children;
  }
  *to = nodes.append(*to, more);
}

}  // namespace ptkit::tables::calls
