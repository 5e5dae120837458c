// Decodes the first stream of a bundle by FlowDecoder into any sink.
#pragma once

#include "common/contest.h"
#include "flow/decoder/decoder.h"

namespace ptkit::bench {

inline void decode_flow(const trace::TraceBundle& bundle, flow::FlowSink& sink) {
  // A shared_ptr without ownership: the bundle outlives the decoder.
  const code::image::Image image(std::shared_ptr<const trace::TraceBundle>(std::shared_ptr<void>(), &bundle));
  flow::FlowOptions options;
  options.resync = flow::Resync::PSB;
  options.errata = packet::errata_for(bundle.configuration.cpu);
  flow::FlowDecoder decoder(bundle.streams.front(), bundle.configuration, image, options, sink, nullptr);
  while (decoder.run()) {
  }
}

// The IP of every instruction, in order.
struct DigestSink final : flow::FlowSink {
  Outcome outcome;
  Digest digest;
  void on_block(const flow::Block& block) override {
    std::uint64_t ip = block.ip;
    for (const auto& insn : block.insns) {
      digest.add(ip);
      outcome.sum += ip;
      ip += insn.size;
    }
    outcome.rows += block.insns.size();
    outcome.digest = digest.value();
  }
  void on_error(const flow::FlowError&) override { ++outcome.errors; }
};

}  // namespace ptkit::bench
