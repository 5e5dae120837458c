// Every instruction: our flow decoder, blocks expanded.
#include "common/flow.h"

namespace ptkit::bench {
namespace {

struct InstructionSink final : flow::FlowSink {
  Outcome outcome;
  void on_block(const flow::Block& block) override {
    std::uint64_t ip = block.ip;
    for (const auto& insn : block.insns) {
      outcome.sum += ip;
      ip += insn.size;
    }
    outcome.rows += block.insns.size();
  }
  void on_error(const flow::FlowError&) override { ++outcome.errors; }
};

Outcome run(const trace::TraceBundle& bundle) {
  InstructionSink sink;
  decode_flow(bundle, sink);
  return sink.outcome;
}

Outcome check(const trace::TraceBundle& bundle) {
  DigestSink sink;
  decode_flow(bundle, sink);
  return sink.outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::run, ptkit::bench::check});
}
