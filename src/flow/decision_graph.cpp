#include "flow/decision_graph.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "flow/walker.h"

namespace ptkit::flow {

namespace {

constexpr std::uint8_t kBoth = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;

constexpr std::size_t kFirstSlots = 1024;  // a power of two

// Longer ways are left to the Walker: those of one packet together stay far below what WalkBudget allows.
constexpr std::uint32_t kMostInsns = 1024;
constexpr std::size_t kMostSteps = 256;
constexpr std::size_t kMostDepth = 32;

}  // namespace

// A way while it is being found. Mirrors Walker: use_bits(), walk_to_decision() and leave().
class DecisionGraph::Builder {
 public:
  explicit Builder(BlockCache& cache) : cache_(cache) {}

  struct Row {
    std::uint64_t from;
    std::uint64_t to;
    BranchKind kind;
    std::uint8_t flags;
  };
  void clear() {
    steps.clear();
    noted.clear();
    rows.clear();
    calls.clear();
    depth = 0;
    insns = 0;
    used = 0;
  }
  [[nodiscard]] bool block(const Run& run) { return part(run, run.count, run.size); }
  [[nodiscard]] bool part(const Run& run, std::uint32_t count, std::uint32_t size) {
    if (count == 0) return true;
    insns += count;
    if (insns > kMostInsns || steps.size() == kMostSteps) return false;
    noted.push_back(&run);
    steps.push_back({run.first, static_cast<std::uint16_t>(count), static_cast<std::uint16_t>(size)});
    return true;
  }
  void row(std::uint64_t from, std::uint64_t to, BranchKind kind, std::uint8_t flags) {
    rows.push_back({from, to, kind, flags});
  }
  [[nodiscard]] bool push(std::uint64_t return_ip) {
    calls.push_back(return_ip);
    depth = std::max(depth, calls.size());
    return depth <= kMostDepth;
  }
  // Goes past the end of a run that needs no packet.
  [[nodiscard]] bool step(Run*& run) {
    if (run->end == RunEnd::FALL) {
      run = &cache_.next(*run);
      return true;
    }
    row(run->last_ip, run->target, run->branch, kWent);
    if (run->pushes && !push(run->next_ip)) return false;
    run = &cache_.target(*run);
    return true;
  }
  // To the next decision, whose block is part of it.
  [[nodiscard]] bool path(Run*& run) {
    for (;;) {
      if (run->end == RunEnd::FAIL || !block(*run)) return false;
      if (run->end != RunEnd::JUMP && run->end != RunEnd::CALL && run->end != RunEnd::FALL) return true;
      if (!step(run)) return false;
    }
  }
  [[nodiscard]] WayEnd bits(std::uint64_t ip, std::uint32_t bits, bool return_compression);
  [[nodiscard]] bool leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter,
                           Leave& out);

  std::vector<Step> steps;
  std::vector<const Run*> noted;
  std::vector<Row> rows;
  std::vector<std::uint64_t> calls;
  std::size_t depth = 0;
  std::uint32_t insns = 0;
  unsigned used = 0;         // bits
  std::uint64_t end_ip = 0;  // bits: behind the last that was used

 private:
  void leave_at_branch(const Run& run, const std::uint64_t* ip, const AddressFilter& filter, Leave& out);
  [[nodiscard]] std::uint32_t count_to(const Run& run, std::uint64_t ip) const;
  [[nodiscard]] bool has_cr3_write(const Run& run) const;

  BlockCache& cache_;
};

// Walker::use_bits(). If not all bits can be used, what lies behind the last of them may be there, too.
WayEnd DecisionGraph::Builder::bits(std::uint64_t ip, std::uint32_t bits, bool return_compression) {
  Run* run = &cache_.at(ip);
  end_ip = ip;
  for (std::uint32_t next = std::bit_floor(bits) >> 1U; next != 0; next >>= 1U) {
    const bool bit = (bits & next) != 0;
    if (!path(run)) return WayEnd::STUCK;
    if (run->end == RunEnd::COND) {
      row(run->last_ip, bit ? run->target : run->next_ip, BranchKind::COND, bit ? kWent : kBoth);
      run = bit ? &cache_.target(*run) : &cache_.next(*run);
    } else if (run->end == RunEnd::RETURN && return_compression && bit) {
      if (calls.empty()) return WayEnd::RETURN;
      const std::uint64_t target = calls.back();
      calls.pop_back();
      row(run->last_ip, target, BranchKind::RETURN, kWent);
      run = &cache_.at(target);
    } else {
      return WayEnd::STUCK;
    }
    end_ip = run->ip;
    ++used;
  }
  return WayEnd::USED;
}

// Instructions of the run before `ip`; 0 if none of them is at `ip`.
std::uint32_t DecisionGraph::Builder::count_to(const Run& run, std::uint64_t ip) const {
  if (ip - run.ip >= run.size) return 0;
  std::uint64_t at = run.ip;
  std::uint32_t count = 0;
  for (const BlockInsn& insn : cache_.insns(run)) {
    if (at >= ip) break;
    at += insn.size;
    ++count;
  }
  return at == ip ? count : 0;
}

bool DecisionGraph::Builder::has_cr3_write(const Run& run) const {
  const auto insns_of_run = cache_.insns(run);
  return std::any_of(insns_of_run.begin(), insns_of_run.end(),
                     [](const BlockInsn& insn) { return is_anchor(insn, Anchor::CR3_WRITE); });
}

void DecisionGraph::Builder::leave_at_branch(const Run& run, const std::uint64_t* ip,
                                             const AddressFilter& filter, Leave& out) {
  const LeavingBranch branch = leaving_branch(run, ip, filter);
  row(run.last_ip, branch.to, run.branch, branch.flags);
  out.resume_ip = branch.resume_ip;
  out.end_ip = branch.to;
}

// Walker::leave()
bool DecisionGraph::Builder::leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter,
                                   Leave& out) {
  Run* run = &cache_.at(from);
  for (;;) {
    out.resume_ip = out.end_ip = run->ip;
    if (ip != nullptr && run->ip == *ip) return true;
    if (run->end == RunEnd::FAIL) return false;
    if (ip == nullptr && has_cr3_write(*run)) return false;
    if (const std::uint32_t count = ip != nullptr ? count_to(*run, *ip) : 0; count != 0) {
      out.resume_ip = out.end_ip = *ip;
      return part(*run, count, static_cast<std::uint32_t>(*ip - run->ip));
    }
    if (!block(*run)) return false;
    if (run->end != RunEnd::JUMP && run->end != RunEnd::CALL && run->end != RunEnd::FALL) {
      leave_at_branch(*run, ip, filter, out);
      return true;
    }
    const bool left = ip == nullptr && leaves_filter(*run, filter);
    if (!step(run)) return false;
    if (left) {
      out.resume_ip = 0;
      out.end_ip = run->ip;
      return true;
    }
  }
}

DecisionGraph::DecisionGraph(BlockCache& cache, bool return_compression)
    : cache_(cache),
      return_compression_(return_compression),
      builder_(std::make_unique<Builder>(cache)),
      cells_(kRowCells),
      nodes_(1),
      ways_(1),
      row_edges_(1),
      hops_(kFirstSlots),
      leaves_(kFirstSlots) {}

DecisionGraph::~DecisionGraph() = default;

DecisionGraph::Builder& DecisionGraph::begin_way() {
  builder_->clear();
  return *builder_;
}

std::size_t DecisionGraph::bytes() const noexcept {
  return cells_.capacity() * sizeof(Cell) + nodes_.capacity() * sizeof(Node) +
         ways_.capacity() * sizeof(Way) + groups_.capacity() * sizeof(RowGroup) +
         steps_.capacity() * sizeof(Step) +
         (pushed_.capacity() + insn_ips_.capacity()) * sizeof(std::uint64_t) + edges_.bytes() +
         (row_edges_.capacity() + used_.capacity()) * sizeof(std::uint32_t) + hops_.capacity() * sizeof(Hop) +
         leaves_.capacity() * sizeof(Leave) + insn_sizes_.capacity() + insn_classes_.capacity() +
         way_insns_.bytes();
}

DecisionGraph::Hop& DecisionGraph::find_hop(NodeId from, std::uint64_t ip) {
  for (std::size_t at = place(from, ip, hops_.size());; at = (at + 1) & (hops_.size() - 1)) {
    Hop& slot = hops_[at];
    if (slot.next == 0) return add_hop(from, ip);
    if (slot.node == from && slot.ip == ip) return slot;
  }
}

DecisionGraph::Hop& DecisionGraph::add_hop(NodeId from, std::uint64_t ip) {
  NodeId next = 0;
  if (from != 0) {
    next = hop(0, ip).next;
  } else {
    next = static_cast<NodeId>(nodes_.size());
    nodes_.push_back({ip, 0, 0});
  }
  if ((hop_count_ + 1) * 2 > hops_.size()) {
    used_lost_ = !used_.empty();
    std::vector<Hop> old(hops_.size() * 2);
    old.swap(hops_);
    for (const Hop& one : old) {
      if (one.next == 0) continue;
      std::size_t at = place(one.node, one.ip, hops_.size());
      while (hops_[at].next != 0) at = (at + 1) & (hops_.size() - 1);
      hops_[at] = one;
    }
  }
  std::size_t at = place(from, ip, hops_.size());
  while (hops_[at].next != 0) at = (at + 1) & (hops_.size() - 1);
  hops_[at] = {ip, 0, from, next, 0};
  ++hop_count_;
  return hops_[at];
}

std::uint32_t DecisionGraph::row_of(NodeId id) {
  Node& node = nodes_[id];
  if (node.row == 0) {
    node.row = static_cast<std::uint32_t>(cells_.size() / kRowCells);
    cells_.resize(cells_.size() + kRowCells);
  }
  return node.row;
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

WayId DecisionGraph::add_way(const Builder& builder, NodeId next, WayEnd end) {
  Way way;
  way.next = next;
  way.group = static_cast<std::uint32_t>(groups_.size());
  way.step = static_cast<std::uint32_t>(steps_.size());
  way.push = static_cast<std::uint32_t>(pushed_.size());
  way.rows = static_cast<std::uint16_t>(builder.rows.size());
  way.steps = static_cast<std::uint16_t>(builder.steps.size());
  way.insns = static_cast<std::uint16_t>(builder.insns);
  way.pushes = static_cast<std::uint8_t>(builder.calls.size());
  way.depth = static_cast<std::uint8_t>(builder.depth);
  way.bits = static_cast<std::uint8_t>(builder.used);
  way.end = end;
  for (std::size_t i = 0; i < builder.rows.size(); ++i) {
    const std::size_t at = i % RowGroup::kRows;
    if (at == 0) groups_.emplace_back();
    const Builder::Row& row = builder.rows[i];
    groups_.back().from[at] = row.from;
    groups_.back().to[at] = row.to;
    groups_.back().kind[at] = static_cast<std::uint8_t>(row.kind);
    groups_.back().flags[at] = row.flags;
  }
  // Whole groups are copied, even of a way that has no rows.
  if (builder.rows.empty()) groups_.emplace_back();
  for (const Run* run : builder.noted) note(*run);
  steps_.insert(steps_.end(), builder.steps.begin(), builder.steps.end());
  pushed_.insert(pushed_.end(), builder.calls.begin(), builder.calls.end());
  ways_.push_back(way);
  return static_cast<WayId>(ways_.size() - 1);
}

DecisionGraph::Cell DecisionGraph::bits(NodeId from, std::uint32_t bits) {
  const std::size_t at = std::size_t{row_of(from)} * kRowCells + bits;
  if (cells_[at].way == 0) {
    Builder& builder = begin_way();
    const WayEnd end = builder.bits(nodes_[from].ip, bits, return_compression_);
    if (end == WayEnd::STUCK && builder.used == 0) return {};
    if (end != WayEnd::USED) {
      const auto count = static_cast<unsigned>(std::bit_width(bits)) - 1;
      const std::uint32_t first = bits >> (count - builder.used);
      builder.clear();
      static_cast<void>(builder.bits(nodes_[from].ip, first, return_compression_));
    }
    const NodeId next = node(builder.end_ip);
    cells_[at].way = add_way(builder, next, end) | (end == WayEnd::USED ? 0 : kPartial);
  }
  // The next node may have got its row since.
  cells_[at].row = nodes_[ways_[cells_[at].way & ~kPartial].next].row;
  return cells_[at];
}

WayId DecisionGraph::exit(NodeId from) {
  if (nodes_[from].exit != 0) return nodes_[from].exit;
  Builder& builder = begin_way();
  Run* run = &cache_.at(nodes_[from].ip);
  if (!builder.path(run) || run->end == RunEnd::COND) return 0;
  builder.row(run->last_ip, 0, run->branch, kWent);
  if (run->pushes && !builder.push(run->next_ip)) return 0;
  nodes_[from].exit = add_way(builder, 0, run->end == RunEnd::RETURN ? WayEnd::RETURN : WayEnd::INDIRECT);
  return nodes_[from].exit;
}

std::size_t DecisionGraph::leave_place(NodeId from, std::uint64_t ip, bool known) const noexcept {
  std::size_t at = place(from, ip + (known ? 1 : 0), leaves_.size());
  for (;; at = (at + 1) & (leaves_.size() - 1)) {
    const Leave& slot = leaves_[at];
    if (slot.node == 0 || (slot.node == from && slot.ip == ip && slot.ip_known == known)) return at;
  }
}

void DecisionGraph::add_leave(const Leave& leave) {
  if ((leave_count_ + 1) * 2 > leaves_.size()) {
    std::vector<Leave> old(leaves_.size() * 2);
    old.swap(leaves_);
    for (const Leave& one : old) {
      if (one.node != 0) leaves_[leave_place(one.node, one.ip, one.ip_known)] = one;
    }
  }
  leaves_[leave_place(leave.node, leave.ip, leave.ip_known)] = leave;
  ++leave_count_;
}

const DecisionGraph::Leave* DecisionGraph::leave(NodeId from, const std::uint64_t* ip,
                                                 const AddressFilter& filter) {
  const std::uint64_t key = ip != nullptr ? *ip : 0;
  std::size_t at = leave_place(from, key, ip != nullptr);
  if (leaves_[at].node == 0) {
    Builder& builder = begin_way();
    Leave leave;
    leave.node = from;
    leave.ip = key;
    leave.ip_known = ip != nullptr;
    if (!builder.leave(nodes_[from].ip, ip, filter, leave)) return nullptr;
    leave.way = add_way(builder, 0, WayEnd::LEFT);
    add_leave(leave);
    at = leave_place(from, key, ip != nullptr);
  }
  return &leaves_[at];
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

void DecisionGraph::note_use(const Way& way) {
  used_.push_back(static_cast<std::uint32_t>(&way - ways_.data()));
}

void DecisionGraph::note_use(const Hop& hop) {
  used_.push_back(static_cast<std::uint32_t>(&hop - hops_.data()) | kHopUse);
}

void DecisionGraph::take_way(Way& way) {
  if (way.count != 0) count_rows(way, way.rows, std::exchange(way.count, 0));
}

void DecisionGraph::take_hop(Hop& hop) {
  if (hop.count == 0) return;
  Way& way = ways_[nodes_[hop.node].exit];
  const std::size_t last = way.rows - 1U;
  count_rows(way, last, hop.count);
  if (hop.edge == 0) {
    const RowGroup& group = groups_[way.group + last / RowGroup::kRows];
    const std::size_t at = last % RowGroup::kRows;
    hop.edge =
        edges_.number(group.from[at], hop.ip, static_cast<BranchKind>(group.kind[at]), group.flags[at]);
  }
  edges_.count(hop.edge, std::exchange(hop.count, 0));
}

const std::vector<EdgeCount>& DecisionGraph::take_counts(bool in_order) {
  if (!in_order && !used_lost_) {
    for (const std::uint32_t id : used_) {
      if ((id & kHopUse) != 0) {
        take_hop(hops_[id & ~kHopUse]);
      } else {
        take_way(ways_[id]);
      }
    }
  } else {
    for (Way& way : ways_) take_way(way);
    for (Hop& hop : hops_) take_hop(hop);
  }
  used_.clear();
  used_lost_ = false;
  return in_order ? edges_.take() : edges_.take_unordered();
}

}  // namespace ptkit::flow
