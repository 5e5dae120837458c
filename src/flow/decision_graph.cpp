#include "flow/decision_graph.h"

#include <bit>
#include <utility>

#include "flow/walker.h"

namespace ptkit::flow {

namespace {

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
      nodes_(1),
      ways_(1),
      leaves_(1),
      groups_(1),
      row_edges_(1) {
  nodes_[0].base = bit_cells_.add_node(0);
}

DecisionGraph::~DecisionGraph() = default;

WayBuilder& DecisionGraph::begin_way() {
  builder_->clear();
  return *builder_;
}

std::size_t DecisionGraph::bytes() const noexcept {
  return bit_cells_.bytes() + target_cells_.bytes() + nodes_.capacity() * sizeof(Node) +
         nodes_by_ip_.bytes() + ways_.capacity() * sizeof(Way) + leaves_.capacity() * sizeof(Leave) +
         groups_.capacity() * sizeof(RowGroup) + steps_.capacity() * sizeof(Step) +
         (pushed_.capacity() + insn_ips_.capacity()) * sizeof(std::uint64_t) + edges_.bytes() +
         (row_edges_.capacity() + target_edges_.capacity() + used_.capacity()) * sizeof(std::uint32_t) +
         insn_sizes_.capacity() + insn_classes_.capacity() + way_insns_.bytes();
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

void DecisionGraph::note(const Run& run) {
  const std::size_t end = std::size_t{run.first} + run.count;
  if (insn_ips_.size() < end) {
    insn_ips_.resize(end);
    insn_sizes_.resize(end);
    insn_classes_.resize(end);
  }
  std::uint64_t ip = run.ip;
  std::size_t at = run.first;
  for (const BlockInsn& insn : cache_.insns(run)) {
    insn_ips_[at] = ip;
    insn_sizes_[at] = insn.size;
    insn_classes_[at] = static_cast<std::uint8_t>(insn.cls);
    ip += insn.size;
    ++at;
  }
}

WayId DecisionGraph::add_way(const WayBuilder& builder) {
  Way way;
  way.group = static_cast<std::uint32_t>(groups_.size());
  way.step = static_cast<std::uint32_t>(steps_.size());
  way.push = static_cast<std::uint32_t>(pushed_.size());
  way.rows = static_cast<std::uint16_t>(builder.rows.size());
  way.steps = static_cast<std::uint16_t>(builder.steps.size());
  way.pushes = static_cast<std::uint8_t>(builder.calls.size());
  way.depth = static_cast<std::uint8_t>(builder.depth);
  for (std::size_t i = 0; i < builder.rows.size(); ++i) {
    const std::size_t at = i % RowGroup::kRows;
    if (at == 0) groups_.emplace_back();
    const WayBuilder::Row& row = builder.rows[i];
    groups_.back().from[at] = row.from;
    groups_.back().to[at] = row.to;
    groups_.back().kind[at] = static_cast<std::uint8_t>(row.kind);
    groups_.back().flags[at] = row.flags;
  }
  // Whole groups are copied, even of a way that has no rows.
  if (builder.rows.empty()) way.group = 0;
  for (const Run* run : builder.noted) note(*run);
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
  builder.row(run->last_ip, 0, run->branch, kWent);
  if (run->pushes && !builder.push(run->next_ip)) return false;
  node.exit = add_way(builder);
  node.exit_insns = static_cast<std::uint16_t>(builder.insns);
  node.returns = run->end == RunEnd::RETURN;
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
  Leave leave;
  if (!builder.leave(nodes_[from].ip, packet == Packet::PGD ? &ip : nullptr, filter, leave)) return nullptr;
  Cell& cell = add_target(from, packet, ip, 0);
  cell.way = add_way(builder);
  cell.insns = static_cast<std::uint16_t>(builder.insns);
  cell.flags = static_cast<std::uint8_t>(CELL_OFF | calls_of(builder));
  ways_.back().leave = static_cast<std::uint32_t>(leaves_.size());
  leaves_.push_back(leave);
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
  return &cell;
}

// The first `rows` of the way, so many times.
void DecisionGraph::count_rows(Way& way, std::size_t rows, std::uint64_t times) {
  if (way.edge == 0) {
    way.edge = static_cast<std::uint32_t>(row_edges_.size());
    for (std::size_t i = 0; i < rows; ++i) {
      const RowGroup& group = groups_[way.group + i / RowGroup::kRows];
      const std::size_t at = i % RowGroup::kRows;
      row_edges_.push_back(edges_.number(group.from[at], group.to[at],
                                         static_cast<BranchKind>(group.kind[at]), group.flags[at]));
    }
  }
  for (std::size_t i = 0; i < rows; ++i) edges_.count(row_edges_[way.edge + i], times);
}

void DecisionGraph::note_bits(const Cell& cell) {
  used_.push_back(static_cast<std::uint32_t>(&cell - bit_cells_.all().data()));
}

void DecisionGraph::note_target(const Cell& cell) {
  used_.push_back(static_cast<std::uint32_t>(&cell - target_cells_.all().data()) | kTargetUse);
}

void DecisionGraph::take_bits(Cell& cell, std::uint64_t times) {
  Way& way = ways_[cell.way];
  count_rows(way, way.rows, times);
}

void DecisionGraph::take_target(std::size_t index, std::uint64_t times) {
  const Cell& cell = target_cells_.all()[index];
  Way& way = ways_[cell.way];
  if ((cell.flags & CELL_TARGET) == 0) return count_rows(way, way.rows, times);
  const std::size_t last = way.rows - 1U;
  count_rows(way, last, times);
  if (target_edges_.size() <= index) target_edges_.resize(target_cells_.all().size());
  std::uint32_t& edge = target_edges_[index];
  if (edge == 0) {
    const RowGroup& group = groups_[way.group + last / RowGroup::kRows];
    const std::size_t at = last % RowGroup::kRows;
    edge = edges_.number(group.from[at], cell.ip, static_cast<BranchKind>(group.kind[at]), group.flags[at]);
  }
  edges_.count(edge, times);
}

const std::vector<EdgeCount>& DecisionGraph::take_counts(bool in_order) {
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
  used_.clear();
  used_lost_ = false;
  return in_order ? edges_.take() : edges_.take_unordered();
}

}  // namespace ptkit::flow
