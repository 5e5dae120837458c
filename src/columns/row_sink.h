// Rows to columns: fills only what was asked for.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "columns/batch.h"
#include "columns/deferred_times.h"
#include "columns/edges.h"
#include "columns/part_memory.h"
#include "columns/request.h"
#include "columns/time_estimate.h"
#include "flow/sink.h"
#include "packet/scan.h"
#include "time/track.h"

namespace ptkit::columns {

class RowSink final : public flow::FlowSink, private flow::BulkSink {
 public:
  // `cancelled` makes full() true; it must outlive the sink.
  RowSink(const Request& request, const std::atomic<bool>& cancelled);

  // Rows belong to this stream from now on. `track` is null if no times are asked for.
  void begin_stream(std::uint32_t index, const trace::Stream& stream, time::TimeTrack* track);
  // full() is true after this many rows of the main table, or after this many packets.
  void begin_slice(std::size_t row_limit, std::size_t packet_limit) noexcept;
  [[nodiscard]] bool finish();  // after the last stream; false: out of memory

  // What follows stands behind this many instructions, and behind this many events, errors and gaps of the
  // stream; its times are asked of `track`.
  void go_on_at(std::uint64_t instructions, std::uint64_t order, time::TimeTrack* track) noexcept;

  void on_packet(const packet::Packet& packet);
  // All packets become rows, and nobody follows threads by their times.
  [[nodiscard]] bool takes_packets_in_bulk() const noexcept;
  // Then: rows of the packets from `state` on, as many as the slice may have; ends as packet::fill_packets().
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

  // --- Rows of a sink that took what comes behind, counted from 0; see ahead_source.h
  void count_on_from(const RowSink& before) noexcept;  // its rows now say how many came before in the stream
  // Takes rows of the main table from the front, as many as there is room for, or all of them at once.
  [[nodiscard]] bool take_rows(RowSink& behind);
  // Takes all but the rows of the main table. False: out of memory, as take_rows().
  [[nodiscard]] bool append_rest(RowSink& behind);
  // Times are not known yet: they are asked for when tell_times() of the sink before gets this one.
  void defer_times(const RowSink& before) noexcept {
    deferring_ = true;
    first_bits_ = before.first_bits_;
  }
  // Fills so many times in; false when there are no more to be filled in.
  [[nodiscard]] bool tell_times(RowSink& behind, std::size_t most);
  [[nodiscard]] std::size_t bytes() const noexcept { return main_->bytes() + deferred_.bytes(); }  // of rows
  // Rows of the main table go here as long as there is room, behind `front` rows that are left free.
  void use_memory(const PartMemory& part, std::size_t front) noexcept;

  // --- Estimates of times, where they are asked for
  // Once after begin_stream(): `track` is for estimates alone; null: no time is known.
  void begin_estimates(std::unique_ptr<time::TimeTrack> track);
  void end_estimates();  // at the stream's end
  // The last rows of the main table whose estimates are not known yet.
  [[nodiscard]] std::size_t open_rows() const noexcept { return estimates_.open_rows(); }

  // --- Rows of a part that somebody reads
  // The next `rows` rows are a part. They go to `part`, which has room for some more, if nothing better is
  // found until settle().
  void begin_part(const PartMemory& part, std::size_t rows);
  // Rows of the part that begins go to its memory from now on. Without one that begins: nothing changes.
  void settle() noexcept;
  void run_out_of_memory() noexcept { out_of_memory_ = true; }
  // Rows of the main table until the sink is full.
  [[nodiscard]] std::size_t room() const noexcept { return row_limit_ - std::min(row_limit_, main_->rows()); }

  [[nodiscard]] std::unique_ptr<Batch>& main() noexcept { return main_; }
  [[nodiscard]] std::unique_ptr<Batch>& errors() noexcept { return errors_; }
  [[nodiscard]] std::unique_ptr<Batch>& gaps() noexcept { return gaps_; }
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }

 private:
  // In bulk (row_sink_bulk.cpp).
  [[nodiscard]] bool open(flow::BulkRoom& room) override;
  void close(const flow::BulkRoom& room) override;
  void add_edges(std::span<const flow::EdgeCount> edges, std::uint32_t space) override;
  void fill_packet_times(std::size_t row, std::span<const std::uint64_t> offsets, std::size_t rows);
  void fill_constants(std::size_t begin, const flow::BulkRoom& room);
  [[nodiscard]] bool take_memory(RowSink& behind);

  [[nodiscard]] Batch* batch_for(TableId table, bool side) noexcept;
  [[nodiscard]] time::TimeRange time_at(flow::Place place, const Batch& batch);  // of its next row
  [[nodiscard]] time::TimeRange row_time(flow::Place place);  // of a branch, a block or its instructions
  [[nodiscard]] bool selects_time(const time::TimeRange& range) const noexcept;
  [[nodiscard]] bool selects_ip(std::uint64_t ip) const noexcept;
  [[nodiscard]] bool selects_ips(std::uint64_t first, std::uint64_t last) const noexcept;
  [[nodiscard]] bool selects_branch(const flow::Branch& branch) const noexcept;
  [[nodiscard]] bool room_for(Batch& batch, std::size_t rows) noexcept;
  void follow_switches(const packet::Packet& packet, const time::TimeRange& range);
  void begin_runs();
  void estimate_rows(std::size_t rows, std::uint64_t first_retired, const time::TimeRange& range);
  void put_block(const flow::Block& block);
  void put_instructions(const flow::Block& block);
  struct InsnSpan {  // instructions of a block
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
  std::unique_ptr<Batch> errors_;  // null if they are the main table, or not asked for
  std::unique_ptr<Batch> gaps_;
  PartMemory part_;
  std::size_t part_rows_ = 0;
  bool part_begins_ = false;
  EdgeCounter edges_;
  time::TimeTrack* track_ = nullptr;
  DeferredTimes deferred_;
  TimeEstimates estimates_;
  bool deferring_ = false;
  bool first_bits_ = false;  // see time::TimeTrack::tells_first_bits()
  flow::Place last_place_{UINT64_MAX, UINT64_MAX};
  time::TimeRange last_range_;
  const trace::Stream* stream_ = nullptr;
  std::size_t next_switch_ = 0;
  Run run_;
  bool context_selected_ = true;
  bool rows_ask_ = true;  // for their time
  bool out_of_memory_ = false;
  std::uint64_t instruction_ = 0;       // instructions of the stream so far
  std::uint64_t order_ = 0;             // events, errors and gaps of the stream so far
  std::vector<flow::PlaceRun> places_;  // of rows in bulk
  std::vector<std::uint64_t> offsets_;  // of packets whose offset is no column
  std::size_t row_limit_ = 0;
  std::size_t packet_limit_ = 0;
  mutable std::size_t packets_ = 0;
};

}  // namespace ptkit::columns
