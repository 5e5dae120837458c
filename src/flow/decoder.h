// Packets and code to control flow: the simple and complete decoder that defines the answer.
#pragma once

#include <memory>

#include "flow/sink.h"
#include "image/image.h"
#include "packet/errata.h"
#include "time/track.h"

namespace ptkit::flow {

enum class Resync : std::uint8_t {
  IP,   // after an error go on at the next packet with a full IP where that is safe
  PSB,  // at the next PSB, as libipt does
};

struct FlowOptions {
  Resync resync = Resync::IP;
  packet::Errata errata;
  bool ticks = false;  // give EventKind::TICK rows
};

// Decodes one stream. Keeps decoded code: no instruction is disassembled twice by one decoder.
class FlowDecoder {
 public:
  // All references must outlive the decoder. `track` may be null: then time-varying code is seen as at kTscMin, and
  // `stream.switches` are not applied.
  FlowDecoder(const trace::Stream& stream, const trace::Configuration& configuration, const image::Image& image,
              const FlowOptions& options, FlowSink& sink, time::TimeTrack* track);
  ~FlowDecoder();

  // Goes on until the sink is full or the stream ends; returns false when there is nothing more.
  // Never throws for bad input (std::bad_alloc may pass).
  [[nodiscard]] bool run();
  [[nodiscard]] std::uint64_t position() const noexcept;  // stream offset, for progress

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::flow
