// Reads tables from streams, in parts of a given number of rows.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "packet/errata.h"
#include "tables/columns/read/row_budget.h"
#include "tables/columns/read/row_window.h"
#include "tables/columns/read/stream_facts.h"
#include "tables/columns/rows/row_sink.h"
#include "tables/columns/sources/indexed_source.h"
#include "tables/columns/sources/speculative_source.h"

namespace ptkit::tables::columns {

// Makes the decoder of a stream: FlowDecoder or the reference. `track` is null if decoding needs no time.
using SourceFactory = std::function<std::unique_ptr<flow::RowSource>(
    std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack* track)>;

// Makes the source of a stream's packets, from its first byte or its first PSB.
using PacketFactory =
    std::function<std::unique_ptr<flow::RowSource>(std::uint32_t stream, bool sync, RowSink& sink)>;

// Reads one table of some streams, one after the other.
class TableReader {
 public:
  struct Input {
    std::shared_ptr<const trace::TraceBundle> bundle;
    std::vector<std::uint32_t> streams;  // indices, in row order
    packet::Errata errata;
    SourceFactory factory;                            // not used for packets
    PacketFactory packet_factory;                     // empty: packet::PacketDecoder
    DecoderFactory decoder;                           // empty: streams are not cut into segments
    std::size_t threads = 1;                          // for the segments of a stream
    std::size_t segment = 0;                          // bytes, approximately; 0: automatic
    std::shared_ptr<const flow::index::Index> index;  // index of the bundle; may be null
    std::optional<SegmentRun> segments;               // of the index, of the one stream; see IndexedSource
    bool cut = true;                                  // allows to cut streams into segments
    std::shared_ptr<RowBudget> budget = std::make_shared<RowBudget>();  // shared by all readers of the table
    std::shared_ptr<StreamFacts> facts;                                 // of the bundle; null: none so far
    // Called every few milliseconds within a packet that takes long; false cancels. From the threads that
    // decode. May be empty.
    std::function<bool()> go_on;
    // Rises by the bytes of streams that are decoded, for progress. Null: they are not counted.
    std::shared_ptr<std::atomic<std::uint64_t>> decoded;
  };
  TableReader(Input input, const Request& request);

  enum class Step : std::uint8_t {
    MORE,       // a slice of work is done; call again
    READY,      // `rows` rows are available
    END,        // end of the table, with fewer rows
    NO_MEMORY,  // out of memory; earlier rows are available
    COUNT,      // the budget requests a count: see RowBudget::Answer. Reading can continue
    NO_ROOM,    // the budget answers STOP
  };
  // Works for a few milliseconds at most. Calls from different threads are allowed, but must not overlap.
  [[nodiscard]] Step step(std::size_t rows);
  // step(), then take() of what is READY, or of the rest at the END; else `part` is null. All columns have
  // cells. For parts that are soon dropped.
  [[nodiscard]] Step step_part(std::size_t rows, std::unique_ptr<Batch>& part);
  // Makes room for `rows` rows in total at once. False: out of memory.
  [[nodiscard]] bool reserve(std::size_t rows) { return sink_.main()->reserve(rows + kSlackRows); }
  // Takes up to `rows` available rows. Null: out of memory.
  // Without `keeps`: their memory may have room for more; for rows that are soon dropped.
  [[nodiscard]] std::unique_ptr<Batch> take(std::size_t rows, bool keeps = true);
  // Attached columns need room for this many rows after the last row of the part.
  static constexpr std::size_t kSlackRows = RowWindow::kSlackRows;
  // Attaches memory for the rows of the current part, unless the rows are in pool memory of the reader
  // already. `part` has room for kSlackRows more rows than the part.
  void attach(const PartMemory& part);
  // Ends the current part: returns up to `rows` rows, their memory, and the uniform columns. Further rows
  // begin the next part.
  [[nodiscard]] PartMemory end_part(std::size_t rows, std::vector<OwnerRun>& runs);
  // The number of rows of the whole table, as the index or earlier reads found. None: not known.
  [[nodiscard]] std::optional<std::size_t> known_rows() const noexcept;
  // The rows go to `window`, the last ones in the end: a pass writes up to kSlackRows rows too far. Before
  // the first step().
  void use_window(std::unique_ptr<Batch> window) noexcept;
  // The rows in the window, which precede those of take(). Null: all rows are elsewhere. After Step::END.
  [[nodiscard]] std::unique_ptr<Batch> take_window();
  // Errors and gaps right before or among the rows that were taken; at the end, all of them. Null: not kept,
  // or out of memory.
  [[nodiscard]] std::unique_ptr<Batch> take_errors() { return sink_.tables().take_errors(); }
  [[nodiscard]] std::unique_ptr<Batch> take_gaps() { return sink_.tables().take_gaps(); }
  [[nodiscard]] std::size_t error_rows() noexcept;  // that were found and not taken yet
  // True if take_errors() or take_gaps() would return rows.
  [[nodiscard]] bool has_error_rows() noexcept { return sink_.tables().has_error_rows(); }

  // Number of threads for each stream; before the first step().
  void set_threads(std::size_t threads) noexcept { input_.threads = threads; }
  // Makes step() return soon, from any thread.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes_done() const noexcept;
  [[nodiscard]] std::uint64_t bytes_total() const noexcept { return bytes_total_; }
  // True if segments of the streams, one stream after the other, keep all threads busy, and streams that are
  // decoded at the same time would hold much of the table twice.
  [[nodiscard]] bool prefers_segments() const noexcept;
  // Of the stream that was read last.
  [[nodiscard]] std::uint64_t instructions() const noexcept { return sink_.instructions(); }
  [[nodiscard]] std::uint64_t branches() const noexcept { return sink_.branches(); }
  [[nodiscard]] const Request& request() const noexcept { return request_; }

 private:
  [[nodiscard]] std::unique_ptr<flow::RowSource> packet_source(std::uint32_t index);
  void open_stream();
  [[nodiscard]] std::unique_ptr<time::TimeTrack> make_track(const trace::Stream& stream) const;
  [[nodiscard]] bool is_timeless(std::uint32_t index) const;
  [[nodiscard]] bool follows_time() const noexcept;
  [[nodiscard]] bool open_indexed(std::uint32_t index, bool times);
  [[nodiscard]] bool can_take_phases() const noexcept;
  void expect_rows();
  void reserve_known_rows();
  [[nodiscard]] std::optional<std::size_t> known_rows(std::uint32_t index) const noexcept;
  [[nodiscard]] std::size_t rows_so_far() noexcept { return window_.rows() + sink_.main()->rows(); }
  [[nodiscard]] bool reads_all_rows() const noexcept;
  [[nodiscard]] Step check_budget();
  void count_bytes() noexcept;
  [[nodiscard]] bool can_cut(const trace::Stream& stream) const noexcept;

  Input input_;
  Request request_;
  std::atomic<bool> cancelled_{false};
  RowSink sink_;
  PartMemory part_;
  RowWindow window_;
  RowBudget::Share share_;
  std::size_t next_stream_ = 0;
  const trace::Stream* stream_ = nullptr;
  std::unique_ptr<time::TimeTrack> row_track_;
  std::unique_ptr<time::TimeTrack> flow_track_;
  std::unique_ptr<flow::RowSource> source_;
  bool source_attaches_ = false;  // source_ attaches parts itself
  bool finished_ = false;
  std::uint64_t bytes_before_ = 0;
  std::uint64_t bytes_counted_ = 0;  // in input_.decoded
  std::size_t rows_before_ = 0;      // of the main table, at the start of the stream
  std::uint64_t bytes_total_ = 0;
};

}  // namespace ptkit::tables::columns
