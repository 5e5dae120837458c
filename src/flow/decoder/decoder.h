// Decodes packets and code into control flow. This simple and complete decoder defines the rows; the fast
// path has to emit the same.
#pragma once

#include <memory>

#include "code/image/image.h"
#include "flow/fast/code_cache_pool.h"
#include "flow/rows/sink.h"
#include "packet/errata.h"
#include "time/track.h"

namespace ptkit::flow {

struct FlowState;
struct SpeculationDeps;

enum class Resync : std::uint8_t {
  IP,   // after an error, continue at the next packet with a full IP where that is safe
  PSB,  // after an error, continue at the next PSB, as libipt does
};

// Limit of a path cache: some million paths.
inline constexpr std::size_t kMostPathBytes = std::size_t{512} << 20U;

struct FlowOptions {
  bool watch_filter = false;  // look for signs of address ranges that are not known: CodeCachePool
  Resync resync = Resync::IP;
  packet::Errata errata;
  bool ticks = false;                            // emit EventKind::TICK rows
  bool fast = true;                              // use the fast path where possible; the rows are the same
  std::size_t most_path_bytes = kMostPathBytes;  // a larger path cache is emptied; the rows are the same
  bool ticks_over_overflow = false;              // the cycle length from before an overflow holds after it
};

// Decodes one stream. Decoded code is cached: no instruction is disassembled twice by one decoder, or by
// successive decoders that share a pool.
class FlowDecoder final : public RowSource {
 public:
  // All references must outlive the decoder. `track` may be null: then code that varies with time is that of
  // kTscMin, and `stream.switches` are not applied. `pool` may be null; else it belongs to this image.
  FlowDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
              const code::image::Image& image, const FlowOptions& options, FlowSink& sink,
              time::TimeTrack* track, CodeCachePool* pool = nullptr);
  // Continues from a checkpoint of this stream. `speculative`: the checkpoint is predicted, so the decoder
  // records what it depends on (see speculation_deps()).
  FlowDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
              const code::image::Image& image, const FlowOptions& options, FlowSink& sink,
              time::TimeTrack* track, CodeCachePool* pool, const FlowState& from, bool speculative);
  ~FlowDecoder() override;

  // Makes run() stop (and return false) after the first complete PSB+ with its PSB above offset `psb`.
  // The next run() continues to the end.
  void stop_after_psb_above(std::uint64_t psb) noexcept;
  [[nodiscard]] bool stopped() const noexcept;  // at such a PSB+, and not at the end
  [[nodiscard]] FlowState checkpoint() const;   // if stopped(): state there; at the end: the final state
  [[nodiscard]] SpeculationDeps speculation_deps() const noexcept;

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::flow
