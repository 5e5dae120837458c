#include "flow/decision_graph.h"

#include <bit>
#include <utility>

#include "flow/walker.h"

namespace ptkit::flow {

namespace {

constexpr std::uint8_t kBoth = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;

// What a way does to the call stack.
std::uint8_t calls_of(const WayBuilder& builder) noexcept {
  return builder.depth != 0 ? std::uint8_t{CELL_CALLS} : std::uint8_t{0};
}

}  // namespace

DecisionGraph::DecisionGraph(BlockCache& cache, bool return_compression)
    : cache_(cache),
      return_compression_(return_compression),
      builder_(std::make_unique<WayBuilder>(cache)),
      bit_cells_(cache.arena()),
      target_cells_(cache.arena()),
      nodes_(1, cache.arena()),
      nodes_by_ip_(cache.arena()),
      ways_(1, cache.arena()),
      tails_(2, cache.arena()),
      steps_(cache.arena()),
      pushed_(cache.arena()),
      edges_(cache.arena()),
      step_counts_(cache.arena()),
      used_steps_(cache.arena()),
      step_edges_(cache.arena()),
      target_edges_(cache.arena()),
      row_edges_(cache.arena()),
      used_(cache.arena()),
      way_rows_(cache.arena()),
      way_insns_(cache.arena()) {
  tails_[kOpenTail] = {.flags = kWent, .has_branch = true, .is_open = true};
  nodes_[0].base = bit_cells_.add_node(0);
}

DecisionGraph::~DecisionGraph() = default;

WayBuilder& DecisionGraph::begin_way() {
  builder_->clear();
  return *builder_;
}

std::size_t DecisionGraph::bytes() const noexcept {
  std::size_t chosen = 0;
  for (const auto& [choice, rows] : chosen_rows_) chosen += rows.bytes();
  return chosen + bit_cells_.bytes() + target_cells_.bytes() + nodes_.capacity() * sizeof(Node) +
         nodes_by_ip_.bytes() + ways_.capacity() * sizeof(Way) + tails_.capacity() * sizeof(WayTail) +
         steps_.capacity() * sizeof(PathStep) +
         (pushed_.capacity() + step_counts_.capacity()) * sizeof(std::uint64_t) + edges_.bytes() +
         (row_edges_.capacity() + step_edges_.capacity() + used_steps_.capacity() + target_edges_.capacity() +
          used_.capacity()) *
             sizeof(std::uint32_t) +
         way_rows_.bytes() + way_insns_.bytes();
}

NodeId DecisionGraph::node(std::uint64_t ip) {
  const auto is_there = [this, ip](std::uint32_t id) noexcept { return nodes_[id].ip == ip; };
  if (const std::uint32_t found = nodes_by_ip_.find(ip, is_there); found != IpIndex::kNone) return found;
  const auto id = static_cast<NodeId>(nodes_.size());
  Node node;
  node.ip = ip;
  node.base = bit_cells_.add_node(id);
  nodes_.push_back(node);
  nodes_by_ip_.put(ip, id);
  return id;
}

WayId DecisionGraph::add_way(const WayBuilder& builder) {
  Way way;
  way.step = static_cast<std::uint32_t>(steps_.size());
  way.push = static_cast<std::uint32_t>(pushed_.size());
  way.steps = static_cast<std::uint16_t>(builder.steps.size());
  way.part = static_cast<std::uint16_t>(builder.part);
  way.pushes = static_cast<std::uint8_t>(builder.calls.size());
  way.depth = static_cast<std::uint8_t>(builder.depth);
  way.returns = builder.returns;
  if (builder.tail.has_branch || builder.tail.end_ip != 0) {
    way.tail = static_cast<std::uint32_t>(tails_.size());
    tails_.push_back(builder.tail);
  }
  steps_.insert(steps_.end(), builder.steps.begin(), builder.steps.end());
  pushed_.insert(pushed_.end(), builder.calls.begin(), builder.calls.end());
  ways_.push_back(way);
  return static_cast<WayId>(ways_.size() - 1);
}

Cell* DecisionGraph::bits(NodeId from, std::uint32_t bits) {
  if (Cell& known = bit_cells_.at(nodes_[from].base, bits); known.from == nodes_[from].base) return &known;
  WayBuilder& builder = begin_way();
  const WayEnd end = builder.bits(nodes_[from].ip, bits, return_compression_);
  if (end == WayEnd::STUCK && builder.used == 0) return nullptr;
  if (end != WayEnd::USED) {
    const auto count = static_cast<unsigned>(std::bit_width(bits)) - 1;
    const std::uint32_t first = bits >> (count - builder.used);
    builder.clear();
    static_cast<void>(builder.bits(nodes_[from].ip, first, return_compression_));
  }
  const NodeId next = node(builder.end_ip);
  const std::uint32_t base = nodes_[from].base;
  Cell& cell = bit_cells_.add(from, nodes_[from].base, bits);
  if (nodes_[from].base != base) used_lost_ = !used_.empty();
  cell.next = nodes_[next].base;
  cell.way = add_way(builder);
  cell.insns = static_cast<std::uint16_t>(builder.insns);
  cell.used = static_cast<std::uint8_t>(builder.used);
  cell.flags = end == WayEnd::RETURN ? CELL_RETURN : end == WayEnd::STUCK ? CELL_STUCK : 0;
  if (builder.depth == 1 && builder.calls.size() == 1) {
    cell.ip = builder.calls.front();
    cell.flags |= CELL_CALL;
  } else {
    cell.flags |= calls_of(builder);
  }
  // Whoever pops the target wants to go there.
  if (end == WayEnd::RETURN && !find_exit(nodes_[next])) {
    cell.flags = static_cast<std::uint8_t>((cell.flags & ~CELL_RETURN) | CELL_STUCK);
  }
  return &cell;
}

bool DecisionGraph::find_exit(Node& node) {
  if (node.exit != 0) return true;
  WayBuilder& builder = begin_way();
  Run* run = &cache_.at(node.ip);
  if (!builder.path(run) || run->end == RunEnd::COND) return false;
  if (run->pushes && !builder.push(run->next_ip)) return false;
  node.exit = add_way(builder);
  ways_.back().tail = kOpenTail;
  node.exit_insns = static_cast<std::uint16_t>(builder.insns);
  node.returns = run->end == RunEnd::RETURN;
  node.near = run->end == RunEnd::INDIRECT;
  return true;
}

Cell& DecisionGraph::add_target(NodeId from, Packet packet, std::uint64_t ip, NodeId to) {
  if (target_cells_.make_room()) {
    used_lost_ = !used_.empty();
    target_edges_.clear();
  }
  Cell& cell = target_cells_.find(ip, this->from(from, packet));
  target_cells_.took_free();
  cell.ip = ip;
  cell.from = this->from(from, packet);
  cell.next = nodes_[to].base;
  return cell;
}

Cell* DecisionGraph::add_leave(NodeId from, Packet packet, std::uint64_t ip, const AddressFilter& filter) {
  WayBuilder& builder = begin_way();
  if (!builder.leave(nodes_[from].ip, packet == Packet::PGD ? &ip : nullptr, filter)) return nullptr;
  Cell& cell = add_target(from, packet, ip, 0);
  cell.way = add_way(builder);
  cell.insns = static_cast<std::uint16_t>(builder.insns);
  cell.flags = static_cast<std::uint8_t>(CELL_OFF | calls_of(builder));
  return &cell;
}

Cell* DecisionGraph::add_status(NodeId from, std::uint64_t ip) {
  WayBuilder& builder = begin_way();
  if (!builder.reach(nodes_[from].ip, ip)) return nullptr;
  Cell& cell = add_target(from, Packet::PSB, ip, node(ip));
  cell.way = add_way(builder);
  cell.insns = static_cast<std::uint16_t>(builder.insns);
  return &cell;
}

Cell* DecisionGraph::target(NodeId from, Packet packet, std::uint64_t ip, const AddressFilter& filter) {
  if ((from == 0) != (packet == Packet::PGE)) return nullptr;
  if (Cell& known = target_cells_.find(ip, this->from(from, packet)); known.from != 0) return &known;
  if (packet == Packet::PGE) return &add_target(0, packet, ip, node(ip));
  if (packet == Packet::PSB) return add_status(from, ip);
  if (packet != Packet::TIP) return add_leave(from, packet, ip, filter);
  if (!find_exit(nodes_[from])) return nullptr;
  Cell& cell = add_target(from, packet, ip, node(ip));
  const Node& node = nodes_[from];
  cell.way = node.exit;
  cell.insns = node.exit_insns;
  cell.flags = CELL_TARGET;
  if (ways_[node.exit].depth != 0) cell.flags |= CELL_CALLS;
  if (node.returns) cell.flags |= CELL_POPS;
  if (node.near) cell.flags |= CELL_NEAR;
  return &cell;
}

std::vector<WayBranch> DecisionGraph::branches_of(const Way& way) const {
  std::vector<WayBranch> branches;
  const WayTail& tail = tails_[way.tail];
  const PathStep* const steps = steps_.data() + way.step;
  std::uint32_t insns = 0;
  for (std::size_t i = 0; i < way.steps; ++i) {
    const Run& run = cache_.run(steps[i].run());
    const bool is_last = i + 1U == way.steps;
    if (is_last && way.part != 0) break;
    insns += run.count;
    const auto before = static_cast<std::uint16_t>(insns - 1);
    if (is_last && tail.has_branch) {
      branches.push_back({run.last_ip, tail.to, run.branch, tail.flags, before});
    } else if (run.end == RunEnd::RETURN) {
      branches.push_back({run.last_ip, cache_.run(steps[i + 1].run()).ip, run.branch, kWent, before});
    } else if (steps[i].taken()) {
      branches.push_back({run.last_ip, run.target, run.branch, kWent, before});
    } else if (run.end == RunEnd::COND) {
      branches.push_back({run.last_ip, run.next_ip, run.branch, kBoth, before});
    }
  }
  return branches;
}

template <typename Visit>
void DecisionGraph::each_block(const Way& way, const Visit& visit) const {
  for (std::size_t i = 0; i < way.steps; ++i) {
    const Run& run = cache_.run(steps_[way.step + i].run());
    const bool is_part = i + 1U == way.steps && way.part != 0;
    const auto insns = cache_.insns(run);
    visit(run, is_part ? insns.first(way.part) : insns);
  }
}

DecisionGraph::Head DecisionGraph::head_of(const Way& way) const {
  Head head;
  bool open = true;
  each_block(way, [&](const Run& run, std::span<const BlockInsn> insns) {
    if (!open) return;
    ++head.blocks;
    head.insns += static_cast<std::uint32_t>(insns.size());
    open = run.end == RunEnd::JUMP || run.end == RunEnd::CALL || run.end == RunEnd::FALL;
  });
  return head;
}

void DecisionGraph::add_way_branches(WayId id) { way_rows_.add_branches(id, branches_of(ways_[id])); }

void DecisionGraph::add_way_branches(WayId id, const BranchChoice& choice) {
  chosen_rows(choice).add_branches(id, branches_of(ways_[id]), choice);
}

// The last choices that were asked for are kept, the newest behind.
WayRows& DecisionGraph::chosen_rows(const BranchChoice& choice) {
  constexpr std::size_t kMostChoices = 4;
  const auto known = std::find_if(chosen_rows_.begin(), chosen_rows_.end(),
                                  [&choice](const auto& one) { return one.first == choice; });
  if (known != chosen_rows_.end()) {
    std::rotate(known, known + 1, chosen_rows_.end());
  } else {
    if (chosen_rows_.size() == kMostChoices) chosen_rows_.erase(chosen_rows_.begin());
    chosen_rows_.emplace_back(choice, WayRows(cache_.arena()));
  }
  return chosen_rows_.back().second;
}

void DecisionGraph::add_way_blocks(WayId id) {
  std::vector<WayBlock> blocks;
  each_block(ways_[id], [&](const Run& run, std::span<const BlockInsn> insns) {
    std::uint32_t bytes = 0;
    for (const BlockInsn& insn : insns) bytes += insn.size;
    blocks.push_back({run.ip, bytes, static_cast<std::uint32_t>(insns.size())});
  });
  way_rows_.add_blocks(id, blocks, head_of(ways_[id]).blocks);
}

std::uint32_t DecisionGraph::add_way_insns(WayId id) {
  const std::uint32_t first = way_insns_.begin(id, head_of(ways_[id]).insns);
  each_block(ways_[id],
             [&](const Run& run, std::span<const BlockInsn> insns) { way_insns_.add(run.ip, insns); });
  return first;
}

// Counts the branches of a way that resolves returns.
void DecisionGraph::count_returning(Way& way, std::uint64_t times) {
  if (way.edge == 0) {
    way.edge = static_cast<std::uint32_t>(row_edges_.size()) + 1;
    const std::vector<WayBranch> branches = branches_of(way);
    row_edges_.push_back(static_cast<std::uint32_t>(branches.size()));
    for (const WayBranch& one : branches) {
      row_edges_.push_back(edges_.number(one.from, one.to, one.kind, one.flags));
    }
  }
  const std::size_t rows = row_edges_[way.edge - 1];
  for (std::size_t i = 0; i < rows; ++i) edges_.count(row_edges_[way.edge + i], times);
}

// The edges that lie in the steps of the ways that were counted.
void DecisionGraph::count_steps() {
  for (const std::uint32_t value : used_steps_) {
    std::uint32_t& edge = step_edges_[value];
    if (edge == 0) {
      const PathStep step(value);
      const Run& run = cache_.run(step.run());
      const bool goes_on = run.end == RunEnd::FALL;
      const std::uint64_t to = step.taken() ? run.target : run.next_ip;
      edge = 1 + (goes_on ? 0 : edges_.number(run.last_ip, to, run.branch, kBoth));
    }
    edges_.count(edge - 1, std::exchange(step_counts_[value], 0));
  }
  used_steps_.clear();
}

// Counts the way's branches, without the last one if its target is not its own.
void DecisionGraph::count_way(Way& way, std::uint64_t times) {
  if (way.steps == 0) return;
  WayTail& tail = tails_[way.tail];
  if (way.returns) return count_returning(way, times);
  if (step_counts_.size() < cache_.run_count() * 2) {
    step_counts_.resize(cache_.run_count() * 2);
    step_edges_.resize(step_counts_.size());
  }
  const std::size_t steps = way.steps - (tail.has_branch || way.part != 0 ? 1U : 0U);
  for (std::size_t i = 0; i < steps; ++i) {
    const std::uint32_t value = steps_[way.step + i].value();
    if (step_counts_[value] == 0) used_steps_.push_back(value);
    step_counts_[value] += times;
  }
  if (!tail.has_branch || tail.is_open) return;
  if (tail.edge == 0) {
    const Run& last = last_run(way);
    tail.edge = edges_.number(last.last_ip, tail.to, last.branch, tail.flags) + 1;
  }
  edges_.count(tail.edge - 1, times);
}

void DecisionGraph::note_bits(const Cell& cell) {
  used_.push_back(static_cast<std::uint32_t>(&cell - bit_cells_.all().data()));
}

void DecisionGraph::note_target(const Cell& cell) {
  used_.push_back(static_cast<std::uint32_t>(&cell - target_cells_.all().data()) | kTargetUse);
}

void DecisionGraph::take_bits(Cell& cell, std::uint64_t times) { count_way(ways_[cell.way], times); }

void DecisionGraph::take_target(std::size_t index, std::uint64_t times) {
  const Cell& cell = target_cells_.all()[index];
  Way& way = ways_[cell.way];
  count_way(way, times);
  if ((cell.flags & CELL_TARGET) == 0) return;
  if (target_edges_.size() <= index) target_edges_.resize(target_cells_.all().size());
  std::uint32_t& edge = target_edges_[index];
  if (edge == 0) {
    const Run& last = last_run(way);
    edge = edges_.number(last.last_ip, cell.ip, last.branch, kBoth);
  }
  edges_.count(edge, times);
}

std::span<const EdgeCount> DecisionGraph::take_counts(bool in_order) {
  Cells& bits = bit_cells_.all();
  Cells& targets = target_cells_.all();
  const auto take = [&](std::size_t index, bool target) {
    Cell& cell = target ? targets[index] : bits[index];
    const std::uint32_t times = std::exchange(cell.count, 0);
    if (times == 0) return;
    if (target) {
      take_target(index, times);
    } else {
      take_bits(cell, times);
    }
  };
  if (!in_order && !used_lost_) {
    for (const std::uint32_t id : used_) take(id & ~kTargetUse, (id & kTargetUse) != 0);
  } else {
    for (std::size_t i = 0; i < bits.size(); ++i) take(i, false);
    for (std::size_t i = 0; i < targets.size(); ++i) take(i, true);
  }
  count_steps();
  used_.clear();
  used_lost_ = false;
  return in_order ? edges_.take() : edges_.take_unordered();
}

}  // namespace ptkit::flow
