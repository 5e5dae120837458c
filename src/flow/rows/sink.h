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
  virtual void on_branch(const Branch&) {}
  virtual void on_event(const Event&) {}
  virtual void on_error(const FlowError&) {}
  virtual void on_gap(const Gap&) {}
  // Called after every packet: true makes run() return, and a later run() continues.
  [[nodiscard]] virtual bool full() const { return false; }
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
