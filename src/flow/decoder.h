// Packets and code to control flow: the simple and complete decoder that defines the answer.
#pragma once

#include <memory>

#include "flow/code_cache_pool.h"
#include "flow/sink.h"
#include "image/image.h"
#include "packet/errata.h"
#include "time/track.h"

namespace ptkit::flow {

struct Checkpoint;
struct Reliance;

enum class Resync : std::uint8_t {
  IP,   // after an error go on at the next packet with a full IP where that is safe
  PSB,  // at the next PSB, as libipt does
};

// Of one decision graph: some million ways.
inline constexpr std::size_t kMostGraphBytes = std::size_t{512} << 20U;

struct FlowOptions {
  Resync resync = Resync::IP;
  packet::Errata errata;
  bool ticks = false;  // give EventKind::TICK rows
  bool fast = true;    // take the fast path where there is one: the rows are the same
  std::size_t most_graph_bytes = kMostGraphBytes;  // a larger one is forgotten: the rows are the same
  bool ticks_over_overflow = false;  // the length of a cycle is taken to be the same after an overflow
};

// Decodes one stream. Keeps decoded code: no instruction is disassembled twice by one decoder, nor by several
// ones after each other that share a pool.
class FlowDecoder final : public RowSource {
 public:
  // All references must outlive the decoder. `track` may be null: then time-varying code is seen as at
  // kTscMin, and `stream.switches` are not applied. `pool` may be null; else it is one of this image.
  FlowDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
              const image::Image& image, const FlowOptions& options, FlowSink& sink, time::TimeTrack* track,
              CodeCachePool* pool = nullptr);
  // The same, from a checkpoint of this stream on. `ahead`: the checkpoint is an assumption, so that what is
  // taken from it is noted (see reliance()).
  FlowDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
              const image::Image& image, const FlowOptions& options, FlowSink& sink, time::TimeTrack* track,
              CodeCachePool* pool, const Checkpoint& from, bool ahead);
  ~FlowDecoder() override;

  // Makes run() stop (and return false) behind the first whole PSB+ whose PSB stands behind `psb`. The next
  // run() goes on to the end.
  void stop_behind_psb_after(std::uint64_t psb) noexcept;
  [[nodiscard]] bool stopped() const noexcept;  // there, and not at the end
  [[nodiscard]] Checkpoint checkpoint() const;  // if stopped(); at the end: where it ended
  [[nodiscard]] Reliance reliance() const noexcept;

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::flow
