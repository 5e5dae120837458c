// Decodes an encoder's bytes to rows with times.
#pragma once

#include <memory>
#include <vector>

#include "roundtrip.h"

namespace ptkit::capture::test {

using flow::roundtrip::bundle_for;

struct TimedBranch {
  std::uint64_t ip = 0;
  std::uint64_t to = 0;
  time::TimeRange time;
};

struct Decoded final : flow::FlowSink {
  void on_block(const flow::Block& block) override {
    std::uint64_t ip = block.ip;
    for (const flow::BlockInsn& insn : block.insns) {
      ips.push_back(ip);
      ip += insn.size;
    }
  }
  void on_branch(const flow::Branch& row) override {
    if (row.kind == flow::BranchKind::ASYNC) return;
    branches.push_back({row.from_ip, row.to_ip, track->at(row.span.since, row.span.offset)});
  }
  void on_error(const flow::FlowError& row) override { errors.push_back(row); }
  void on_event(const flow::Event& row) override { events.push_back(row); }
  void on_gap(const flow::Gap& row) override { gaps.push_back(row); }

  time::TimeTrack* track = nullptr;
  std::vector<std::uint64_t> ips;
  std::vector<TimedBranch> branches;
  std::vector<flow::Event> events;
  std::vector<flow::FlowError> errors;
  std::vector<flow::Gap> gaps;
};

inline Decoded decode(const std::shared_ptr<trace::TraceBundle>& bundle) {
  Decoded rows;
  const code::image::Image image(bundle);
  const base::Bytes bytes = bundle->streams[0].data.bytes();
  time::TimeTrack track(bytes, bundle->configuration.clock, packet::Errata{});
  time::TimeTrack row_times(bytes, bundle->configuration.clock, packet::Errata{});
  rows.track = &row_times;
  flow::FlowDecoder decoder(bundle->streams[0], bundle->configuration, image, {}, rows, &track);
  while (decoder.run()) {
  }
  rows.track = nullptr;
  return rows;
}

}  // namespace ptkit::capture::test
