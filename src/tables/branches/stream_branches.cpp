#include "tables/branches/stream_branches.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ptkit::tables::branches {
namespace {

using columns::Column;

constexpr std::size_t kPartRows = std::size_t{1} << 16U;

[[nodiscard]] columns::Request request_of(const StreamBranches::Input& input) {
  using enum Column;
  columns::Request request;
  request.table = columns::TableId::branches;
  request.mask = 0;
  // Rows with marks come in bulk only with both of their numbers.
  for (const Column column : {branches_from_ip, branches_to_ip, branches_kind, branches_flags,
                              branches_instruction, branches_number})
    request.mask |= columns::ColumnMask{1} << columns::index_of(column);
  request.time = input.window && input.window->by == columns::PhasesBy::TIME;
  request.marks = true;
  request.selection = input.selection;
  if (input.window) {
    request.bins = {input.window->begin, input.window->end};
    request.phases_by = input.window->by;
    request.select_sides = !input.window->needs_sides;
  }
  return request;
}

[[nodiscard]] bool is_one_of_several(const StreamBranches::Input& input) {
  const auto& streams = input.reader.bundle->streams;
  return streams.size() > 1 && !streams[input.reader.streams.front()].switches.empty();
}

[[nodiscard]] auto key_of(const BranchRuns& one) noexcept { return std::pair(one.space, one.ip); }

}  // namespace

void BranchTotals::add_all(BranchTotals&& others) {
  std::vector<BranchRuns> merged;
  merged.reserve(conditional.size() + others.conditional.size());
  auto next = conditional.begin();
  for (BranchRuns& one : others.conditional) {
    while (next != conditional.end() && key_of(*next) < key_of(one)) merged.push_back(std::move(*next++));
    if (next != conditional.end() && key_of(*next) == key_of(one)) {
      next->add_all(one);
      merged.push_back(std::move(*next++));
    } else {
      merged.push_back(std::move(one));
    }
  }
  std::move(next, conditional.end(), std::back_inserter(merged));
  conditional = std::move(merged);
  for (const columns::Edge& edge : others.indirect.edges()) indirect.add(edge);
  has_gaps = has_gaps || others.has_gaps;
}

StreamBranches::StreamBranches(Input input)
    : is_one_of_several_(is_one_of_several(input)),
      is_active_(!input.window),
      reader_(std::move(input.reader), request_of(input)),
      budget_(std::move(input.budget)) {
  follow(owner_);
}

StreamBranches::~StreamBranches() {
  if (budget_ != nullptr) static_cast<void>(budget_->report_bytes(share_, 0, 0));
}

StreamBranches::Step StreamBranches::step() {
  std::unique_ptr<columns::Batch> rows;
  const Step answer = reader_.step_part(kPartRows, rows);
  if (answer != Step::READY && answer != Step::END) return answer;
  feed(*rows);
  if (budget_ != nullptr &&
      budget_->report_bytes(share_, outcomes_.bytes(), 0) == columns::RowBudget::Answer::STOP)
    return Step::NO_ROOM;
  return answer == Step::END ? Step::END : Step::MORE;
}

void StreamBranches::follow(const columns::OwnerRun& run) {
  const bool has_thread = (run.flags & columns::TID_KNOWN) != 0;
  outcomes_.follow(has_thread ? run.pid : trace::kNoId, has_thread ? run.tid : trace::kNoId, run.space,
                   is_one_of_several_ && !run.same_owner(owner_));
  owner_ = run;
}

void StreamBranches::feed(columns::Batch& rows) {
  using enum Column;
  const auto* const from = rows.cells<branches_from_ip>();
  const auto* const to = rows.cells<branches_to_ip>();
  const auto* const kind = rows.cells<branches_kind>();
  const auto* const flags = rows.cells<branches_flags>();
  auto next_run = rows.runs().begin();
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (; next_run != rows.runs().end() && next_run->row <= row; ++next_run) follow(*next_run);
    if (kind[row] >= columns::MARK_ENABLED) [[unlikely]] {
      if (kind[row] == columns::MARK_LIMIT) is_active_ = to[row] == 0;
      if (kind[row] != columns::MARK_GAP || !is_active_) continue;
      outcomes_.cut();
      has_gaps_ = true;
      continue;
    }
    if (!is_active_ || (flags[row] & flow::FROM_KNOWN) == 0) continue;
    const auto branch = static_cast<flow::BranchKind>(kind[row]);
    if (branch == flow::BranchKind::COND) {
      outcomes_.add(from[row], (flags[row] & flow::TAKEN) != 0);
    } else if (branch == flow::BranchKind::CALL_INDIRECT || branch == flow::BranchKind::JUMP_INDIRECT) {
      const bool is_known = (flags[row] & flow::TO_KNOWN) != 0;
      indirect_.add(
          {from[row], is_known ? to[row] : 0, 1, owner_.space, is_known ? branch : flow::half_edge(branch)});
    }
  }
}

BranchTotals StreamBranches::take() {
  BranchTotals totals;
  totals.conditional = outcomes_.take();
  totals.indirect = std::move(indirect_);
  totals.has_gaps = has_gaps_;
  return totals;
}

}  // namespace ptkit::tables::branches
