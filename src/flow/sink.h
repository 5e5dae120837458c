// Where decoders of control flow (ours and the reference) put their rows, in the order of execution.
#pragma once

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
};

}  // namespace ptkit::flow
