#include "calls/stream_calls.h"

#include <utility>

namespace ptkit::calls {
namespace {

using columns::Batch;
using columns::Column;

constexpr std::size_t kPartRows = std::size_t{1} << 16U;

template <Column... COLUMNS>
constexpr columns::ColumnMask mask_of() noexcept {
  return ((columns::ColumnMask{1} << columns::index_of(COLUMNS)) | ...);
}

[[nodiscard]] columns::Request request_of(const StreamCalls::Input& input) {
  using enum Column;
  columns::Request request;
  request.table = columns::TableId::branches;
  request.mask = mask_of<branches_from_ip, branches_to_ip, branches_kind, branches_flags, branches_offset,
                         branches_instruction, branches_number>();
  if (input.time) request.mask |= mask_of<branches_tsc, branches_tsc_error>();
  request.time = input.time;
  request.side_tables = false;
  request.marks = true;
  request.selection = input.selection;
  if (input.jumps != nullptr) {
    request.selection.branches.jumps = input.jumps;
    for (const auto kind : {flow::BranchKind::COND, flow::BranchKind::JUMP})
      request.selection.branches.kinds &= ~(1U << static_cast<unsigned>(kind));
  }
  return request;
}

[[nodiscard]] Owner owner_of(const columns::Run& run) noexcept {
  Owner owner;
  if ((run.flags & columns::CPU_KNOWN) != 0) owner.cpu = run.cpu;
  if ((run.flags & columns::TID_KNOWN) != 0) {
    owner.pid = run.pid;
    owner.tid = run.tid;
  }
  owner.space = run.space;
  return owner;
}

}  // namespace

StreamCalls::StreamCalls(Input input, FrameSink& sink)
    : groups_(input.by, functions_),
      facts_(input.image, input.symbols, functions_),
      machine_(facts_, sink, input.tails, input.by == By::FUNCTION ? nullptr : &groups_) {
  const columns::Request request = request_of(input);
  reader_ = std::make_unique<columns::TableReader>(std::move(input.reader), request);
}

StreamCalls::Step StreamCalls::step() {
  using Answer = columns::TableReader::Step;
  const Answer answer = reader_->step(kPartRows);
  if (answer == Answer::MORE) return Step::MORE;
  if (answer != Answer::READY && answer != Answer::END) return Step::NO_MEMORY;
  const bool ends = answer == Answer::END;
  const auto rows = reader_->take(ends ? SIZE_MAX : kPartRows);
  if (rows == nullptr) return Step::NO_MEMORY;
  feed(*rows);
  if (!ends) return Step::MORE;
  last_.place.instructions = reader_->instructions();
  last_.place.branches = reader_->branches();
  machine_.finish(last_.place);
  return Step::END;
}

void StreamCalls::feed(Batch& rows) {
  using enum Column;
  const auto* const from = rows.cells<branches_from_ip>();
  const auto* const to = rows.cells<branches_to_ip>();
  const auto* const kind = rows.cells<branches_kind>();
  const auto* const flags = rows.cells<branches_flags>();
  const auto* const offset = rows.cells<branches_offset>();
  const auto* const instruction = rows.cells<branches_instruction>();
  const auto* const number = rows.cells<branches_number>();
  const auto* const tsc = rows.cells<branches_tsc>();
  const auto* const tsc_error = rows.cells<branches_tsc_error>();
  std::size_t next_run = 0;
  calls::Step& step = last_;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    step.place.instructions = instruction[row];
    step.place.branches = number[row];
    step.place.offset = offset[row];
    step.place.time_known = (flags[row] & flow::TIME_KNOWN) != 0;
    if (tsc != nullptr && tsc_error != nullptr) {
      step.place.tsc = tsc[row];
      step.place.tsc_error = tsc_error[row];
    }
    if (next_run < rows.runs().size() && rows.runs()[next_run].row <= row) {
      owner_ = owner_of(rows.runs()[next_run++]);
      machine_.on_owner(owner_, step.place);
    }
    step.from_ip = from[row];
    step.to_ip = to[row];
    step.flags = flags[row];
    switch (kind[row]) {
      case columns::MARK_ENABLED:
        machine_.on_enabled(step.to_ip, step.place);
        break;
      case columns::MARK_STATUS:
        machine_.on_status(step.to_ip, step.place);
        break;
      case columns::MARK_GAP:
        machine_.on_gap(step.place);
        break;
      case columns::MARK_LEAVE:
        machine_.on_leave(step.place);
        break;
      case columns::MARK_CONTEXT:
        machine_.on_owner(owner_, step.place);
        break;
      default:
        step.kind = static_cast<flow::BranchKind>(kind[row]);
        machine_.on_branch(step);
    }
  }
}

}  // namespace ptkit::calls
