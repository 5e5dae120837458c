#include "tables/calls/timeline/slice_merge.h"

namespace ptkit::tables::calls {

void join_lists(SliceNodes& nodes, const MergeRules& rules, NodeNumber& list, NodeNumber more) {
  NodeNumber* to = &list;
  while (more != kNoNode && *to != kNoNode) {
    const NodeNumber last = *to;
    const NodeNumber first = nodes[more].next;
    SliceNode& slice = nodes[last];
    const SliceNode& next = nodes[first];
    const bool joins = rules.open(slice, rules.keeps(slice)).takes(next, rules.keeps(next));
    if (!joins) break;
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
