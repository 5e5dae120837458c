// Destination of the rows of a decoder (FlowDecoder or the reference), in execution order.
#pragma once

#include "flow/rows/bulk.h"
#include "flow/rows/rows.h"

namespace ptkit::flow {

class FlowSink {
 public:
  virtual ~FlowSink() = default;
  virtual void on_context(const Context&) {}
  // Decoding goes on at a state, in this context: nothing changes in the stream.
  virtual void on_continued(const Context& context) { on_context(context); }
  virtual void on_block(const Block&) {}
  // True: long straight code may come as on_straight_code() instead of on_block(), by its number of
  // instructions.
  [[nodiscard]] virtual bool takes_straight_code() const { return false; }
  virtual void on_straight_code(const StreamSpan&, std::uint64_t /*instructions*/) {}
  virtual void on_branch(const Branch&) {}
  virtual void on_event(const Event&) {}
  virtual void on_error(const FlowError&) {}
  virtual void on_gap(const Gap&) {}
  // Called after every packet: true makes run() return, and a later run() continues.
  [[nodiscard]] virtual bool full() const { return false; }
  // Asked now and then within long walks: true ends the walk and makes full() true. Rows of a decode that was
  // cancelled have no meaning.
  [[nodiscard]] virtual bool cancelled() const { return false; }
  // Destination of rows in bulk. The fast path runs only if the sink has one.
  [[nodiscard]] virtual BulkSink* bulk() { return nullptr; }
};

// A decoder of one stream that emits rows: FlowDecoder, RecordDecoder or the reference.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Continues until the sink is full, a slice of work is done, or the stream ends. Returns false at the end.
  // Never throws on bad input (std::bad_alloc may pass).
  [[nodiscard]] virtual bool run() = 0;
  [[nodiscard]] virtual std::uint64_t position() const noexcept = 0;  // stream offset, for progress
};

}  // namespace ptkit::flow
