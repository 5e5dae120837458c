#include "tables/columns/read/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "flow/events/context.h"
#include "tables/columns/sources/packet_source.h"
#include "tables/columns/sources/phased_source.h"

namespace ptkit::tables::columns {
namespace {

// Threads that decode speculatively take one part in kSpeculativeShare of the free memory.
constexpr std::uint64_t kSpeculativeShare = 4;
// Rows of all threads' streams may hold one part in kHeldTwice of a table for a second time.
constexpr std::uint64_t kHeldTwice = 10;

[[nodiscard]] bool has_packets(const trace::Stream& stream) noexcept {
  return stream.kind == trace::StreamKind::PROCESSOR_TRACE;
}

// Source for the packets of a stream of branch records: one error row.
class NoPackets final : public flow::RowSource {
 public:
  explicit NoPackets(flow::FlowSink& sink) : sink_(sink) {}
  [[nodiscard]] bool run() override {
    flow::FlowError error;
    error.code = base::Status::NO_PACKETS;
    sink_.on_error(error);
    return false;
  }
  [[nodiscard]] std::uint64_t position() const noexcept override { return 0; }

 private:
  flow::FlowSink& sink_;
};

// Source for the packets of a stream that was lost as a whole: one gap row.
class LostPackets final : public flow::RowSource {
 public:
  LostPackets(flow::FlowSink& sink, base::Status cause) : sink_(sink), cause_(cause) {}
  [[nodiscard]] bool run() override {
    flow::Gap gap;
    gap.cause = flow::GapCause::LOST;
    gap.code = cause_;
    sink_.on_gap(gap);
    return false;
  }
  [[nodiscard]] std::uint64_t position() const noexcept override { return 0; }

 private:
  flow::FlowSink& sink_;
  base::Status cause_;
};

// Rows of a table in the index of a stream. None: the index does not count them.
[[nodiscard]] std::optional<std::size_t> rows_in(const flow::index::RowTotals& rows, TableId table) noexcept {
  switch (table) {
    case TableId::branches:
      return rows.branches;
    case TableId::blocks:
      return rows.blocks;
    case TableId::instructions:
      return rows.instructions;
    case TableId::events:
      return rows.events;
    case TableId::errors:
      return rows.errors;
    case TableId::gaps:
      return rows.gaps;
    default:
      return std::nullopt;
  }
}

// Rows of a table that an index may claim for the bytes of a stream: several times what was ever seen. Room
// for the rows that it claims is taken at once, and the file may be damaged or hostile.
[[nodiscard]] std::uint64_t most_rows(TableId table, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kRowsPerByte = 64;
  constexpr std::uint64_t kInstructionsPerByte = 1024;
  return bytes * (table == TableId::instructions ? kInstructionsPerByte : kRowsPerByte);
}

[[nodiscard]] bool needs_time(const Request& request) noexcept {
  return request.time || request.selection.by_time;
}

}  // namespace

TableReader::TableReader(Input input, const Request& request)
    : input_(std::move(input)), request_(request), sink_(request_, cancelled_) {
  sink_.set_go_on(&input_.go_on);
  for (const auto stream : input_.streams) bytes_total_ += input_.bundle->streams[stream].data.size();
  input_.budget->add_streams(bytes_total_);
  if (input_.facts == nullptr) input_.facts = std::make_shared<StreamFacts>(input_.bundle->streams.size());
}

std::unique_ptr<time::TimeTrack> TableReader::make_track(const trace::Stream& stream) const {
  if (stream.kind == trace::StreamKind::BRANCH_RECORDS)
    return std::make_unique<time::TimeTrack>(time::TimeTrack::of_records(stream.data.bytes()));
  return std::make_unique<time::TimeTrack>(stream.data.bytes(), input_.bundle->configuration.clock,
                                           input_.errata, stream.losses);
}

// Whether code or thread of the stream depends on time.
bool TableReader::follows_time() const noexcept { return flow::changes_with_time(*input_.bundle, *stream_); }

// Times that decide which rows are selected are computed from the start of a stream, and so are phases by
// instructions.
bool TableReader::can_cut(const trace::Stream& stream) const noexcept {
  if (request_.estimate || input_.threads < 2 || !input_.decoder || !input_.cut || !has_packets(stream))
    return false;
  const std::size_t least = input_.segment != 0 ? input_.segment : SpeculativeSource::kSmallestSegment;
  return stream.data.size() >= least * 2 && !request_.selection.by_time && !request_.by_instructions() &&
         !request_.marks_limits() && flow::can_speculate(*input_.bundle);
}

// Rows that are selected by time, or have limits of time among them.
bool TableReader::can_take_phases() const noexcept {
  return sink_.takes_phases() && row_track_ != nullptr && input_.decoder && input_.cut &&
         has_packets(*stream_);
}

bool TableReader::prefers_segments() const noexcept {
  if (request_.table == TableId::packets || request_.table == TableId::edges) return false;
  std::uint64_t largest = 0;
  std::uint64_t in_segments = 0;
  for (const auto index : input_.streams) {
    const trace::Stream& stream = input_.bundle->streams[index];
    largest = std::max<std::uint64_t>(largest, stream.data.size());
    if (can_cut(stream)) in_segments += stream.data.size();
  }
  return largest > bytes_total_ / (kHeldTwice * input_.threads) && in_segments > bytes_total_ / 10 * 9;
}

// A track of a stream without times would search all of it, and answer each query.
bool TableReader::is_timeless(std::uint32_t index) const {
  if (!has_packets(*stream_)) return false;
  if (input_.index != nullptr) return input_.index->streams()[index].timeless;
  return input_.facts->is_timeless(index, *stream_, input_.errata);
}

// Decodes only the segments that are selected, unless decoding the whole stream on all threads takes less
// time.
bool TableReader::open_indexed(std::uint32_t index, bool times) {
  const Selection& selection = request_.selection;
  if (request_.estimate || input_.index == nullptr || !input_.decoder ||
      (!selection.by_time && selection.ips.empty() && !input_.segments))
    return false;
  if (!has_packets(*stream_)) return false;
  const double least = can_cut(*stream_) ? 1 - 1 / static_cast<double>(input_.threads) : 0;
  source_ = IndexedSource::make(
      {request_, *input_.bundle, *stream_, input_.decoder, input_.index, input_.index->streams()[index],
       input_.segments, input_.errata, times, follows_time()},
      least, sink_);
  return source_ != nullptr;
}

std::unique_ptr<flow::RowSource> TableReader::packet_source(std::uint32_t index) {
  const base::Bytes bytes = stream_->data.bytes();
  if (!has_packets(*stream_)) return std::make_unique<NoPackets>(sink_);
  if (bytes.empty() && !stream_->losses.empty())
    return std::make_unique<LostPackets>(sink_, stream_->losses.back().cause);
  if (input_.packet_factory) return input_.packet_factory(index, request_.sync, sink_);
  return std::make_unique<PacketSource<packet::PacketDecoder>>(
      bytes, packet::PacketDecoder(bytes, {}, input_.errata), request_.sync, sink_);
}

void TableReader::open_stream() {
  const auto index = input_.streams[next_stream_++];
  stream_ = &input_.bundle->streams[index];
  rows_before_ = rows_so_far();
  const bool packets = request_.table == TableId::packets;
  const bool follow =
      packets && request_.context && !stream_->switches.empty() && !stream_->switches_by_offset;
  const bool times = (needs_time(request_) || follow) && !is_timeless(index);
  if (!packets && open_indexed(index, times)) {
    sink_.begin_stream(index, *stream_, nullptr);
    if (times) sink_.expect_times();
    return;
  }
  if (times) row_track_ = make_track(*stream_);
  sink_.begin_stream(index, *stream_, row_track_.get());
  if (request_.estimate) sink_.begin_estimates(row_track_ != nullptr ? make_track(*stream_) : nullptr);
  if (packets) {
    source_ = packet_source(index);
    return;
  }
  if (follows_time()) flow_track_ = make_track(*stream_);
  if (can_take_phases()) {
    time::TimeSurvey survey(stream_->data.bytes(), input_.bundle->configuration.clock, input_.errata,
                            stream_->losses);
    source_ = phased(input_.decoder(*stream_, sink_, flow_track_.get(), nullptr, false), request_, *stream_,
                     survey, {}, sink_);
    return;
  }
  if (can_cut(*stream_)) {
    SpeculativeSource::Input input{
        .request = request_,
        .index = index,
        .stream = *stream_,
        .make = [this, &stream = *stream_](
                    flow::FlowSink& sink, time::TimeTrack* track, const flow::FlowState* from,
                    bool ahead) { return input_.decoder(stream, sink, track, from, ahead); },
        .track = std::move(flow_track_),
        .threads = input_.threads,
        .segment = input_.segment,
        .times = row_track_ != nullptr,
        .part = part_.rows - std::min(part_.rows, kSlackRows),
        .room = input_.budget->left().least().usable() / kSpeculativeShare};
    source_ = std::make_unique<SpeculativeSource>(std::move(input), sink_);
    source_attaches_ = true;
    return;
  }
  source_ = input_.factory(index, sink_, flow_track_.get());
}

TableReader::Step TableReader::step(std::size_t rows) {
  const std::size_t in_window = window_.rows();
  if (!window_.leave_if_full(sink_.main())) return Step::NO_MEMORY;
  sink_.tables().rows_left(window_.rows() - in_window, false);
  const bool bounded = request_.table != TableId::edges;
  const std::size_t open = sink_.open_rows();
  if (bounded && sink_.main()->rows() - open >= rows) return Step::READY;
  if (source_ == nullptr) {
    if (next_stream_ < input_.streams.size()) {
      if (next_stream_ == 0 && rows == SIZE_MAX) reserve_known_rows();
      open_stream();
    } else {
      if (!finished_ && !sink_.finish()) return Step::NO_MEMORY;
      finished_ = true;
      return Step::END;
    }
  }
  if (!source_attaches_) sink_.attach_part();
  if (rows == SIZE_MAX) expect_rows();
  const std::size_t there = sink_.main()->rows();
  const std::size_t limit = std::min(open == 0 ? rows : SIZE_MAX, window_.limit(there));
  sink_.begin_slice(std::min(limit, there + kSliceRows), kSlicePackets);
  if (source_ == nullptr || !source_->run()) {
    sink_.end_estimates();
    if (rows == SIZE_MAX && reads_all_rows() && !sink_.full())
      input_.facts->note_rows(input_.streams[next_stream_ - 1], request_.table, rows_so_far() - rows_before_);
    source_.reset();
    source_attaches_ = false;
    flow_track_.reset();
    row_track_.reset();
    bytes_before_ += stream_->data.size();
  }
  count_bytes();
  return sink_.out_of_memory() ? Step::NO_MEMORY : check_budget();
}

bool TableReader::reads_all_rows() const noexcept {
  const Selection& selection = request_.selection;
  return request_.sync && request_.table != TableId::edges && selection.ips.empty() &&
         !selection.by_context() && !selection.by_time && selection.branches == flow::BranchChoice{} &&
         selection.event_kinds == kEveryEvent;
}

std::optional<std::size_t> TableReader::known_rows(std::uint32_t index) const noexcept {
  if (const auto rows = input_.facts->rows(index, request_.table)) return rows;
  const trace::Stream& stream = input_.bundle->streams[index];
  if (input_.index == nullptr || input_.decoder == nullptr || !has_packets(stream)) return std::nullopt;
  const auto rows = rows_in(input_.index->streams()[index].rows, request_.table);
  return rows && *rows <= most_rows(request_.table, stream.data.size()) ? rows : std::nullopt;
}

std::optional<std::size_t> TableReader::known_rows() const noexcept {
  if (!reads_all_rows()) return std::nullopt;
  std::size_t sum = 0;
  for (const auto index : input_.streams) {
    const auto rows = known_rows(index);
    if (!rows) return std::nullopt;
    sum += *rows;
  }
  return sum;
}

// Takes the final memory at once. Tables that do not fit are found out on the way.
void TableReader::reserve_known_rows() {
  const auto rows = known_rows();
  if (rows && *rows > kSlackRows && !window_.any())
    static_cast<void>(sink_.main()->reserve(*rows + kSlackRows));
}

void TableReader::use_window(std::unique_ptr<Batch> window) noexcept {
  const std::size_t rows = known_rows().value_or(0);
  // Rows with open estimates stay together, and rows without cells need no window.
  if (request_.estimate || row_bytes(request_.table, stored_columns(request_)) == 0 ||
      rows <= RowWindow::kLeastRows)
    return;
  window_.begin(std::move(window), rows, sink_.main());
}

// Extrapolates the rows by the bytes of the streams, so that columns get their final room early.
void TableReader::expect_rows() {
  if (window_.any()) return;
  const std::uint64_t done = bytes_done();
  const auto rows = static_cast<double>(sink_.main()->rows());
  if (done == 0 || sink_.main()->rows() < kSliceRows / 8) return;
  sink_.main()->expect(
      static_cast<std::size_t>(rows * static_cast<double>(bytes_total_) / static_cast<double>(done)));
}

void TableReader::count_bytes() noexcept {
  const std::uint64_t done = bytes_done();
  if (input_.decoded == nullptr || done <= bytes_counted_) return;
  input_.decoded->fetch_add(done - bytes_counted_, std::memory_order_relaxed);
  bytes_counted_ = done;
}

TableReader::Step TableReader::check_budget() {
  const std::size_t sides = sink_.tables().errors().bytes() + sink_.tables().gaps().bytes();
  switch (input_.budget->report(share_, rows_so_far(), sides, bytes_done())) {
    case RowBudget::Answer::COUNT:
      return Step::COUNT;
    case RowBudget::Answer::STOP:
      return Step::NO_ROOM;
    case RowBudget::Answer::GO_ON:
      break;
  }
  return Step::MORE;
}

TableReader::Step TableReader::step_part(std::size_t rows, std::unique_ptr<Batch>& part) {
  part.reset();
  const Step answer = step(rows);
  if (answer != Step::READY && answer != Step::END) return answer;
  part = take(answer == Step::END ? SIZE_MAX : rows, false);
  // Columns of equal values have no cells.
  return part != nullptr && part->set_varying(kAllColumns) ? answer : Step::NO_MEMORY;
}

std::unique_ptr<Batch> TableReader::take(std::size_t rows, bool keeps) {
  auto& rest = sink_.main();
  std::unique_ptr<Batch> tail;
  if (rest->rows() / 2 > rows || rest->is_attached()) {
    // More parts follow: the rest stays in its memory.
    auto part = std::make_unique<Batch>(rest->table(), rest->mask());
    const std::size_t count = std::min(rows, rest->rows());
    if (!part->append_rows(*rest, 0, count)) return nullptr;
    rest->drop_front(count);
    sink_.tables().rows_left(count, count < rows);
    if (keeps) part->shrink();
    return part;
  }
  if (rest->rows() > rows) {
    tail = rest->split(rows);
  } else {
    tail = rest->successor();
  }
  if (tail == nullptr) return nullptr;
  std::swap(rest, tail);
  if (keeps) tail->shrink();
  sink_.tables().rows_left(tail->rows(), tail->rows() < rows);
  return tail;
}

std::unique_ptr<Batch> TableReader::take_window() {
  const std::size_t left = window_.rows();
  auto rows = window_.take(sink_.main());
  if (rows != nullptr) sink_.tables().rows_left(rows->rows() - left, false);
  return rows;
}

void TableReader::attach(const PartMemory& part) {
  part_ = part;
  sink_.begin_part(part, part.rows - std::min(part.rows, kSlackRows));
}

PartMemory TableReader::end_part(std::size_t rows, std::vector<OwnerRun>& runs) {
  // Rows that a segment's thread wrote stay in their memory.
  if (sink_.main()->owner() == nullptr || sink_.main()->owner() == part_.memory) sink_.attach_part();
  Batch& rest = *sink_.main();
  PartMemory part;
  part.rows = std::min(rows, rest.rows());
  const bool copies = rest.owner() == nullptr;
  part.memory = copies ? part_.memory : rest.owner();
  part.uniform = rest.uniform();
  const auto infos = columns_of(rest.table());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((rest.mask() >> i) & 1) == 0) continue;
    part.values[i] = rest.uniform_value(i);
    if (rest.is_uniform(i)) continue;
    part.columns[i] = copies ? part_.columns[i] : rest.data(i);
    if (copies && part.rows != 0)
      std::memcpy(part_.columns[i], rest.data(i), part.rows * cell_size(infos[i].type));
  }
  for (const OwnerRun& run : rest.runs()) {
    if (run.row < part.rows) runs.push_back(run);
  }
  rest.drop_front(part.rows);
  sink_.tables().rows_left(part.rows, part.rows < rows);
  return part;
}

std::size_t TableReader::error_rows() noexcept {
  if (request_.table == TableId::errors) return sink_.main()->rows();
  const Batch* const errors = sink_.tables().errors().table();
  return errors == nullptr ? 0 : errors->rows();
}

std::uint64_t TableReader::bytes_done() const noexcept {
  return source_ == nullptr ? bytes_before_ : bytes_before_ + source_->position();
}

}  // namespace ptkit::tables::columns
