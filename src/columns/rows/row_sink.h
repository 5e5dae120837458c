// Sink that stores rows in columns. Only selected columns are filled.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "columns/batch.h"
#include "columns/deferred_times.h"
#include "columns/edges.h"
#include "columns/part_memory.h"
#include "columns/place_times.h"
#include "columns/request.h"
#include "columns/time_estimate.h"
#include "flow/rows/sink.h"
#include "packet/scan.h"
#include "time/track.h"

namespace ptkit::columns {

// A slice of work: some milliseconds of decoding, after which a waiting thread can act.
inline constexpr std::size_t kSlicePackets = 8192;
inline constexpr std::size_t kSliceRows = std::size_t{1} << 18U;

class RowSink final : public flow::FlowSink, private flow::BulkSink {
 public:
  // `cancelled` makes full() true; it must outlive the sink.
  RowSink(const Request& request, const std::atomic<bool>& cancelled);

  // Starts a stream, which the following rows belong to. `track` is null if times are not selected.
  void begin_stream(std::uint32_t index, const trace::Stream& stream, time::TimeTrack* track);
  // full() is true after this many rows of the main table, or after this many packets.
  void begin_slice(std::size_t row_limit, std::size_t packet_limit) noexcept;
  [[nodiscard]] bool finish();  // after the last stream; false: out of memory

  // Continues at a position of the stream: after this many instructions, and after this many events, errors
  // and gaps. Times come from `track`.
  void continue_at(std::uint64_t instructions, std::uint64_t order, time::TimeTrack* track) noexcept;

  void on_packet(const packet::Packet& packet);
  // True if all packets become rows, and no row's thread depends on the packet's time or offset.
  [[nodiscard]] bool takes_packets_in_bulk() const noexcept;
  // Only if takes_packets_in_bulk(): adds rows of the packets from `state` on, up to the limit of the slice.
  // Returns as packet::fill_packets().
  [[nodiscard]] packet::FilledPackets fill_packets(base::Bytes stream, packet::DecoderState& state,
                                                   const packet::Errata& errata);
  void on_context(const flow::Context& context) override;
  void on_block(const flow::Block& block) override;
  void on_branch(const flow::Branch& branch) override;
  void on_event(const flow::Event& event) override;
  void on_error(const flow::FlowError& error) override;
  void on_gap(const flow::Gap& gap) override;
  [[nodiscard]] bool full() const override;
  [[nodiscard]] flow::BulkSink* bulk() override;

  // Rows that are selected by time: which those up to a stream offset are. Rows that come one by one, and all
  // rows after it, are selected by their own times. At first: all rows.
  void begin_phase(Phase phase, std::uint64_t until) noexcept {
    phase_ = phase;
    phase_until_ = until;
  }
  // Whether rows are selected by time, and else by nothing that rows in bulk do not have.
  [[nodiscard]] bool takes_phases() const noexcept;

  // Rows of another sink, with numbers from 0 on; see speculative_source.h.
  // adds the instruction and event numbers of `before` to the rows
  void continue_counts_from(const RowSink& before) noexcept;
  // Moves rows of the main table from the front, as many as there is room for, or all of them at once. False:
  // out of memory.
  [[nodiscard]] bool take_rows(RowSink& next);
  // Moves everything but the rows of the main table. False: out of memory.
  [[nodiscard]] bool append_rest(RowSink& next);
  // Defers times: fill_times() of the preceding sink fills them in.
  void defer_times(const RowSink& before) {
    deferring_ = true;
    first_bits_ = before.first_bits_;
    expect_times(true);
  }
  // Fills in up to `most` times of `next`; false when all are filled in.
  [[nodiscard]] bool fill_times(RowSink& next, std::size_t most);
  [[nodiscard]] std::size_t bytes() const noexcept { return main_->bytes() + deferred_.bytes(); }  // of rows
  // Attaches memory for rows of the main table, after `front` rows that stay free.
  void use_memory(const PartMemory& part, std::size_t front) noexcept;

  // Estimates of times, if they are selected.
  //
  // Called once after begin_stream(). `track` is for estimates alone; null: no time is known.
  void begin_estimates(std::unique_ptr<time::TimeTrack> track);
  void end_estimates();  // at the stream's end
  // Number of last rows of the main table without their estimate.
  [[nodiscard]] std::size_t open_rows() const noexcept { return estimates_.open_rows(); }

  // Rows of one part: a caller reads the table part by part.
  //
  // The next `rows` rows are a part. They go to `part`, which has some more room, unless take_rows() finds
  // rows in memory of their own before attach_part().
  void begin_part(const PartMemory& part, std::size_t rows);
  // Attaches the memory of the part that begin_part() announced. Does nothing without such a part.
  void attach_part() noexcept;
  void run_out_of_memory() noexcept { out_of_memory_ = true; }
  // Rows of the main table until the sink is full.
  [[nodiscard]] std::size_t room() const noexcept { return row_limit_ - std::min(row_limit_, main_->rows()); }

  // Instructions of the stream so far.
  [[nodiscard]] std::uint64_t instructions() const noexcept { return instruction_; }

  [[nodiscard]] std::unique_ptr<Batch>& main() noexcept { return main_; }
  [[nodiscard]] std::unique_ptr<Batch>& errors() noexcept { return errors_; }
  [[nodiscard]] std::unique_ptr<Batch>& gaps() noexcept { return gaps_; }
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_ || main_->out_of_memory(); }

 private:
  // BulkSink (row_sink_bulk.cpp).
  [[nodiscard]] bool open(flow::BulkRoom& room) override;
  void close(const flow::BulkRoom& room) override;
  void add_edges(std::span<const flow::EdgeCount> edges, std::uint32_t space, std::uint32_t phase) override;
  [[nodiscard]] bool open_edges(flow::BulkRoom& room) const noexcept;
  void fill_packet_times(std::size_t row, std::span<const std::uint64_t> offsets, std::size_t rows);
  void fill_constants(std::size_t begin, const flow::BulkRoom& room);
  void close_events(const flow::BulkRoom& room);
  void add_timed_events(std::span<const flow::BulkEvent> events);
  [[nodiscard]] bool selects_none_at(std::uint64_t position) const noexcept;
  [[nodiscard]] bool take_memory(RowSink& next);

  [[nodiscard]] Batch* batch_for(TableId table, bool side) noexcept;
  // time of the table's next row
  [[nodiscard]] time::TimeRange time_at(flow::StreamSpan place, const Batch& batch);
  // Of a branch, a block or its instructions.
  [[nodiscard]] time::TimeRange row_time(flow::StreamSpan place);
  [[nodiscard]] bool selects_time(const time::TimeRange& range) const noexcept;
  [[nodiscard]] std::size_t bin_of(std::uint64_t position) const noexcept;
  [[nodiscard]] bool selects_ip(std::uint64_t ip) const noexcept;
  [[nodiscard]] bool selects_ips(std::uint64_t first, std::uint64_t last) const noexcept;
  [[nodiscard]] bool selects_branch(const flow::Branch& branch) const noexcept;
  [[nodiscard]] bool room_for(Batch& batch, std::size_t rows) noexcept;
  void follow_switches(const packet::Packet& packet, const time::TimeRange& range);
  void begin_runs();
  void expect_times(bool times);
  void estimate_rows(std::size_t rows, std::uint64_t first_retired, const time::TimeRange& range);
  void put_block(const flow::Block& block);
  void put_instructions(const flow::Block& block);
  struct InsnSpan {  // Instructions of a block.
    std::size_t first = 0;
    std::size_t count = 0;
  };
  void put_some_instructions(const flow::Block& block, InsnSpan span, std::uint64_t ip,
                             const time::TimeRange& range);
  void put_error(Batch& batch, const flow::FlowError& error, const time::TimeRange& range);
  [[nodiscard]] std::uint64_t lost_bytes(const flow::Gap& gap) const noexcept;
  void put_gap(Batch& batch, const flow::Gap& gap, const time::TimeRange& range);

  Request request_;
  const std::atomic<bool>& cancelled_;
  std::unique_ptr<Batch> main_;
  std::unique_ptr<Batch> errors_;  // null if they are the main table, or are not kept
  std::unique_ptr<Batch> gaps_;
  PartMemory part_;
  std::size_t part_rows_ = 0;
  bool part_begins_ = false;
  std::vector<EdgeCounter> edges_;  // by bin
  Phase phase_;
  std::uint64_t phase_until_ = 0;
  time::TimeTrack* track_ = nullptr;
  DeferredTimes deferred_;
  TimeEstimates estimates_;
  bool deferring_ = false;
  bool first_bits_ = false;  // see time::TimeTrack::cyc_times_first_bits()
  flow::StreamSpan last_place_{UINT64_MAX, UINT64_MAX};
  time::TimeRange last_range_;
  const trace::Stream* stream_ = nullptr;
  std::size_t next_switch_ = 0;
  Run run_;
  bool context_selected_ = true;
  bool rows_need_time_ = true;  // rows need their time
  bool out_of_memory_ = false;
  std::uint64_t instruction_ = 0;       // instructions of the stream so far
  std::uint64_t order_ = 0;             // events, errors and gaps of the stream so far
  std::vector<flow::PlaceRun> places_;  // places of rows in bulk
  std::vector<flow::BulkEvent> bulk_events_;
  TimeFilter filter_;                   // of rows in bulk
  std::vector<std::uint64_t> offsets_;  // offsets of packets, if there is no column of offsets
  std::size_t row_limit_ = 0;
  std::size_t packet_limit_ = 0;
  mutable std::size_t packets_ = 0;
};

}  // namespace ptkit::columns
