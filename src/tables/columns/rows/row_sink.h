// Sink that stores rows in columns. Only selected columns are filled.
//
//   decoder -> RowSink -- one by one: RowFilter, RowTimes -> add_row() --+-> RowTables, EdgePhases
//                  |                                                     |
//                  +----- in bulk: BulkWriter, PacketRows ---------------+
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "flow/rows/sink.h"
#include "tables/columns/rows/bulk_cells.h"
#include "tables/columns/rows/bulk_writer.h"
#include "tables/columns/rows/row_cells.h"
#include "tables/columns/time_estimate.h"

namespace ptkit::tables::columns {

class RowSink final : public flow::FlowSink {
 public:
  // `cancelled` makes full() true; it must outlive the sink.
  RowSink(const Request& request, const std::atomic<bool>& cancelled);
  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;

  // Starts a stream, which the following rows belong to. `track` is null if times are not selected.
  // `is_continued`: rows of another sink come before.
  void begin_stream(std::uint32_t index, const trace::Stream& stream, time::TimeTrack* track,
                    bool is_continued = false);
  // Rows of the stream have times, of tracks that go_on_at() gives.
  void expect_times() { tables_.expect_times(); }
  // full() is true after this many rows of the main table, or after this many packets.
  void begin_slice(std::size_t row_limit, std::size_t packet_limit) noexcept {
    slice_ = {row_limit, packet_limit, 0};
  }
  [[nodiscard]] bool finish();  // after the last stream; false: out of memory

  // Continues at a position of the stream. Times come from `track`.
  void continue_at(const RowCounts& counts, time::TimeTrack* track) noexcept;
  // Without counts of branches and limits: branches are counted on, and no limit gets a second mark.
  void go_on_at(std::uint64_t instructions, std::uint64_t order, time::TimeTrack* track) noexcept {
    continue_at({instructions, order, counts_.branches, counts_.limits}, track);
  }

  void on_packet(const packet::Packet& packet);
  // True if all packets become rows, and no row's thread depends on the packet's time or offset.
  [[nodiscard]] bool takes_packets_in_bulk() const noexcept;
  // Only if takes_packets_in_bulk(): adds rows of the packets from `state` on, up to the limit of the slice.
  // Returns as packet::fill_packets().
  [[nodiscard]] packet::FilledPackets fill_packets(base::Bytes stream, packet::DecoderState& state,
                                                   const packet::Errata& errata);
  void on_context(const flow::Context& context) override;
  void on_continued(const flow::Context& context) override;
  void on_block(const flow::Block& block) override;
  void on_branch(const flow::Branch& branch) override;
  void on_event(const flow::Event& event) override;
  void on_error(const flow::FlowError& error) override;
  void on_gap(const flow::Gap& gap) override;
  [[nodiscard]] bool takes_straight_code() const override {
    return request_.table != TableId::blocks && request_.table != TableId::instructions &&
           !request_.counts_blocks;
  }
  void on_straight_code(const flow::StreamSpan& span, std::uint64_t instructions) override;
  [[nodiscard]] bool full() const override;
  [[nodiscard]] bool cancelled() const override;
  // Is called within long walks; false cancels. May be empty; must outlive the sink.
  void set_go_on(const std::function<bool()>* go_on) noexcept { go_on_ = go_on; }
  [[nodiscard]] const std::function<bool()>* go_on() const noexcept { return go_on_; }
  [[nodiscard]] flow::BulkSink* bulk() override { return bulk_.any() ? &bulk_ : nullptr; }

  // Rows that are selected by time: which those up to a stream offset are. Rows that come one by one, and all
  // rows after it, are selected by their own times. At first: all rows.
  void begin_phase(Phase phase, std::uint64_t until) noexcept { bulk_.begin_phase(phase, until); }
  // See BulkWriter::takes_phases().
  [[nodiscard]] bool takes_phases() const noexcept { return bulk_.takes_phases(); }

  // Rows of another sink, with numbers from 0 on; see speculative_source.h.
  // adds the instruction and event numbers of `before` to the rows
  void continue_counts_from(const RowSink& before) noexcept;
  // Moves rows of the main table from the front, as many as there is room for, or all of them at once, with
  // the errors and gaps among them. False: out of memory.
  [[nodiscard]] bool take_rows(RowSink& next) { return tables_.take_rows(next.tables_, room()); }
  // Moves everything but rows. False: out of memory.
  [[nodiscard]] bool append_rest(RowSink& next);
  // Defers times: fill_times() of the preceding sink fills them in.
  void defer_times(const RowSink& before) {
    times_.defer(before.times_);
    tables_.expect_times();
  }
  // Fills in up to `most` times of `next`; false when all are filled in.
  [[nodiscard]] bool fill_times(RowSink& next, std::size_t most);
  [[nodiscard]] std::size_t bytes() const noexcept { return tables_.table().bytes() + times_.bytes(); }
  // Attaches memory for rows of the main table, after `front` rows that stay free.
  void use_memory(const PartMemory& part, std::size_t front) noexcept { tables_.use_memory(part, front); }

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
  void begin_part(const PartMemory& part, std::size_t rows) { tables_.begin_part(part, rows); }
  // Attaches the memory of the part that begin_part() announced. Does nothing without such a part.
  void attach_part() noexcept { tables_.attach_part(); }
  void run_out_of_memory() noexcept { tables_.run_out_of_memory(); }
  // Rows of the main table until the sink is full.
  [[nodiscard]] std::size_t room() const noexcept { return slice_.room(tables_.table().rows()); }

  // Instructions and branches of the stream so far. Branches: of the table of branches.
  [[nodiscard]] std::uint64_t instructions() const noexcept { return counts_.instructions; }
  [[nodiscard]] std::uint64_t branches() const noexcept { return counts_.branches; }

  [[nodiscard]] std::unique_ptr<Batch>& main() noexcept { return tables_.main(); }
  // The tables: errors and gaps can leave once rows_left() has said which rows left.
  [[nodiscard]] RowTables& tables() noexcept { return tables_; }
  [[nodiscard]] bool out_of_memory() const noexcept { return tables_.out_of_memory(); }

 private:
  // Of a branch, a block or its instructions.
  [[nodiscard]] time::TimeRange row_time(flow::StreamSpan span);
  void follow_switches(const packet::Packet& packet, const time::TimeRange& range);
  void estimate_rows(std::size_t rows, std::uint64_t first_retired, const time::TimeRange& range);
  void add_mark(MarkKind kind, const flow::StreamSpan& span, std::uint64_t to_ip, std::uint8_t flags = 0);
  // Marks the limits that code of so many instructions, or what happens before it, is behind.
  void pass_limits(const flow::StreamSpan& span, std::uint64_t instructions) {
    if (counts_.limits < limits_) [[unlikely]]
      mark_limits(span, instructions);
  }
  void mark_limits(const flow::StreamSpan& span, std::uint64_t instructions);
  void mark_event(const flow::Event& event);
  void put_block(const flow::Block& block);
  void count_block(const flow::Block& block);
  void put_instructions(const flow::Block& block);
  void put_some_instructions(const flow::Block& block, InsnSpan span, std::uint64_t ip,
                             const time::TimeRange& range);
  // Whether a row of errors or gaps is kept.
  template <typename Row>
  [[nodiscard]] bool keeps(const Row& row, const time::TimeRange& range, TableId table) const noexcept;

  Request request_;
  const std::atomic<bool>& cancelled_;
  const std::function<bool()>* go_on_ = nullptr;
  mutable bool stopped_ = false;  // go_on_ was false
  RowCounts counts_;
  mutable Slice slice_;
  RowFilter filter_{request_.selection};
  RowTables tables_{request_};
  RowTimes times_;
  EdgePhases edges_{request_};
  TimeEstimates estimates_;
  BulkWriter bulk_{BulkWriter::Sink{request_, filter_, tables_, times_, edges_, counts_, slice_}};
  PacketRows packet_rows_;
  const trace::Stream* stream_ = nullptr;
  std::size_t next_switch_ = 0;
  OwnerRun run_;
  bool rows_need_time_ = true;
  std::size_t limits_ = 0;  // that get marks
};

}  // namespace ptkit::tables::columns
