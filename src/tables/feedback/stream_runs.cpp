#include "tables/feedback/stream_runs.h"

#include <algorithm>
#include <utility>

namespace ptkit::tables::feedback {
namespace {

using columns::Column;

constexpr std::size_t kPartRows = std::size_t{1} << 16U;

[[nodiscard]] columns::ColumnMask bit(Column column) noexcept {
  return columns::ColumnMask{1} << columns::index_of(column);
}

[[nodiscard]] columns::Request request_of(const StreamRuns::Input& input, bool times) {
  using enum Column;
  columns::Request request;
  request.table = columns::TableId::branches;
  for (const Column column : {branches_from_ip, branches_to_ip, branches_kind, branches_flags,
                              branches_instruction, branches_number})
    request.mask = column == branches_from_ip ? bit(column) : request.mask | bit(column);
  if (times) request.mask |= bit(branches_tsc) | bit(branches_tsc_error);
  request.time = times || (input.window && input.window->by == columns::PhasesBy::TIME);
  request.marks = true;
  request.select_sides = input.select_sides;
  request.selection.pids = input.owners.pids;
  request.selection.tids = input.owners.tids;
  request.selection.spaces = input.owners.spaces;
  request.selection.branches.not_taken = false;
  if (input.window) {
    request.bins = {input.window->begin, input.window->end};
    request.phases_by = input.window->by;
  }
  return request;
}

[[nodiscard]] bool changes(const trace::TraceBundle& bundle) {
  return std::ranges::any_of(bundle.code, [](const trace::CodeRegion& region) {
    return region.tsc_from != trace::kTscMin || region.tsc_to != trace::kTscMax;
  });
}

// Whether the branch is an instruction at from_ip.
[[nodiscard]] bool is_instruction(std::uint8_t kind, std::uint8_t flags) noexcept {
  const auto branch = static_cast<flow::BranchKind>(kind);
  return (flags & flow::FROM_KNOWN) != 0 && branch != flow::BranchKind::ASYNC &&
         branch != flow::BranchKind::TX_ABORT && branch != flow::BranchKind::UNKNOWN;
}

}  // namespace

StreamRuns::StreamRuns(Input input, FileRuns& runs)
    : runs_(runs),
      views_(input.image),
      by_owner_(input.owners.by_context()),
      has_times_(changes(*input.reader.bundle)),
      has_window_(input.window.has_value()),
      is_active_(!has_window_),
      reader_(std::move(input.reader), request_of(input, has_times_)),
      budget_(std::move(input.budget)) {}

StreamRuns::~StreamRuns() {
  if (budget_ != nullptr) static_cast<void>(budget_->report_bytes(share_, 0, 0));
}

StreamRuns::Step StreamRuns::step() {
  std::unique_ptr<columns::Batch> rows;
  const Step answer = reader_.step_part(kPartRows, rows);
  if (answer != Step::READY && answer != Step::END) return answer;
  feed(*rows);
  count_losses();
  if (!has_memory()) return Step::NO_ROOM;
  if (answer == Step::READY) return Step::MORE;
  if (!by_owner_) now_ = reader_.instructions();
  if (!has_ended_) close(Row{.instruction = now_}, now_, false);
  runs_.flush();
  return Step::END;
}

// The runs are going to be copied once.
bool StreamRuns::has_memory() {
  if (budget_ == nullptr) return true;
  return budget_->report_bytes(share_, runs_.bytes(), runs_.bytes()) != columns::RowBudget::Answer::STOP;
}

void StreamRuns::count_losses() {
  const auto rows_of = [](const std::unique_ptr<columns::Batch>& batch) {
    return batch == nullptr ? 0 : batch->rows();
  };
  const std::size_t errors = rows_of(reader_.take_errors());
  runs_.add_losses(errors, rows_of(reader_.take_gaps()));
}

void StreamRuns::feed(columns::Batch& rows) {
  using enum Column;
  const auto* const from = rows.cells<branches_from_ip>();
  const auto* const to = rows.cells<branches_to_ip>();
  const auto* const kind = rows.cells<branches_kind>();
  const auto* const flags = rows.cells<branches_flags>();
  const auto* const instruction = rows.counts<branches_instruction>();
  const auto* const tsc = rows.cells<branches_tsc>();
  const auto* const tsc_error = rows.cells<branches_tsc_error>();
  std::size_t next_run = 0;
  for (std::size_t i = 0; i < rows.rows() && !has_ended_; ++i) {
    while (next_run < rows.runs().size() && rows.runs()[next_run].row <= i)
      space_ = rows.runs()[next_run++].space;
    Row row{from[i], to[i], instruction[i], 0, 0, kind[i], flags[i]};
    if (tsc != nullptr) row.tsc = tsc[i];
    if (tsc_error != nullptr) row.tsc_error = tsc_error[i];
    now_ = row.instruction;
    take(row);
  }
}

void StreamRuns::take(const Row& row) {
  if (row.kind >= columns::MARK_ENABLED) return take_mark(row);
  take_branch(row);
}

void StreamRuns::take_branch(const Row& row) {
  const bool by_branch = is_instruction(row.kind, row.flags);
  // The first branch after a gap may be an address without its code: it is no instruction of a run.
  const bool is_counted = by_branch && !is_after_gap_;
  const std::uint64_t after = row.instruction + (is_counted ? 1 : 0);
  close(row, after, is_counted);
  now_ = after;
  forget(after);
  is_after_gap_ = false;
  if (by_branch) {
    run_.flags = RUN_FROM;
    run_.kind = static_cast<flow::BranchKind>(row.kind);
    run_.from_ip = row.from_ip;
    run_.from_view = view_at(row, row.from_ip);
    const bool is_known = (row.flags & flow::PREDICTION_KNOWN) != 0;
    const bool is_right = (row.flags & flow::PREDICTED) != 0;
    executions_ = {1, is_known && !is_right ? 1U : 0U, is_known ? 1U : 0U};
  }
  if ((row.flags & flow::TO_KNOWN) == 0) return;
  run_.flags |= RUN_BEGIN;
  run_.begin = row.to_ip;
}

void StreamRuns::take_mark(const Row& row) {
  switch (row.kind) {
    case columns::MARK_ENABLED:
    case columns::MARK_STATUS:
      close(row, row.instruction, false);
      forget(row.instruction);
      is_after_gap_ = false;
      run_.flags = RUN_BEGIN;
      run_.begin = row.to_ip;
      return;
    case columns::MARK_DISABLED:
      close(row, row.instruction, false);
      return forget(row.instruction);
    case columns::MARK_GAP:
      close(row, row.instruction, false);
      forget(row.instruction);
      is_after_gap_ = (row.flags & flow::TO_KNOWN) == 0;
      if (is_after_gap_) return;
      run_.flags = RUN_BEGIN;
      run_.begin = row.to_ip;
      return;
    case columns::MARK_LEAVE:
      if (!by_owner_) return;
      close(row, row.instruction, false);
      return forget(row.instruction);
    case columns::MARK_CONTEXT:  // instructions before it are those of other owners
      if (by_owner_ && run_.flags == 0) first_ = row.instruction;
      return;
    case columns::MARK_LIMIT:
      if (row.to_ip == 0) {
        is_active_ = true;
        run_.flags &= static_cast<std::uint8_t>(~RUN_FROM);
        if (run_.flags == 0) first_ = row.instruction;
      } else {
        close(row, first_, false);  // the branch counts, its run does not
        is_active_ = false;
        has_ended_ = true;
      }
      return;
    default:
      return;
  }
}

// Nothing is known of the next instructions.
void StreamRuns::forget(std::uint64_t instruction) noexcept {
  run_ = {};
  executions_ = {1, 0, 0};
  first_ = instruction;
}

// Ends the open run after so many instructions of the stream, at a branch or not.
void StreamRuns::close(const Row& row, std::uint64_t instruction, bool by_branch) {
  const std::uint64_t instructions = instruction - std::min(first_, instruction);
  if (!is_active_ || (instructions == 0 && (run_.flags & RUN_FROM) == 0)) return;
  if (run_.flags == 0) return runs_.add_unknown(instructions);
  Run run = run_;
  run.instructions = instructions;
  if ((run.flags & RUN_BEGIN) != 0) {
    run.view = view_at(row, run.begin);
    if (by_branch) {
      run.flags |= RUN_END;
      run.end = row.from_ip;
    }
  }
  runs_.add(run, executions_);
}

// The code that the row executed at an address.
const code::image::CodeView* StreamRuns::view_at(const Row& row, std::uint64_t ip) {
  using code::symbol::kLastTime;
  if (!has_times_) return &views_.at(space_, kLastTime);
  code::symbol::RowTimes times{trace::kTscMin, kLastTime, true};
  if ((row.flags & flow::TIME_KNOWN) != 0) {
    times.first = std::min(row.tsc, kLastTime);
    times.second = times.first + std::min<std::uint64_t>(row.tsc_error, kLastTime - times.first);
    times.backwards = false;
  }
  const code::image::CodeView& first = views_.at(space_, times.first);
  if (code::symbol::covers(first, times.second)) return &first;
  const code::image::CodeView* const found = views_.with_code(first, times, ip);
  return found == nullptr ? &first : found;
}

}  // namespace ptkit::tables::feedback
