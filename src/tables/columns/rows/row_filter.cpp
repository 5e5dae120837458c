#include "tables/columns/rows/row_filter.h"

#include <algorithm>

namespace ptkit::tables::columns {
namespace {

template <typename Id>
[[nodiscard]] bool has_any(const std::vector<Id>& wanted, Id id) noexcept {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), id) != wanted.end();
}

}  // namespace

void RowFilter::follow(const flow::Context& context) noexcept {
  space_ = context.space;
  context_selected_ = has_any(selection_.pids, context.pid) && has_any(selection_.tids, context.tid) &&
                      has_any(selection_.spaces, context.space);
}

bool RowFilter::selects(const packet::Packet& packet) const noexcept {
  if (!context_selected_) return false;
  return !by_ip() || selects_end((packet.flags & packet::Packet::IP_KNOWN) != 0, packet.ip);
}

bool RowFilter::chooses(const flow::Branch& branch) const noexcept {
  const flow::BranchChoice& choice = selection_.branches;
  const bool tested = choice.jumps != nullptr && (branch.flags & flow::TAKEN) != 0;
  return context_selected_ && (tested || choice.has(branch.kind, branch.flags));
}

bool RowFilter::selects(const flow::Branch& branch) const noexcept {
  if (!chooses(branch)) return false;
  return !by_ip() || selects_end((branch.flags & flow::FROM_KNOWN) != 0, branch.from_ip) ||
         selects_end((branch.flags & flow::TO_KNOWN) != 0, branch.to_ip);
}

bool RowFilter::selects(const flow::Event& event) const noexcept {
  const bool is_chosen = (selection_.event_kinds >> static_cast<unsigned>(event.kind) & 1U) != 0;
  if (!context_selected_ || !is_chosen) return false;
  return !by_ip() || selects_end((event.flags & flow::EV_IP_KNOWN) != 0, event.ip);
}

bool RowFilter::selects(const flow::FlowError& error) const noexcept {
  if (!context_selected_) return false;
  return !by_ip() || selects_end(error.ip_known, error.ip);
}

bool RowFilter::selects(const flow::Gap& gap) const noexcept {
  if (!context_selected_) return false;
  return !by_ip() || selects_end((gap.flags & flow::FROM_KNOWN) != 0, gap.from_ip) ||
         selects_end((gap.flags & flow::TO_KNOWN) != 0, gap.to_ip);
}

}  // namespace ptkit::tables::columns
