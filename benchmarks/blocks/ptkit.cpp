// Every block: FlowDecoder, into a sink of blocks.
#include "common/flow.h"

namespace ptkit::bench {
namespace {

struct BlockSink final : flow::FlowSink {
  Outcome outcome;
  void on_block(const flow::Block& block) override {
    outcome.rows += block.insns.size();
    // libipt splits blocks elsewhere, so only numbers of instructions are comparable.
    outcome.sum += block.insns.size();
  }
  void on_error(const flow::FlowError&) override { ++outcome.errors; }
};

Outcome run(const trace::TraceBundle& bundle) {
  BlockSink sink;
  decode_flow(bundle, sink);
  return sink.outcome;
}

Outcome check(const trace::TraceBundle& bundle) {
  DigestSink sink;
  decode_flow(bundle, sink);
  sink.outcome.sum = sink.outcome.rows;
  return sink.outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::run, ptkit::bench::check});
}
