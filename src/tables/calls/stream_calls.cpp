#include "tables/calls/stream_calls.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace ptkit::tables::calls {
namespace {

using tables::columns::Batch;
using tables::columns::Column;

constexpr std::size_t kPartRows = std::size_t{1} << 16U;
constexpr std::uint64_t kMostNoted = std::uint64_t{1} << 14U;  // open frames
constexpr std::uint64_t kFramesPerByte = 64;  // of a stream, that a file may claim: more than was ever seen

template <Column... COLUMNS>
constexpr tables::columns::ColumnMask mask_of() noexcept {
  return ((tables::columns::ColumnMask{1} << tables::columns::index_of(COLUMNS)) | ...);
}

[[nodiscard]] tables::columns::Request request_of(const StreamCalls::Input& input, bool time) {
  using enum Column;
  tables::columns::Request request;
  request.table = tables::columns::TableId::branches;
  request.mask = mask_of<branches_from_ip, branches_to_ip, branches_kind, branches_flags, branches_offset,
                         branches_instruction, branches_number>();
  if (time) request.mask |= mask_of<branches_tsc, branches_tsc_error>();
  request.time = time;
  request.marks = true;
  if (input.window) {
    request.bins = {input.window->begin, input.window->end};
    request.phases_by = input.window->by;
    request.select_sides = !input.window->needs_sides;
  }
  request.selection = input.selection;
  if (input.inlines != nullptr) {
    request.selection.branches.not_taken = false;
  } else if (input.jumps != nullptr) {
    request.selection.branches.jumps = input.jumps;
    for (const auto kind : {flow::BranchKind::COND, flow::BranchKind::JUMP})
      request.selection.branches.kinds &= ~(1U << static_cast<unsigned>(kind));
  }
  return request;
}

[[nodiscard]] Owner owner_of(const tables::columns::OwnerRun& run) noexcept {
  Owner owner;
  if ((run.flags & tables::columns::CPU_KNOWN) != 0) owner.cpu = run.cpu;
  if ((run.flags & tables::columns::TID_KNOWN) != 0) {
    owner.pid = run.pid;
    owner.tid = run.tid;
  }
  owner.space = run.space;
  return owner;
}

// Stacks of the stream's processes may go on in other streams, in threads that are not selected, or in code
// that a filter leaves out.
[[nodiscard]] bool shares_stacks(const StreamCalls::Input& input) {
  const trace::Configuration& configuration = input.reader.bundle->configuration;
  const bool is_filtered = !configuration.space_ranges.empty() ||
                           std::ranges::any_of(configuration.ranges, [](const trace::AddressRange& range) {
                             return range.kind != trace::RangeKind::OFF;
                           });
  if (is_filtered) return true;
  const auto& streams = input.reader.bundle->streams;
  const trace::Stream& own = streams[input.reader.streams.front()];
  return input.selection.by_context() || std::ranges::any_of(streams, [&own](const trace::Stream& other) {
           const bool is_known = own.pid != trace::kNoId && other.pid != trace::kNoId;
           return &other != &own && (!is_known || other.pid == own.pid);
         });
}

// Segments [first, last) that have the rows of a window, and its limits.
[[nodiscard]] tables::columns::SegmentRun segments_of(const flow::index::StreamIndex& stream,
                                                      const StreamCalls::Input::Window& window) {
  const std::vector<flow::index::Segment>& segments = stream.segments;
  const bool by_time = window.by == tables::columns::PhasesBy::TIME;
  const auto end_of = [&](std::size_t i) {
    return i + 1 < segments.size() ? segments[i + 1].instructions : stream.rows.instructions;
  };
  const auto is_before = [&](std::size_t i) {
    const flow::index::Segment& one = segments[i];
    if (!by_time) return end_of(i) <= window.begin;
    return (one.flags & flow::index::Segment::TIMES_KNOWN) == 0 || one.tsc_most < window.begin;
  };
  // Rows of it have the end before them, unless none has a time: then later segments are read.
  const auto is_behind = [&](std::size_t i) {
    const flow::index::Segment& one = segments[i];
    if (!by_time) return one.instructions > window.end;
    const bool has_times =
        (one.flags & flow::index::Segment::TIMES_KNOWN) != 0 && end_of(i) > one.instructions;
    return has_times && one.tsc_least >= window.end;
  };
  tables::columns::SegmentRun found;
  while (found.first < segments.size() && is_before(found.first)) ++found.first;
  found.last = found.first;
  while (found.last < segments.size() && !is_behind(found.last)) ++found.last;
  found.last = std::min(found.last + 1, segments.size());  // has the end
  return found;
}

[[nodiscard]] std::optional<PythonFrames> python_frames(const StreamCalls::Input& input,
                                                        const FunctionTable& functions, FrameSink& sink) {
  std::optional<PythonFrames> frames;
  if (input.frames != FrameView::NATIVE) frames.emplace(input.frames, functions, input.symbols, sink);
  return frames;
}

}  // namespace

StreamCalls::StreamCalls(Input input, FrameSink& sink)
    : groups_(functions_),
      facts_(input.image, input.symbols, functions_),
      python_(python_frames(input, functions_, sink)),
      sink_(python_ ? *python_ : sink),
      machine_(facts_, sink_, input.tails, input.all_groups ? &groups_ : nullptr),
      probe_(input.probe),
      switches_(machine_, *this),
      moves_(*input.reader.bundle, input.reader.streams.front()),
      follows_switches_(!input.selection.by_context()),
      budget_(std::move(input.budget)),
      window_(input.window),
      noted_states_(input.noted),
      index_(input.reader.index),
      stream_(input.reader.streams.front()) {
  machine_.set_probe(probe_);
  machine_.set_moves(&moves_);
  machine_.set_shares_stacks(shares_stacks(input));
  if (window_) machine_.set_window();
  if (!window_ && !python_ && input.inlines == nullptr) machine_.give_callers();
  // The first rows of the stream are of a selected thread only if a row names it.
  if (!follows_switches_) machine_.on_leave({});
  if (python_) groups_.hide([this](std::uint32_t function) { return python_->hides(function); });
  if (input.inlines != nullptr) {
    inlines_ = std::make_unique<DebugInlines>(input.image, *input.inlines, functions_);
    machine_.set_inlines(inlines_.get());
  }
  if (noted_states_ != nullptr) note_state(0, 0);
  if (input.states != nullptr) input.reader.segments = resume(*input.states, input.reader);
  const bool by_time = input.window && input.window->by == tables::columns::PhasesBy::TIME;
  const tables::columns::Request request = request_of(input, input.time || by_time || !moves_.empty());
  const std::size_t threads =
      std::exchange(input.reader.threads, std::max<std::size_t>(input.reader.threads, 2) - 1);
  const std::uint64_t bytes = input.reader.bundle->streams[stream_].data.size();
  reader_ = std::make_unique<tables::columns::TableReader>(std::move(input.reader), request);
  if (!is_before_) read_ahead(threads, bytes);
}

void StreamCalls::read_ahead(std::size_t threads, std::uint64_t bytes) {
  constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 14U;  // that are worth a thread
  if (threads < 2 || bytes < kLeastBytes) return;
  errors_ = reader_->take_errors();
  gaps_ = reader_->take_gaps();
  if (errors_ == nullptr || gaps_ == nullptr) throw std::bad_alloc();
  try {
    ahead_ = std::make_unique<RowsAhead>(*reader_, kPartRows);
  } catch (const std::system_error&) {  // no thread: they are read in turn
    errors_.reset();
    gaps_.reset();
  }
}

std::unique_ptr<Batch> StreamCalls::take_all(std::unique_ptr<Batch>& rows) {
  auto rest = rows->successor();
  return rest == nullptr ? nullptr : std::exchange(rows, std::move(rest));
}

// READY or END with the next rows.
StreamCalls::Read StreamCalls::read(std::unique_ptr<Batch>& rows) {
  if (ahead_ == nullptr) {
    const Read answer = reader_->step(kPartRows);
    const bool ends = answer == Read::END;
    if (ends || answer == Read::READY) rows = reader_->take(ends ? SIZE_MAX : kPartRows, false);
    return answer;
  }
  std::optional<RowsAhead::Part> part = ahead_->take();
  if (!part) return Read::MORE;
  rows = std::move(part->rows);
  if (rows == nullptr) return part->step;
  const bool is_good = errors_->append(std::move(*part->errors)) && gaps_->append(std::move(*part->gaps));
  return is_good ? part->step : Read::NO_MEMORY;
}

// The sink keeps its frames, for which its user reports.
StreamCalls::~StreamCalls() {
  if (budget_ != nullptr) static_cast<void>(budget_->report_bytes(share_, 0, 0));
}

// Frames that are open are going to be the sink's, too, and the functions those of all streams. A stack that
// grows has its frames twice.
bool StreamCalls::has_memory(bool ends) {
  if (budget_ == nullptr) return true;
  if (!ends && rows_unchecked_ < kPartRows) return true;
  rows_unchecked_ = 0;
  const StackMachine::OpenFrames open = machine_.open_frames();
  const std::uint64_t functions = functions_.bytes() + groups_.bytes();
  const FrameCounts counts{
      .ids = machine_.frames(), .open = open.frames, .groups = std::max(functions_.size(), groups_.size())};
  const std::uint64_t bytes = facts_.bytes() + functions + open.bytes + sink_.bytes();
  const std::uint64_t later = functions + open.frames * sizeof(OpenFrame) + sink_.later_bytes(counts);
  return budget_->report_bytes(share_, bytes, later) != tables::columns::RowBudget::Answer::STOP;
}

StreamCalls::Step StreamCalls::step() {
  if (is_before_) return Step::END;
  std::unique_ptr<Batch> rows;
  const Read answer = read(rows);
  if (answer == Read::MORE) return Step::MORE;
  if (rows == nullptr) return Step::NO_MEMORY;
  const bool ends = answer == Read::END;
  feed(*rows);
  rows_unchecked_ += rows->rows();
  if (!has_memory(ends)) return Step::NO_ROOM;
  const bool is_behind = window_ && !window_->needs_sides && machine_.has_ended();
  if (is_behind) {
    ahead_.reset();
    return Step::END;
  }
  if (!ends) return Step::MORE;
  if (std::exchange(is_held_, false)) pass();
  switches_.finish();
  StreamPosition end = row_.step.position;
  end.instructions = end.stream_instructions = reader_->instructions();
  end.branches = reader_->branches() + branches_before_;
  machine_.decide_open();
  if (probe_ != nullptr) probe_->at_end(end, machine_, owner_);
  if (!machine_.has_ended()) machine_.finish(end);
  if (noted_states_ != nullptr) noted_states_->set_frames(machine_.frames());
  if (!has_memory(true)) return Step::NO_ROOM;
  // Its user has all frames: no more memory is needed for them.
  if (budget_ != nullptr) static_cast<void>(budget_->report_bytes(share_, share_.side_bytes, 0));
  return Step::END;
}

void StreamCalls::feed(Batch& rows) {
  using enum Column;
  const auto* const from = rows.cells<branches_from_ip>();
  const auto* const to = rows.cells<branches_to_ip>();
  const auto* const kind = rows.cells<branches_kind>();
  const auto* const flags = rows.cells<branches_flags>();
  const auto* const offset = rows.cells<branches_offset>();
  const auto* const instruction = rows.counts<branches_instruction>();
  const auto* const number = rows.counts<branches_number>();
  const auto* const tsc = rows.cells<branches_tsc>();
  const auto* const tsc_error = rows.cells<branches_tsc_error>();
  const auto position_of = [&](std::size_t row) {
    StreamPosition position;
    position.instructions = position.stream_instructions = instruction[row];
    position.branches = number[row] + branches_before_;
    position.offset = offset[row];
    position.time_known = (flags[row] & flow::TIME_KNOWN) != 0;
    if (tsc != nullptr && tsc_error != nullptr) {
      position.tsc = tsc[row];
      position.tsc_error = tsc_error[row];
    }
    return position;
  };
  const auto is_return = [&](std::size_t row) {
    return kind[row] == static_cast<std::uint8_t>(flow::BranchKind::RETURN);
  };
  // Whether packets are disabled where the row before this one leads to.
  const auto ends_code = [&](std::size_t row) {
    while (row + 1 < rows.rows() && kind[row] == tables::columns::MARK_LIMIT) ++row;
    return kind[row] == tables::columns::MARK_DISABLED &&
           instruction[row] == row_.step.position.instructions + 1;
  };
  const StreamPosition before = row_.step.position;
  if (rows.rows() != 0 && std::exchange(is_held_, false)) {
    row_.step.leaves = ends_code(0);
    pass();
  }
  std::size_t next_run = 0;
  std::size_t first = 0;
  if (first_offset_ != 0) [[unlikely]] {
    while (first < rows.rows() && offset[first] < first_offset_) ++first;
    for (; next_run < rows.runs().size() && rows.runs()[next_run].row < first; ++next_run)
      noted_ = owner_of(rows.runs()[next_run]);
    if (first == rows.rows()) return;
    first_offset_ = 0;
    branches_before_ -= number[first];
  }
  const auto position_before = [&](std::size_t row) { return row == first ? before : position_of(row - 1); };
  const auto run_row = [&] { return next_run < rows.runs().size() ? rows.runs()[next_run].row : SIZE_MAX; };
  // Gives rows from `row` on to the machine while they are plain. Returns the row after them.
  const auto take_plain = [&](std::size_t row) {
    const std::size_t end = std::min<std::size_t>(rows.rows(), run_row());
    const std::size_t begin = row;
    for (; row < end && offset[row] < next_begin_ && kind[row] < tables::columns::MARK_ENABLED; ++row) {
      const PlainBranch branch{from[row], to[row], static_cast<flow::BranchKind>(kind[row]), flags[row]};
      if (!machine_.on_plain_branch(branch, [&] { return position_of(row); })) break;
    }
    if (row == begin) return row;
    row_.step.position = position_of(row - 1);
    switches_.skip(to[row - 1]);
    return row;
  };
  for (std::size_t row = first; row < rows.rows(); ++row) {
    if (is_plain()) row = take_plain(row);
    if (row == rows.rows()) return;
    if (offset[row] >= next_begin_) [[unlikely]]
      note_state(offset[row], number[row]);
    row_.begins_run = next_run < rows.runs().size() && rows.runs()[next_run].row <= row;
    if (row_.begins_run) noted_ = owner_of(rows.runs()[next_run++]);
    row_.owner = noted_;
    row_.kind = kind[row];
    if (row_.kind == tables::columns::MARK_GAP) row_.before = position_before(row);
    BranchStep& step = row_.step;
    step.position = position_of(row);
    step.from_ip = from[row];
    step.to_ip = to[row];
    step.flags = flags[row];
    step.kind = static_cast<flow::BranchKind>(kind[row]);
    step.leaves = false;
    if (row_.kind == tables::columns::MARK_LIMIT) {
      step.position = position_of_limit(step, position_before(row));
      pass();
      continue;
    }
    if (is_return(row)) {
      is_held_ = row + 1 == rows.rows();
      if (is_held_) return;
      step.leaves = ends_code(row + 1);
    }
    pass();
  }
}

// A row that begins no run, and switches no thread, goes to the machine as it is.
bool StreamCalls::is_plain() const noexcept {
  return probe_ == nullptr && noted_ == owner_ && (!follows_switches_ || switches_.is_idle());
}

void StreamCalls::pass() {
  if (follows_switches_) {
    switches_.take(row_);
  } else {
    give(row_);
  }
}

// The window begins and ends at its own times, unless the row before it has none.
StreamPosition StreamCalls::position_of_limit(const BranchStep& limit, const StreamPosition& before) const {
  StreamPosition position = limit.position;
  if (window_->by != tables::columns::PhasesBy::TIME || !before.time_known) return position;
  position.tsc = limit.to_ip == 0 ? window_->begin : window_->end;
  position.tsc_error = 0;
  return position;
}

void StreamCalls::give(const StreamRow& row) {
  if (row.kind == tables::columns::MARK_LIMIT) return give_row(row, false, machine_);
  if (probe_ != nullptr) show(row);
  const bool changes_owner = row.owner != owner_;
  owner_ = row.owner;
  give_row(row, changes_owner, machine_);
}

// State before a row of the stream, before which there are so many branches.
template <typename Fields>
void StreamCalls::fields_of_state(Fields& fields, std::uint64_t& branches) {
  fields(branches);
  state_fields(fields, noted_);
  state_fields(fields, owner_);
  state_fields(fields, row_.step.position);
  switches_.fields_of_state(fields);
}

// The stacks before the first row that packets from a segment's begin on have decided.
void StreamCalls::note_state(std::uint64_t offset, std::uint64_t branches) {
  const std::vector<flow::index::Segment>& segments = index_->streams()[stream_].segments;
  while (next_segment_ < segments.size() && segments[next_segment_].begin <= offset) ++next_segment_;
  next_begin_ = next_segment_ < segments.size() ? segments[next_segment_].begin : UINT64_MAX;
  const std::size_t segment = next_segment_ - 1;
  const bool is_large = machine_.open_frames().frames > kMostNoted;
  if (segment == 0 || is_large || !switches_.is_settled()) return;
  if (row_.step.position.instructions > segments[segment].instructions) return;
  StackStates::State state;
  state.segment = segment;
  state.numbers.functions = functions_.size() - kFirstFunction;
  for (std::size_t i = 0; i < kMoreGroups; ++i)
    state.numbers.groups[i] = groups_.groups(i).table().size() - kFirstFunction;
  state.numbers.cells = groups_.size();
  base::FieldWriter fields;
  fields_of_state(fields, branches);
  if (!machine_.save(fields)) return;
  state.bytes = std::move(fields.bytes());
  noted_states_->add(std::move(state));
}

// Restores the stacks before the window. Returns the segments of its rows.
tables::columns::SegmentRun StreamCalls::resume(const StackStates& states,
                                                const tables::columns::TableReader::Input& reader) {
  const flow::index::StreamIndex& stream = index_->streams()[stream_];
  tables::columns::SegmentRun run = segments_of(stream, *window_);
  const std::uint64_t most = reader.bundle->streams[stream_].data.size() * kFramesPerByte;
  is_before_ = run.first == stream.segments.size();
  if (is_before_) {
    good_ = states.frames() <= most;
    if (good_) sink_.on_window({}, states.frames());
    return run;
  }
  const auto after = std::ranges::upper_bound(states.states(), run.first, {}, &StackStates::State::segment);
  run.first = 0;
  if (after == states.states().begin()) return run;
  const StackStates::State& state = *std::prev(after);
  run.first = static_cast<std::size_t>(state.segment);
  const StateLimits limits{.functions = kFirstFunction + state.numbers.functions,
                           .spaces = reader.bundle->spaces.size(),
                           .frames = most};
  base::FieldReader fields(state.bytes);
  fields_of_state(fields, branches_before_);
  good_ = states.give_numbers(state.numbers, functions_, groups_) && machine_.restore(fields, limits) &&
          fields.rest().empty() && switches_.is_within(limits) && noted_.space < limits.spaces &&
          owner_.space < limits.spaces;
  first_offset_ = stream.segments[run.first].begin;
  return run;
}

// Shows the stack before a row. A row that waits in the machine is shown by that.
void StreamCalls::show(const StreamRow& row) {
  const bool changes_owner = row.owner != owner_;
  if (row.kind == tables::columns::MARK_STATUS && !changes_owner) return;
  const bool decides =
      changes_owner || row.kind == tables::columns::MARK_GAP || row.kind == tables::columns::MARK_LEAVE;
  if (machine_.is_ambiguous() && !decides) return;
  machine_.decide_open();
  probe_->before_row(row.step, row.kind, machine_, owner_);
}

}  // namespace ptkit::tables::calls
