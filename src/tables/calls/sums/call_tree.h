// Calling contexts: a node for each chain of functions from a root, with sums over its frames.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tables/calls/code/function_table.h"
#include "tables/calls/frame_rows.h"
#include "tables/calls/stack/frame.h"
#include "tables/calls/sums/frame_sums.h"
#include "tables/columns/batch.h"

namespace ptkit::tables::calls {

// Frames end before their parents. Of a frame that ends with the open frames below it (Frame::callers), the
// node is known: that of its function below the nodes of those. Else the tree is built from its leaves: the
// frame becomes a node with the nodes of the frames above it, and is merged into its parent's nodes. So are
// the outermost frames, of which callers may become known later, and those that may get another function.
// Memory has the tree, and what is above open frames. A frame that is not selected has no node: what is above
// it is above its parent.
class CallTree final : public FrameSink {
 public:
  // `by_callers`: on_frame() gets all frames that on_hidden() does not, and that one gets none.
  explicit CallTree(const tables::columns::Selection& selection = {}, bool by_callers = true);

  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly&, const Owner&) override {}
  void on_hidden(const Frame& frame) override;
  [[nodiscard]] std::uint64_t bytes() const noexcept override;
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override;
  [[nodiscard]] std::size_t contexts() const noexcept { return nodes_.size() - free_.size(); }
  // Adds the tree of another stream, of which `functions` has the numbers. All its frames have ended.
  void add_all(const CallTree& others, const FunctionTable& functions);
  // A row for each node, callers first; of the callees of one caller, those with most instructions first.
  // Null: out of memory. For trees of add_all() only.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> rows(tables::columns::ColumnMask mask) const;

 private:
  using NodeId = std::uint32_t;
  struct Node {
    FrameSums sums;
    GroupSums inclusive;
    std::vector<std::pair<std::uint32_t, NodeId>> callees;  // by function, ascending
    std::uint32_t function = 0;
  };

  [[nodiscard]] NodeId make_node();
  static void add(Node& to, const Node& from) noexcept;
  static void add(Node& to, const Frame& frame) noexcept;
  // A callee of a node; it is made if there is none.
  [[nodiscard]] NodeId callee_of(NodeId caller, std::uint32_t function);
  void add_called(const Frame& frame);
  [[nodiscard]] NodeId caller_of(const Frame& frame);
  // The node that has the callees of an open frame.
  [[nodiscard]] NodeId open_node(std::uint64_t frame);
  // Takes the node of a frame that ends; kTop: it has none.
  [[nodiscard]] NodeId take_open(std::uint64_t frame);
  // Merges a node, which no other node has, into the callees of another one.
  void merge(NodeId caller, NodeId node);
  [[nodiscard]] std::vector<NodeId> sorted_callees(NodeId node) const;

  static constexpr NodeId kTop = 0;  // the callees of which are the roots
  FrameFilter filter_;
  std::vector<Node> nodes_;
  std::vector<NodeId> free_;
  // Nodes that have the callees of frames that have not ended: the last one, a few before it, and others by
  // id of the frame.
  struct Open {
    std::uint64_t frame = 0;
    NodeId node = kTop;  // kTop: none
  };
  static constexpr std::size_t kMostRecent = 32;
  Open last_;
  std::vector<Open> recent_;
  std::unordered_map<std::uint64_t, NodeId> open_;
  std::uint64_t most_open_ = 0;  // the highest id that had a node
  bool by_callers_;
  std::vector<Open> chain_;      // nodes of open frames of one stack, outermost first
  std::size_t chain_steps_ = 0;  // of frames that may be added to it
  std::vector<std::pair<NodeId, NodeId>> merging_;
  FunctionTable functions_;  // of add_all()
};

}  // namespace ptkit::tables::calls
