// Slices as nodes of trees, linked by numbers: 80 bytes a call. The memory grows in chunks, without copies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "tables/calls/timeline/call_timeline.h"

namespace ptkit::tables::calls {

using NodeNumber = std::uint32_t;
inline constexpr NodeNumber kNoNode = 0;

// Siblings are a ring. A list is the number of its last node, of which `next` is the first one.
struct SliceNode {
  static constexpr unsigned kShortBits = 48;
  static constexpr std::uint64_t kMostShort = (std::uint64_t{1} << kShortBits) - 1;

  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t covered;
  std::uint64_t instructions;
  std::uint64_t branches;
  std::uint64_t id : kShortBits;
  std::uint64_t flags : 16;
  std::uint64_t longest : kShortBits;  // length of the longest call; at most kMostShort
  std::uint64_t how : 7;
  std::uint64_t has_loss : 1;
  std::uint64_t end_how : 8;
  std::uint32_t begin_error;
  std::uint32_t end_error;
  std::uint32_t function;
  std::uint32_t calls;  // 0: the node is free
  NodeNumber next;
  NodeNumber children;  // a list

  [[nodiscard]] std::uint64_t length() const noexcept { return end - begin; }
  [[nodiscard]] bool is_merged() const noexcept { return calls > 1; }
};
static_assert(sizeof(SliceNode) == 80);

class SliceNodes {
 public:
  SliceNodes() = default;
  SliceNodes(SliceNodes&& other) noexcept
      : chunks_(std::exchange(other.chunks_, {})),
        used_(std::exchange(other.used_, 1)),
        free_(std::exchange(other.free_, kNoNode)),
        free_count_(std::exchange(other.free_count_, 0)) {}
  SliceNodes& operator=(SliceNodes&&) = delete;
  SliceNodes(const SliceNodes&) = delete;
  SliceNodes& operator=(const SliceNodes&) = delete;
  ~SliceNodes() = default;

  [[nodiscard]] SliceNode& operator[](NodeNumber number) noexcept {
    return chunks_[number >> kChunkBits][number & (kChunk - 1)];
  }
  [[nodiscard]] const SliceNode& operator[](NodeNumber number) const noexcept {
    return chunks_[number >> kChunkBits][number & (kChunk - 1)];
  }
  // Nodes in use.
  [[nodiscard]] std::size_t size() const noexcept { return used_ - 1 - free_count_; }
  // All numbers are below. Free nodes are among them.
  [[nodiscard]] NodeNumber end() const noexcept { return used_; }
  [[nodiscard]] std::size_t free_count() const noexcept { return free_count_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return chunks_.size() * kChunk * sizeof(SliceNode) + chunks_.capacity() * sizeof(chunks_[0]);
  }

  // A node with nothing set. References to other nodes stay valid. Throws std::bad_alloc.
  [[nodiscard]] NodeNumber add() {
    if (free_ != kNoNode) {
      --free_count_;
      return std::exchange(free_, (*this)[free_].next);
    }
    if (used_ == UINT32_MAX) throw std::bad_alloc();
    if (used_ >> kChunkBits >= chunks_.size())
      chunks_.push_back(std::make_unique_for_overwrite<SliceNode[]>(kChunk));
    return used_++;
  }
  void remove(NodeNumber number) noexcept {
    SliceNode& node = (*this)[number];
    node.calls = 0;
    node.next = std::exchange(free_, number);
    ++free_count_;
  }

  // A node that became a part of another one, which its `next` is until reuse().
  void absorb(NodeNumber number, NodeNumber by) noexcept {
    SliceNode& node = (*this)[number];
    node.calls = 0;
    node.next = by;
    ++free_count_;
  }
  [[nodiscard]] NodeNumber absorber(NodeNumber number) const noexcept {
    while ((*this)[number].calls == 0) number = (*this)[number].next;
    return number;
  }
  // Lets add() use nodes that were absorbed.
  void reuse() noexcept;

  // Adds a node or a list behind a list. Returns the list.
  NodeNumber append(NodeNumber list, NodeNumber more) noexcept {
    if (more == kNoNode) return list;
    if (list != kNoNode) std::swap((*this)[list].next, (*this)[more].next);
    return more;
  }
  // A list with this node alone.
  NodeNumber alone(NodeNumber number) noexcept {
    (*this)[number].next = number;
    return number;
  }
  // Takes the first node out of a list that has one.
  NodeNumber take_first(NodeNumber& list) noexcept {
    const NodeNumber first = (*this)[list].next;
    if (first == list) {
      list = kNoNode;
    } else {
      (*this)[list].next = (*this)[first].next;
    }
    return first;
  }

  // Closes up the nodes, so that none is free: the new number of each, by its old one.
  [[nodiscard]] std::vector<NodeNumber> compact();
  // Moves in all nodes of others, which have no free ones: their numbers increase by what this returns.
  NodeNumber take_all(SliceNodes&& others);

 private:
  static constexpr unsigned kChunkBits = 12;
  static constexpr std::size_t kChunk = std::size_t{1} << kChunkBits;

  std::vector<std::unique_ptr<SliceNode[]>> chunks_;
  NodeNumber used_ = 1;  // number 0 is none
  NodeNumber free_ = kNoNode;
  std::size_t free_count_ = 0;
};

}  // namespace ptkit::tables::calls
