// Memoised automaton over the code, for the fast path. A state (node) is an address where decoding needs a
// packet. A transition has a TNT pattern or the IP of a TIP packet as its key, and a path to the next node.
// The Walker's rules find each path once. A transition is memoised only if the walk succeeded and depends on
// nothing but the node and the packet.
//
//   node --- TNT pattern or TIP's IP (Transition) ---> node
//              |
//              +-- Path: blocks, calls, rows
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "flow/code/block_cache.h"
#include "flow/fast/edge_index.h"
#include "flow/fast/packet_groups.h"
#include "flow/fast/path_builder.h"
#include "flow/fast/path_insns.h"
#include "flow/fast/path_rows.h"
#include "flow/fast/transitions.h"

namespace ptkit::flow {

// The path of a transition: blocks and calls from one node to the next.
struct Path {
  std::uint32_t step = 0;  // index of the first PathStep
  std::uint32_t push = 0;  // index of the return addresses that the path's calls leave on the stack
  std::uint32_t tail = 0;
  std::uint32_t edge = 0;   // index of its edge numbers; 0: not looked up yet
  std::uint32_t block = 0;  // the same of its counted blocks
  std::uint16_t steps = 0;
  std::uint16_t part = 0;  // instructions of the last block, if not all
  std::uint8_t pushes = 0;
  std::uint8_t depth = 0;  // largest number of calls within the path that are open at a time
  bool returns = false;    // to calls within the path
};

// What a decoder does with returns: Walker::return_compression() and keeps_calls().
struct ReturnRules {
  bool compressed = true;
  bool keeps_calls = true;
  [[nodiscard]] bool operator==(const ReturnRules&) const noexcept = default;
};

class PathCache {
 public:
  // A position of the Walker between two instructions, where no block has begun. Node 0: packets are
  // disabled.
  struct Node {
    std::uint64_t ip = 0;
    std::uint32_t base = 0;  // base of its transitions
    PathId exit = 0;         // path to the next branch that needs a TIP; 0: unknown
    std::uint16_t exit_insns = 0;
    bool returns = false;  // the branch at the exit is a return
    bool near = false;     // the branch at the exit is an indirect jump or call
  };
  // Low bits of Transition::from. PSB: the FUP of a PSB+. FUP: of an interrupt or exception, with a TIP.PGD
  // without IP.
  enum class Packet : std::uint8_t { TIP, PGE, PGD, PGD_NO_IP, PSB, FUP };

  // It refers to the blocks of `cache`, and its memory is in the same arena.
  PathCache(BlockCache& cache, const ReturnRules& returns);
  PathCache(const PathCache&) = delete;
  PathCache& operator=(const PathCache&) = delete;
  ~PathCache();

  [[nodiscard]] const ReturnRules& returns() const noexcept { return returns_; }

  // Look up nodes and transitions, and build missing ones. References and pointers are valid until the next
  // call. Null: the simple decoder has to use the packet.
  [[nodiscard]] NodeId node(std::uint64_t ip);
  [[nodiscard]] Transition* bits(NodeId from, std::uint32_t bits);  // `bits`: with a leading 1
  [[nodiscard]] Transition* target(NodeId from, Packet packet, std::uint64_t ip, const AddressFilter& filter);

  [[nodiscard]] const Node& at(NodeId id) const noexcept { return nodes_[id]; }
  [[nodiscard]] NodeId node_of(std::uint32_t base) const noexcept { return tnt_transitions_.owner(base); }
  [[nodiscard]] Transitions& tnt_transitions() noexcept { return tnt_transitions_.all(); }
  [[nodiscard]] Transitions& tip_transitions() noexcept { return tip_transitions_.all(); }
  [[nodiscard]] std::uint64_t target_mask() const noexcept { return tip_transitions_.mask(); }
  [[nodiscard]] const Path* paths() const noexcept { return paths_.data(); }
  [[nodiscard]] std::size_t path_count() const noexcept { return paths_.size(); }
  // The end of a path that disabled packets.
  [[nodiscard]] const PathTail& leave(const Path& path) const noexcept { return tails_[path.tail]; }
  [[nodiscard]] const std::uint64_t* pushed() const noexcept { return pushed_.data(); }
  // Rows of the paths that were added.
  [[nodiscard]] const PathRows& path_rows() const noexcept { return path_rows_; }
  [[nodiscard]] const PathInsns& path_insns() const noexcept { return path_insns_; }
  // Rows of the branches of a choice. Valid until the next call with another choice.
  [[nodiscard]] PathRows& chosen_rows(const BranchChoice& choice);
  void add_path_branches(PathId id);
  void add_path_branches(PathId id, const BranchChoice& choice);
  void add_path_blocks(PathId id);
  std::uint32_t add_path_insns(PathId id);
  [[nodiscard]] BlockCache& cache() noexcept { return cache_; }

  [[nodiscard]] std::size_t bytes() const noexcept;  // bytes of memory

  // As EdgeIndex::take_in_order() and take().
  [[nodiscard]] std::span<const EdgeCount> take_edges() {
    count_transitions();
    return edges_.take_in_order();
  }
  [[nodiscard]] EdgeCounts take_counts() {
    count_transitions();
    return edges_.take();
  }
  // Whether blocks are counted along with edges. Counts that were noted before are to be taken before.
  void count_blocks(bool counts) noexcept { counts_blocks_ = counts; }
  // Groups count edges alone, and have no effect on the call stack.
  [[nodiscard]] bool may_group() const noexcept { return !counts_blocks_ && !returns_.keeps_calls; }
  [[nodiscard]] PacketGroups& groups() noexcept { return groups_; }
  // Adds the group of these packets, if all their transitions are known. Null: it has to be used packet by
  // packet. `tnt`: see PacketGroup.
  [[nodiscard]] PacketGroup* add_group(std::uint32_t base, std::uint32_t tnt, std::uint64_t ip);
  // Notes the first use of a group, or carries its count, which has wrapped at 2^32.
  void note_group(const PacketGroup& group) {
    if (group.count != 0) return groups_.note(group);
    count_list(group.list, kCarry);
  }
  // Forgets all counts. Takes no memory.
  void clear_counts() noexcept;
  // Notes a TRANSITION_NEW transition that is counted for the first time: only these are visited afterwards.
  void note_bits(Transition& transition);
  void note_target(Transition& transition);
  // Carries the transition's count, which has wrapped at 2^32.
  void carry_bits(Transition& transition) { take_bits(transition, kCarry); }
  void carry_target(const Transition& transition) {
    take_target(static_cast<std::size_t>(&transition - tip_transitions_.all().data()), kCarry);
  }

 private:
  static constexpr std::size_t kMostGroupNumbers = std::size_t{1} << 20U;  // in the lists of all groups
  static constexpr std::uint32_t kTargetUse = 1U << 31U;
  static constexpr std::uint32_t kOpenTail = 1;
  static constexpr std::uint64_t kCarry = std::uint64_t{1} << 32U;

  PathBuilder& begin_path();
  PathId add_path(const PathBuilder& builder);
  [[nodiscard]] std::uint32_t from(NodeId node, Packet packet) const noexcept {
    return nodes_[node].base | static_cast<std::uint32_t>(packet);
  }
  bool find_exit(Node& node);
  // TransitionFlag bits for the path's effect on the call stack.
  [[nodiscard]] std::uint16_t calls_of(const PathBuilder& builder) const noexcept {
    return builder.depth != 0 && returns_.keeps_calls ? std::uint16_t{TRANSITION_CALLS} : std::uint16_t{0};
  }
  [[nodiscard]] Transition& add_target(NodeId from, Packet packet, std::uint64_t ip, NodeId to);
  [[nodiscard]] Transition* add_status(NodeId from, std::uint64_t ip);
  [[nodiscard]] Transition* add_leave(NodeId from, Packet packet, std::uint64_t ip,
                                      const AddressFilter& filter);
  [[nodiscard]] std::vector<PathBranch> branches_of(const Path& path) const;
  [[nodiscard]] const BasicBlock& last_block(const Path& path) const noexcept {
    return cache_.block(steps_[path.step + path.steps - 1U].block());
  }
  // Start of a path: its blocks up to the first branch that needs a packet.
  struct Head {
    std::uint32_t blocks = 0;
    std::uint32_t insns = 0;
  };
  [[nodiscard]] Head head_of(const Path& path) const;
  // Calls visit(block, instructions, bytes) for each block of the path.
  template <typename Visit>
  void each_block(const Path& path, const Visit& visit) const;
  [[nodiscard]] std::uint32_t step_edge(PathStep step);
  void add_path_edges(Path& path);
  void add_counted_blocks(Path& path);
  // Starts a list of `path_edges_`, and ends it.
  [[nodiscard]] std::uint32_t begin_list();
  void end_list(std::uint32_t list);
  void count_list(std::uint32_t list, std::uint64_t times) noexcept {
    const std::uint32_t* const first = path_edges_.data() + list;
    edges_.count_each({first, first[-1]}, times);
  }
  // Calls visit(index, is_target) for each noted transition, and for others if noted ones have moved.
  template <typename Visit>
  void each_noted(const Visit& visit);
  void count_transitions();
  using PacketsOfGroup = std::array<const Transition*, PacketGroups::kMostTnt + 1>;
  [[nodiscard]] std::size_t find_packets(std::uint32_t base, std::uint32_t tnt, std::uint64_t ip,
                                         PacketsOfGroup& out);
  void add_group_list(PacketGroup& group, std::span<const Transition* const> packets);
  void count_groups();
  // Number of the edge of a TIP transition at the end of `path`; its index is in the table.
  [[nodiscard]] std::uint32_t target_edge(std::size_t index, const Path& path);
  void count_path(Path& path, std::uint64_t times);
  void take_bits(Transition& transition, std::uint64_t times);
  void take_target(std::size_t index, std::uint64_t times);

  BlockCache& cache_;
  ReturnRules returns_;
  std::unique_ptr<PathBuilder> builder_;
  TntTransitions tnt_transitions_;
  TipTransitions tip_transitions_;
  PacketGroups groups_;
  base::ArenaVector<Node> nodes_;
  IpIndex nodes_by_ip_;
  base::ArenaVector<Path> paths_;
  base::ArenaVector<PathTail> tails_;
  base::ArenaVector<PathStep> steps_;
  base::ArenaVector<std::uint64_t> pushed_;
  EdgeIndex edges_;
  // 1 + edge numbers; 0: not looked up yet.
  base::ArenaVector<std::uint32_t> step_edges_;    // by PathStep
  base::ArenaVector<std::uint32_t> target_edges_;  // for the last row of TIP transitions
  base::ArenaVector<std::uint32_t> whole_blocks_;  // by block
  std::size_t group_numbers_ = 0;                  // in the lists of groups
  bool counts_blocks_ = false;
  // Lists of edge numbers for paths, without the last branch if its target varies, and of numbers of their
  // blocks. The size precedes each list.
  base::ArenaVector<std::uint32_t> path_edges_;
  base::ArenaVector<std::uint32_t> used_;  // noted transitions; TIP transitions have kTargetUse
  bool used_lost_ = false;                 // noted transitions have moved since
  PathRows path_rows_;
  std::vector<std::pair<BranchChoice, PathRows>> chosen_rows_;
  PathInsns path_insns_;
};

}  // namespace ptkit::flow
