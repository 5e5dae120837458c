// Goes through a list of trees in the order of a timeline. Positions are clamped to those of the caller and
// of what came before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tables/calls/timeline/slice_nodes.h"

namespace ptkit::tables::calls {

class SliceWalk {
 public:
  // The nodes must outlive this.
  SliceWalk(const SliceNodes& nodes, NodeNumber list);

  // Goes to the next begin or end of a slice. False: there is none.
  [[nodiscard]] bool next();
  // After next():
  [[nodiscard]] bool is_begin() const noexcept { return is_begin_; }
  [[nodiscard]] const Slice& slice() const noexcept { return slice_; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }
  // Slices so far of which positions were changed.
  [[nodiscard]] std::uint64_t clamped() const noexcept { return clamped_; }

 private:
  // A node that is open: its limits, and the next one of its children.
  struct Open {
    NodeNumber node = kNoNode;
    NodeNumber next = kNoNode;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t at = 0;  // what follows begins there, or later
  };
  void set(const Open& open);

  const SliceNodes& nodes_;
  NodeNumber last_;         // of the list
  std::vector<Open> path_;  // the first one is no node: it has the list
  Slice slice_;
  std::uint32_t depth_ = 0;
  std::uint64_t clamped_ = 0;
  bool is_begin_ = false;
};

}  // namespace ptkit::tables::calls
