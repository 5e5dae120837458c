// A random walk, traced by the software trace unit, as a recording, and the rows of a decoder.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "code/image/image.h"
#include "flow/decoder/decoder.h"
#include "flow/parallel/segment.h"
#include "time/track.h"
#include "trace/bundle.h"
#include "walk.h"

namespace ptkit::flow::roundtrip {

// Keeps all rows; blocks as the instructions that they consist of.
class Collector final : public FlowSink {
 public:
  void on_block(const Block& block) override {
    std::uint64_t ip = block.ip;
    for (const BlockInsn& insn : block.insns) {
      ips.push_back(ip);
      ip += insn.size;
    }
  }
  void on_branch(const Branch& branch) override { branches.push_back(branch); }
  void on_event(const Event& event) override {
    if (event.kind == EventKind::OVERFLOW) losses.push_back(ips.size());
    events.push_back(event);
  }
  void on_error(const FlowError& error) override { errors.push_back(error); }
  void on_gap(const Gap& gap) override { gaps.push_back(gap); }

  std::vector<std::uint64_t> ips;
  std::vector<std::uint64_t> losses;  // instructions before each overflow
  std::vector<Branch> branches;
  std::vector<Event> events;
  std::vector<FlowError> errors;
  std::vector<Gap> gaps;
};

inline std::shared_ptr<trace::TraceBundle> bundle_for(const std::vector<walk::CodeRegion>& regions,
                                                      const trace_unit::generator::GeneratorConfig& config,
                                                      std::vector<std::uint8_t> bytes) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  for (const walk::CodeRegion& code : regions) {
    if (code.bytes.empty()) continue;
    trace::CodeRegion region;
    region.address = code.address;
    region.size = code.bytes.size();
    region.bytes = trace::TraceBuffer::from_vector(code.bytes);
    bundle->code.push_back(region);
  }
  trace::Clock& clock = bundle->configuration.clock;
  clock.tsc_ctc_numerator = config.tsc_ctc_numerator;
  clock.tsc_ctc_denominator = config.tsc_ctc_denominator;
  clock.mtc_period_known = true;
  clock.mtc_period = config.mtc_period;
  clock.max_nonturbo_ratio = config.max_nonturbo_ratio;
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(std::move(bytes));
  bundle->streams.push_back(stream);
  return bundle;
}

inline std::shared_ptr<trace::TraceBundle> bundle_of(const walk::Walk& walk,
                                                     const trace_unit::generator::GeneratorConfig& config,
                                                     std::size_t flush_every = 0) {
  return bundle_for(walk.program.regions, config, walk::trace_of(walk, config, flush_every));
}

using MakeEngine = std::function<std::unique_ptr<RowSource>(
    const trace::TraceBundle&, const code::image::Image&, FlowSink&, time::TimeTrack*)>;

inline std::unique_ptr<RowSource> own_engine(const trace::TraceBundle& bundle,
                                             const code::image::Image& image, FlowSink& sink,
                                             time::TimeTrack* track) {
  return std::make_unique<FlowDecoder>(bundle.streams[0], bundle.configuration, image, FlowOptions{}, sink,
                                       track);
}

// Our decoder of a stream, from a checkpoint on. All must outlive it.
inline MakeDecoder maker_of(const trace::Stream& stream, const trace::TraceBundle& bundle,
                            const code::image::Image& image, CodeCachePool& pool) {
  return [&](FlowSink& sink, time::TimeTrack* track, const FlowState* from, bool speculative) {
    const trace::Configuration& configuration = bundle.configuration;
    return from == nullptr ? std::make_unique<FlowDecoder>(stream, configuration, image, FlowOptions{}, sink,
                                                           track, &pool)
                           : std::make_unique<FlowDecoder>(stream, configuration, image, FlowOptions{}, sink,
                                                           track, &pool, *from, speculative);
  };
}

[[nodiscard]] inline Collector decode(const std::shared_ptr<trace::TraceBundle>& bundle,
                                      const MakeEngine& make, bool with_time = false) {
  Collector rows;
  const code::image::Image image(bundle);
  std::unique_ptr<time::TimeTrack> track;
  if (with_time) {
    track = std::make_unique<time::TimeTrack>(bundle->streams[0].data.bytes(), bundle->configuration.clock,
                                              packet::Errata{});
  }
  const std::unique_ptr<RowSource> engine = make(*bundle, image, rows, track.get());
  while (engine->run()) {
  }
  return rows;
}

}  // namespace ptkit::flow::roundtrip
