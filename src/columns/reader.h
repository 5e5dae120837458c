// Tables from streams, in parts of as many rows as the user wants.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "columns/ahead_source.h"
#include "columns/indexed_source.h"
#include "columns/row_budget.h"
#include "columns/row_sink.h"
#include "packet/errata.h"

namespace ptkit::columns {

// Makes the decoder of a stream: ours, or the reference. `track` is null where no time is needed to decode.
using SourceFactory = std::function<std::unique_ptr<flow::RowSource>(
    std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack* track)>;

// Makes our decoder of a stream, from a checkpoint on (null: from the beginning); see flow::FlowDecoder.
using DecoderFactory = std::function<std::unique_ptr<flow::FlowDecoder>(
    std::uint32_t stream, flow::FlowSink& sink, const flow::Checkpoint* from, bool ahead)>;

// Makes the source of a stream's packets, from its first byte or its first PSB.
using PacketFactory =
    std::function<std::unique_ptr<flow::RowSource>(std::uint32_t stream, bool sync, RowSink& sink)>;

// Reads one table of some streams, one after the other.
class TableReader {
 public:
  struct Input {
    std::shared_ptr<const trace::TraceBundle> bundle;
    std::vector<std::uint32_t> streams;  // indices, in the order of the rows
    packet::Errata errata;
    SourceFactory factory;                      // not used for packets
    PacketFactory packet_factory;               // empty: our packet decoder
    DecoderFactory decoder;                     // empty: streams are not cut into segments
    std::size_t threads = 1;                    // to decode segments of a stream
    std::size_t segment = 0;                    // bytes, about; 0: by itself
    std::shared_ptr<const index::Index> index;  // of the bundle; may be null
    bool cut = true;                            // may streams be cut into segments?
    std::shared_ptr<MemoryPool> memory = std::make_shared<MemoryPool>();  // for rows of segments
    std::shared_ptr<RowBudget> budget = std::make_shared<RowBudget>();    // of all readers of the table
  };
  TableReader(Input input, const Request& request);

  enum class Step : std::uint8_t {
    MORE,       // a slice of work is done; call again
    READY,      // `rows` rows are there
    END,        // all rows are there, fewer than asked for
    NO_MEMORY,  // what was read so far is there
    COUNT,      // the budget says so: see RowBudget::Answer. Can go on all the same
    NO_ROOM,    // the budget says STOP
  };
  // Works for a few milliseconds at most. The same thread or not: calls must not overlap.
  [[nodiscard]] Step step(std::size_t rows);
  // Room for so many rows in all, at once. False: out of memory.
  [[nodiscard]] bool reserve(std::size_t rows) { return sink_.main()->reserve(rows + kSlackRows); }
  // Takes up to `rows` rows that are there (null: out of memory).
  [[nodiscard]] std::unique_ptr<Batch> take(std::size_t rows);
  // Behind the last row that is asked for, columns that are lent need room for so many more.
  static constexpr std::size_t kSlackRows = flow::BulkRoom::kSlack;
  // The rows of the part that begins go straight to this memory, unless they are in such memory of the reader
  // already. It has room for kSlackRows more than the part.
  void lend(const PartMemory& part);
  // Ends that part: up to `rows` rows, and where they lie. Further ones begin the next part.
  [[nodiscard]] PartMemory end_part(std::size_t rows, std::vector<Run>& runs);
  // Errors or gaps met since the last call (null: not kept).
  [[nodiscard]] std::unique_ptr<Batch> take_errors();
  [[nodiscard]] std::unique_ptr<Batch> take_gaps();
  [[nodiscard]] std::size_t error_rows() noexcept;  // that take_errors() or take() would give
  [[nodiscard]] bool has_side_rows() noexcept;      // take_errors() or take_gaps() would give some

  // Threads to decode a stream with; before the first step().
  void set_threads(std::size_t threads) noexcept { input_.threads = threads; }
  // Makes step() return soon, from any thread.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes_done() const noexcept;
  [[nodiscard]] std::uint64_t bytes_total() const noexcept { return bytes_total_; }
  [[nodiscard]] const Request& request() const noexcept { return request_; }

 private:
  void open_stream();
  [[nodiscard]] std::unique_ptr<time::TimeTrack> make_track(const trace::Stream& stream) const;
  [[nodiscard]] bool open_indexed(std::uint32_t index);
  [[nodiscard]] Step ask_budget();
  [[nodiscard]] bool can_cut(const trace::Stream& stream) const noexcept;

  Input input_;
  Request request_;
  std::atomic<bool> cancelled_{false};
  RowSink sink_;
  PartMemory part_;
  RowBudget::Share share_;
  std::size_t next_stream_ = 0;
  const trace::Stream* stream_ = nullptr;
  std::unique_ptr<time::TimeTrack> row_track_;
  std::unique_ptr<time::TimeTrack> flow_track_;
  std::unique_ptr<flow::RowSource> source_;
  bool settles_ = false;  // source_ does so itself
  bool finished_ = false;
  std::uint64_t bytes_before_ = 0;
  std::uint64_t bytes_total_ = 0;
};

}  // namespace ptkit::columns
