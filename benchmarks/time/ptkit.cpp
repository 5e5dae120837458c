// Time alone: the interval of every stream offset that packets have, queried in order. The spans are made
// before.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "common/contest.h"
#include "packet/decoder.h"
#include "time/track.h"

namespace ptkit::bench {
namespace {

// A stream span, as distances: the queries shall not take more memory bandwidth than need be.
struct Step {
  std::uint16_t offset;  // from the offset of the span before
  std::uint16_t since;   // back from the offset
};

class Steps {
 public:
  void add(std::uint64_t since, std::uint64_t offset) {
    constexpr std::uint64_t kMost = UINT16_MAX;
    for (; offset - last_ > kMost; last_ += kMost) steps_.push_back({kMost, 0});
    steps_.push_back({static_cast<std::uint16_t>(offset - last_),
                      static_cast<std::uint16_t>(std::min(offset - since, kMost))});
    last_ = offset;
  }
  [[nodiscard]] const std::vector<Step>& all() const noexcept { return steps_; }

 private:
  std::vector<Step> steps_;
  std::uint64_t last_ = 0;
};

// The branches of a TNT packet may be as old as the packet before it; all else is as old as its packet.
Steps steps_of(base::Bytes stream) {
  Steps steps;
  packet::PacketDecoder decoder(stream);
  packet::Packet packet;
  std::uint64_t before = 0;
  if (decoder.sync_forward(0) != base::Status::OK) return steps;
  for (;;) {
    const base::Status status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) return steps;
    if (status != base::Status::OK) {
      if (decoder.sync_forward() != base::Status::OK) return steps;
      continue;
    }
    const bool tnt = packet.kind == packet::PacketKind::TNT_8 || packet.kind == packet::PacketKind::TNT_64;
    if (tnt || packet::has_ip_payload(packet.kind)) {
      steps.add(tnt ? before : packet.offset, packet.offset);
      before = packet.offset;
    }
  }
}

const std::vector<Step>& steps_of(const trace::TraceBundle& bundle) {
  static const Steps steps = steps_of(bundle.streams.front().data.bytes());
  return steps.all();
}

template <bool kDigest>
Outcome ask(const trace::TraceBundle& bundle) {
  std::span<const Step> steps = steps_of(bundle);
  const trace::Stream& stream = bundle.streams.front();
  time::TimeTrack track(stream.data.bytes(), bundle.configuration.clock,
                        packet::errata_for(bundle.configuration.cpu), stream.losses);
  Outcome outcome;
  outcome.rows = steps.size();
  Digest digest;
  std::array<time::TimeQuery, 512> queries;
  std::array<time::TimeRange, queries.size()> ranges;
  std::uint64_t offset = 0;
  while (!steps.empty()) {
    const std::size_t count = std::min(steps.size(), queries.size());
    for (std::size_t i = 0; i < count; ++i) {
      offset += steps[i].offset;
      queries[i] = {offset - steps[i].since, offset};
    }
    steps = steps.subspan(count);
    track.at(std::span(queries).first(count), ranges.data());
    for (const time::TimeRange& range : std::span(ranges).first(count)) {
      outcome.sum += range.tsc + range.error;
      if constexpr (!kDigest) continue;
      digest.add(range.tsc);
      digest.add(range.error);
      digest.add(static_cast<std::uint64_t>(range.source) << 1 | static_cast<std::uint64_t>(range.known));
    }
  }
  outcome.digest = digest.value();
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::ask<false>, ptkit::bench::ask<true>});
}
