#include "tables/calls/timeline/slice_nodes.h"

namespace ptkit::tables::calls {

void SliceNodes::reuse() noexcept {
  free_ = kNoNode;
  for (NodeNumber number = used_ - 1; number != kNoNode; --number) {
    SliceNode& node = (*this)[number];
    if (node.calls == 0) node.next = std::exchange(free_, number);
  }
}

std::vector<NodeNumber> SliceNodes::compact() {
  std::vector<NodeNumber> moved(used_);
  NodeNumber used = 1;
  for (NodeNumber number = 1; number < used_; ++number) {
    if ((*this)[number].calls != 0) moved[number] = used++;
  }
  for (NodeNumber number = 1; number < used_; ++number) {
    if (moved[number] == kNoNode) continue;
    SliceNode node = (*this)[number];
    node.next = moved[node.next];
    node.children = moved[node.children];
    (*this)[moved[number]] = node;
  }
  used_ = used;
  free_ = kNoNode;
  free_count_ = 0;
  chunks_.resize(std::min(chunks_.size(), ((used_ - 1) >> kChunkBits) + std::size_t{1}));
  return moved;
}

NodeNumber SliceNodes::take_all(SliceNodes&& others) {
  const NodeNumber offset = used_ - 1;
  for (NodeNumber number = 1; number < others.used_; ++number) {
    if ((number & (kChunk - 1)) == 0) others.chunks_[(number >> kChunkBits) - 1].reset();
    SliceNode node = others[number];
    if (node.next != kNoNode) node.next += offset;
    if (node.children != kNoNode) node.children += offset;
    // Free nodes of this one are not used: the numbers must not depend on them.
    if (used_ == UINT32_MAX) throw std::bad_alloc();
    if (used_ >> kChunkBits >= chunks_.size())
      chunks_.push_back(std::make_unique_for_overwrite<SliceNode[]>(kChunk));
    (*this)[used_++] = node;
  }
  others.chunks_.clear();
  others.used_ = 1;
  return offset;
}

}  // namespace ptkit::tables::calls
