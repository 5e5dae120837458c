// Where decoders of control flow (ours and the reference) put their rows, in the order of execution.
#pragma once

#include "flow/bulk.h"
#include "flow/rows.h"

namespace ptkit::flow {

class FlowSink {
 public:
  virtual ~FlowSink() = default;
  virtual void on_context(const Context&) {}
  virtual void on_block(const Block&) {}
  virtual void on_branch(const Branch&) {}
  virtual void on_event(const Event&) {}
  virtual void on_error(const FlowError&) {}
  virtual void on_gap(const Gap&) {}
  // Asked after every packet: true makes run() return, to be called again later.
  [[nodiscard]] virtual bool full() const { return false; }
  // Where rows can be put in bulk: the fast path is taken only for a sink that has this.
  [[nodiscard]] virtual BulkSink* bulk() { return nullptr; }
};

// A decoder of one stream: ours, or the reference behind the same rows.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Goes on until the sink is full, much work was done or the stream ends; returns false when there is
  // nothing more. Never throws for bad input (std::bad_alloc may pass).
  [[nodiscard]] virtual bool run() = 0;
  [[nodiscard]] virtual std::uint64_t position() const noexcept = 0;  // stream offset, for progress
};

}  // namespace ptkit::flow
