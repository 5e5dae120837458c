#include "flow/fast/path_cache.h"

#include <array>
#include <bit>
#include <utility>

#include "flow/walk/walker.h"

namespace ptkit::flow {

namespace {

std::uint32_t bytes_of(std::span<const BlockInsn> insns) noexcept {
  std::uint32_t bytes = 0;
  for (const BlockInsn& insn : insns) bytes += insn.size;
  return bytes;
}

}  // namespace

PathCache::PathCache(BlockCache& cache, const ReturnRules& returns)
    : cache_(cache),
      returns_(returns),
      builder_(std::make_unique<PathBuilder>(cache)),
      tnt_transitions_(cache.arena()),
      tip_transitions_(cache.arena()),
      groups_(cache.arena()),
      nodes_(1, cache.arena()),
      nodes_by_ip_(cache.arena()),
      paths_(1, cache.arena()),
      tails_(2, cache.arena()),
      steps_(cache.arena()),
      pushed_(cache.arena()),
      edges_(cache.arena()),
      step_edges_(cache.arena()),
      target_edges_(cache.arena()),
      whole_blocks_(cache.arena()),
      path_edges_(cache.arena()),
      used_(cache.arena()),
      path_rows_(cache.arena()),
      path_insns_(cache.arena()) {
  tails_[kOpenTail] = {.flags = kTakenBranch, .has_branch = true, .is_open = true};
  nodes_[0].base = tnt_transitions_.add_node(0);
}

PathCache::~PathCache() = default;

PathBuilder& PathCache::begin_path() {
  builder_->clear();
  return *builder_;
}

std::size_t PathCache::bytes() const noexcept {
  std::size_t chosen = 0;
  for (const auto& [choice, rows] : chosen_rows_) chosen += rows.bytes();
  return chosen + tnt_transitions_.bytes() + tip_transitions_.bytes() + groups_.bytes() +
         nodes_.capacity() * sizeof(Node) + nodes_by_ip_.bytes() + paths_.capacity() * sizeof(Path) +
         tails_.capacity() * sizeof(PathTail) + steps_.capacity() * sizeof(PathStep) +
         pushed_.capacity() * sizeof(std::uint64_t) + edges_.bytes() +
         (path_edges_.capacity() + step_edges_.capacity() + target_edges_.capacity() +
          whole_blocks_.capacity() + used_.capacity()) *
             sizeof(std::uint32_t) +
         path_rows_.bytes() + path_insns_.bytes();
}

NodeId PathCache::node(std::uint64_t ip) {
  const auto is_there = [this, ip](std::uint32_t id) noexcept { return nodes_[id].ip == ip; };
  if (const std::uint32_t found = nodes_by_ip_.find(ip, is_there); found != IpIndex::kNone) return found;
  const auto id = static_cast<NodeId>(nodes_.size());
  Node node;
  node.ip = ip;
  node.base = tnt_transitions_.add_node(id);
  nodes_.push_back(node);
  nodes_by_ip_.put(ip, id);
  return id;
}

PathId PathCache::add_path(const PathBuilder& builder) {
  Path path;
  path.step = static_cast<std::uint32_t>(steps_.size());
  path.push = static_cast<std::uint32_t>(pushed_.size());
  path.steps = static_cast<std::uint16_t>(builder.steps.size());
  path.part = static_cast<std::uint16_t>(builder.part);
  path.pushes = static_cast<std::uint8_t>(builder.calls.size());
  path.depth = static_cast<std::uint8_t>(builder.depth);
  path.returns = builder.returns;
  if (builder.tail.has_branch || builder.tail.end_ip != 0) {
    path.tail = static_cast<std::uint32_t>(tails_.size());
    tails_.push_back(builder.tail);
  }
  steps_.insert(steps_.end(), builder.steps.begin(), builder.steps.end());
  pushed_.insert(pushed_.end(), builder.calls.begin(), builder.calls.end());
  paths_.push_back(path);
  return static_cast<PathId>(paths_.size() - 1);
}

Transition* PathCache::bits(NodeId from, std::uint32_t bits) {
  if (Transition& known = tnt_transitions_.at(nodes_[from].base, bits); known.from == nodes_[from].base)
    return &known;
  PathBuilder& builder = begin_path();
  const PathEnd end = builder.bits(nodes_[from].ip, bits, returns_.compressed);
  if (end == PathEnd::STUCK && builder.used == 0) return nullptr;
  if (end != PathEnd::USED) {
    const auto count = static_cast<unsigned>(std::bit_width(bits)) - 1;
    const std::uint32_t first = bits >> (count - builder.used);
    builder.clear();
    static_cast<void>(builder.bits(nodes_[from].ip, first, returns_.compressed));
  }
  const NodeId next = node(builder.end_ip);
  const std::uint32_t base = nodes_[from].base;
  Transition& transition = tnt_transitions_.add(from, nodes_[from].base, bits);
  if (nodes_[from].base != base) used_lost_ = !used_.empty();
  transition.next = nodes_[next].base;
  transition.path = add_path(builder);
  transition.insns = static_cast<std::uint16_t>(builder.insns);
  transition.set_used(end != PathEnd::USED ? builder.used : 0);
  if (end == PathEnd::RETURN) transition.flags |= TRANSITION_RETURN;
  if (end == PathEnd::STUCK) transition.flags |= TRANSITION_STUCK;
  if (builder.depth == 1 && builder.calls.size() == 1 && returns_.keeps_calls) {
    transition.ip = builder.calls.front();
    transition.flags |= TRANSITION_CALL;
  } else {
    transition.flags |= calls_of(builder);
  }
  // The hot loop pops the return address, and continues from `next` over its exit. Without an exit the simple
  // decoder uses the bit.
  if (end == PathEnd::RETURN && !find_exit(nodes_[next])) {
    transition.flags = static_cast<std::uint16_t>((transition.flags & ~TRANSITION_RETURN) | TRANSITION_STUCK);
  }
  return &transition;
}

bool PathCache::find_exit(Node& node) {
  if (node.exit != 0) return true;
  PathBuilder& builder = begin_path();
  BasicBlock* block = &cache_.at(node.ip);
  if (!builder.path(block) || block->end == Terminator::COND) return false;
  if (block->pushes && !builder.push(block->next_ip)) return false;
  node.exit = add_path(builder);
  paths_.back().tail = kOpenTail;
  node.exit_insns = static_cast<std::uint16_t>(builder.insns);
  node.returns = block->end == Terminator::RETURN;
  node.near = block->end == Terminator::INDIRECT;
  return true;
}

Transition& PathCache::add_target(NodeId from, Packet packet, std::uint64_t ip, NodeId to) {
  if (tip_transitions_.make_room()) {
    used_lost_ = !used_.empty();
    target_edges_.clear();
  }
  Transition& transition = tip_transitions_.find(ip, this->from(from, packet));
  tip_transitions_.took_free();
  transition.ip = ip;
  transition.from = this->from(from, packet);
  transition.next = nodes_[to].base;
  return transition;
}

Transition* PathCache::add_leave(NodeId from, Packet packet, std::uint64_t ip, const AddressFilter& filter) {
  PathBuilder& builder = begin_path();
  const std::uint64_t begin = nodes_[from].ip;
  const bool found = packet == Packet::FUP
                         ? builder.interrupt(begin, ip)
                         : builder.leave(begin, packet == Packet::PGD ? &ip : nullptr, filter);
  if (!found) return nullptr;
  Transition& transition = add_target(from, packet, ip, 0);
  transition.path = add_path(builder);
  transition.insns = static_cast<std::uint16_t>(builder.insns);
  transition.flags = static_cast<std::uint16_t>(transition.flags | TRANSITION_OFF | calls_of(builder));
  return &transition;
}

Transition* PathCache::add_status(NodeId from, std::uint64_t ip) {
  PathBuilder& builder = begin_path();
  if (!builder.reach(nodes_[from].ip, ip)) return nullptr;
  Transition& transition = add_target(from, Packet::PSB, ip, node(ip));
  transition.path = add_path(builder);
  transition.insns = static_cast<std::uint16_t>(builder.insns);
  transition.flags = static_cast<std::uint16_t>(transition.flags | calls_of(builder));
  return &transition;
}

Transition* PathCache::target(NodeId from, Packet packet, std::uint64_t ip, const AddressFilter& filter) {
  if ((from == 0) != (packet == Packet::PGE)) return nullptr;
  if (Transition& known = tip_transitions_.find(ip, this->from(from, packet)); known.from != 0) return &known;
  if (packet == Packet::PGE) return &add_target(0, packet, ip, node(ip));
  if (packet == Packet::PSB) return add_status(from, ip);
  if (packet != Packet::TIP) return add_leave(from, packet, ip, filter);
  if (!find_exit(nodes_[from])) return nullptr;
  Transition& transition = add_target(from, packet, ip, node(ip));
  const Node& node = nodes_[from];
  transition.path = node.exit;
  transition.insns = node.exit_insns;
  transition.flags |= TRANSITION_TARGET;
  if (paths_[node.exit].depth != 0 && returns_.keeps_calls) transition.flags |= TRANSITION_CALLS;
  if (node.returns && returns_.keeps_calls) transition.flags |= TRANSITION_POPS;
  if (node.near) transition.flags |= TRANSITION_NEAR;
  return &transition;
}

std::vector<PathBranch> PathCache::branches_of(const Path& path) const {
  std::vector<PathBranch> branches;
  const PathTail& tail = tails_[path.tail];
  const PathStep* const steps = steps_.data() + path.step;
  std::uint32_t insns = 0;
  for (std::size_t i = 0; i < path.steps; ++i) {
    const BasicBlock& block = cache_.block(steps[i].block());
    const bool is_last = i + 1U == path.steps;
    if (is_last && path.part != 0) break;
    insns += block.count;
    const auto before = static_cast<std::uint16_t>(insns - 1);
    if (is_last && tail.has_branch) {
      branches.push_back({block.last_ip, tail.to, block.branch, tail.flags, before});
    } else if (block.end == Terminator::RETURN) {
      branches.push_back(
          {block.last_ip, cache_.block(steps[i + 1].block()).ip, block.branch, kTakenBranch, before});
    } else if (steps[i].taken()) {
      branches.push_back({block.last_ip, block.target, block.branch, kTakenBranch, before});
    } else if (block.end == Terminator::COND) {
      branches.push_back({block.last_ip, block.next_ip, block.branch, kBothKnown, before});
    }
  }
  return branches;
}

template <typename Visit>
void PathCache::each_block(const Path& path, const Visit& visit) const {
  for (std::size_t i = 0; i < path.steps; ++i) {
    const BasicBlock& block = cache_.block(steps_[path.step + i].block());
    const bool is_part = i + 1U == path.steps && path.part != 0;
    const auto insns = cache_.insns(block);
    visit(block, is_part ? insns.first(path.part) : insns);
  }
}

PathCache::Head PathCache::head_of(const Path& path) const {
  Head head;
  bool open = true;
  each_block(path, [&](const BasicBlock& block, std::span<const BlockInsn> insns) {
    if (!open) return;
    ++head.blocks;
    head.insns += static_cast<std::uint32_t>(insns.size());
    open = block.end == Terminator::JUMP || block.end == Terminator::CALL || block.end == Terminator::FALL;
  });
  return head;
}

void PathCache::add_path_branches(PathId id) { path_rows_.add_branches(id, branches_of(paths_[id])); }

void PathCache::add_path_branches(PathId id, const BranchChoice& choice) {
  chosen_rows(choice).add_branches(id, branches_of(paths_[id]), choice, cache_.view());
}

// Keeps the rows of the latest choices, most recent last.
PathRows& PathCache::chosen_rows(const BranchChoice& choice) {
  constexpr std::size_t kMostChoices = 4;
  const auto known = std::find_if(chosen_rows_.begin(), chosen_rows_.end(),
                                  [&choice](const auto& one) { return one.first == choice; });
  if (known != chosen_rows_.end()) {
    std::rotate(known, known + 1, chosen_rows_.end());
  } else {
    if (chosen_rows_.size() == kMostChoices) chosen_rows_.erase(chosen_rows_.begin());
    chosen_rows_.emplace_back(choice, PathRows(cache_.arena()));
  }
  return chosen_rows_.back().second;
}

void PathCache::add_path_blocks(PathId id) {
  std::vector<PathBlock> blocks;
  each_block(paths_[id], [&](const BasicBlock& block, std::span<const BlockInsn> insns) {
    blocks.push_back({block.ip, bytes_of(insns), static_cast<std::uint32_t>(insns.size())});
  });
  path_rows_.add_blocks(id, blocks, head_of(paths_[id]).blocks, branches_of(paths_[id]).size());
}

std::uint32_t PathCache::add_path_insns(PathId id) {
  const std::uint32_t first = path_insns_.begin(id, head_of(paths_[id]).insns);
  each_block(paths_[id], [&](const BasicBlock& block, std::span<const BlockInsn> insns) {
    path_insns_.add(block.ip, insns);
  });
  return first;
}

// Number of the edge at the end of a block.
std::uint32_t PathCache::step_edge(PathStep step) {
  if (step_edges_.size() <= step.value()) step_edges_.resize(cache_.block_count() * 2);
  std::uint32_t& edge = step_edges_[step.value()];
  if (edge == 0) {
    const BasicBlock& block = cache_.block(step.block());
    const bool goes_on = block.end == Terminator::FALL;
    const std::uint64_t to = step.taken() ? block.target : block.next_ip;
    edge = 1 + (goes_on ? 0 : edges_.number(block.last_ip, to, block.branch, kBothKnown));
  }
  return edge - 1;
}

// Looks up the edges of the path.
void PathCache::add_path_edges(Path& path) {
  path.edge = begin_list();
  const auto add = [this](std::uint32_t number) {
    if (number != 0) path_edges_.push_back(number);
  };
  const PathTail& tail = tails_[path.tail];
  if (path.returns) {
    std::vector<PathBranch> branches = branches_of(path);
    if (tail.has_branch && tail.is_open) branches.pop_back();  // take_target() counts its edges
    for (const PathBranch& one : branches) add(edges_.number(one.from, one.to, one.kind, one.flags));
  } else if (path.steps != 0) {
    const std::size_t steps = path.steps - (tail.has_branch || path.part != 0 ? 1U : 0U);
    for (std::size_t i = 0; i < steps; ++i) add(step_edge(steps_[path.step + i]));
    const BasicBlock& last = last_block(path);
    if (tail.has_branch && !tail.is_open) add(edges_.number(last.last_ip, tail.to, last.branch, tail.flags));
  }
  end_list(path.edge);
}

// Looks up the blocks of the path: the rows that add_path_blocks() adds.
void PathCache::add_counted_blocks(Path& path) {
  path.block = begin_list();
  if (whole_blocks_.size() < cache_.block_count()) whole_blocks_.resize(cache_.block_count());
  each_block(path, [this](const BasicBlock& block, std::span<const BlockInsn> insns) {
    const bool is_whole = insns.size() == block.count;
    std::uint32_t number = is_whole ? whole_blocks_[block.number()] : 0;
    if (number == 0) {
      const BlockSize size{bytes_of(insns), static_cast<std::uint32_t>(insns.size())};
      number = edges_.number(block.ip, size.to_ip(), counted_block(cache_.mode()), kBothKnown);
      if (is_whole) whole_blocks_[block.number()] = number;
    }
    path_edges_.push_back(number);
  });
  end_list(path.block);
}

std::uint32_t PathCache::begin_list() {
  path_edges_.push_back(0);
  return static_cast<std::uint32_t>(path_edges_.size());
}

void PathCache::end_list(std::uint32_t list) {
  EdgeIndex::fill_up(path_edges_, list);
  path_edges_[list - 1] = static_cast<std::uint32_t>(path_edges_.size()) - list;
}

// Counts the branches of the path, without the last one if its target varies, and its blocks if they are
// counted.
void PathCache::count_path(Path& path, std::uint64_t times) {
  if (path.edge == 0) add_path_edges(path);
  count_list(path.edge, times);
  if (!counts_blocks_) return;
  if (path.block == 0) add_counted_blocks(path);
  count_list(path.block, times);
}

void PathCache::note_bits(Transition& transition) {
  transition.flags &= static_cast<std::uint16_t>(~TRANSITION_NEW);
  used_.push_back(static_cast<std::uint32_t>(&transition - tnt_transitions_.all().data()));
}

void PathCache::note_target(Transition& transition) {
  transition.flags &= static_cast<std::uint16_t>(~TRANSITION_NEW);
  used_.push_back(static_cast<std::uint32_t>(&transition - tip_transitions_.all().data()) | kTargetUse);
}

void PathCache::take_bits(Transition& transition, std::uint64_t times) {
  count_path(paths_[transition.path], times);
}

void PathCache::take_target(std::size_t index, std::uint64_t times) {
  const Transition& transition = tip_transitions_.all()[index];
  Path& path = paths_[transition.path];
  count_path(path, times);
  if ((transition.flags & TRANSITION_TARGET) == 0) return;
  edges_.count(target_edge(index, path), times);
}

std::uint32_t PathCache::target_edge(std::size_t index, const Path& path) {
  if (target_edges_.size() <= index) target_edges_.resize(tip_transitions_.all().size());
  std::uint32_t& edge = target_edges_[index];
  if (edge == 0) {
    const BasicBlock& last = last_block(path);
    edge = edges_.number(last.last_ip, tip_transitions_.all()[index].ip, last.branch, kBothKnown);
  }
  return edge;
}

// Looks up the packets of a group one after the other. Returns their number; 0: not all are known.
std::size_t PathCache::find_packets(std::uint32_t base, std::uint32_t tnt, std::uint64_t ip,
                                    PacketsOfGroup& out) {
  constexpr unsigned kLeft = TRANSITION_RETURN | TRANSITION_STUCK;
  std::size_t count = 0;
  for (; tnt != 0; tnt >>= 8U) {
    const std::uint32_t bits = (tnt & 0xffU) >> 1U;
    if (bits <= 1) return 0;  // another packet
    const Transition& transition = tnt_transitions_.at(base, bits);
    if (transition.from != base || (transition.flags & kLeft) != 0) return 0;
    out[count++] = &transition;
    base = transition.next;
  }
  out[count] = TipTransitions::lookup(tip_transitions_.all().data(), target_mask(), ip, base);
  return out[count] != nullptr ? count + 1 : 0;
}

PacketGroup* PathCache::add_group(std::uint32_t base, std::uint32_t tnt, std::uint64_t ip) {
  if (groups_.full() || group_numbers_ > kMostGroupNumbers) return nullptr;
  PacketsOfGroup packets{};
  const std::size_t count = find_packets(base, tnt, ip, packets);
  if (count == 0) return nullptr;
  if (groups_.must_grow()) {
    count_groups();
    groups_.grow();
  }
  PacketGroup* const group = groups_.add(ip, tnt, base);
  if (group != nullptr) add_group_list(*group, std::span(packets).first(count));
  return group;
}

// Looks up the edges of a group that has been added.
void PathCache::add_group_list(PacketGroup& group, std::span<const Transition* const> packets) {
  for (const Transition* one : packets) {
    group.insns += one->insns;
    if (Path& path = paths_[one->path]; path.edge == 0) add_path_edges(path);
  }
  const Transition& tip = *packets.back();
  group.next = tip.next;
  const auto index = static_cast<std::size_t>(&tip - tip_transitions_.all().data());
  const std::uint32_t last = target_edge(index, paths_[tip.path]);
  group.list = begin_list();
  const auto add = [this](std::uint32_t number) {
    if (number >= EdgeIndex::kSpare) path_edges_.push_back(number);
  };
  for (const Transition* one : packets) {
    const std::uint32_t list = paths_[one->path].edge;
    const std::uint32_t end = list + path_edges_[list - 1];
    for (std::uint32_t at = list; at < end; ++at) add(path_edges_[at]);
  }
  add(last);
  end_list(group.list);
  group_numbers_ += path_edges_[group.list - 1];
}

void PathCache::count_groups() {
  groups_.take_noted([this](PacketGroup& group) { count_list(group.list, std::exchange(group.count, 0)); });
}

template <typename Visit>
void PathCache::each_noted(const Visit& visit) {
  if (!used_lost_) {
    for (const std::uint32_t id : used_) visit(id & ~kTargetUse, (id & kTargetUse) != 0);
  } else {
    for (std::size_t i = 0; i < tnt_transitions_.all().size(); ++i) visit(i, false);
    for (std::size_t i = 0; i < tip_transitions_.all().size(); ++i) visit(i, true);
  }
  used_.clear();
  used_lost_ = false;
}

// Moves the counts of transitions to edges.
void PathCache::count_transitions() {
  count_groups();
  each_noted([this](std::size_t index, bool is_target) {
    Transition& transition = is_target ? tip_transitions_.all()[index] : tnt_transitions_.all()[index];
    if ((transition.flags & TRANSITION_NEW) != 0) return;
    transition.flags |= TRANSITION_NEW;
    const std::uint32_t times = std::exchange(transition.count, 0);
    if (times == 0) return;  // it has just been carried
    if (is_target) {
      take_target(index, times);
    } else {
      take_bits(transition, times);
    }
  });
}

void PathCache::clear_counts() noexcept {
  each_noted([this](std::size_t index, bool is_target) {
    Transition& transition = is_target ? tip_transitions_.all()[index] : tnt_transitions_.all()[index];
    transition.flags |= TRANSITION_NEW;
    transition.count = 0;
  });
  groups_.take_noted([](PacketGroup& group) { group.count = 0; });
  edges_.take().take_each([](const EdgeCount&, std::uint64_t) {});
}

}  // namespace ptkit::flow
