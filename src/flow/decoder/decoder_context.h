// Common parts of the packet decoder and the branch record decoder.
#pragma once

#include <algorithm>

#include "flow/events/context.h"
#include "flow/events/recovery.h"
#include "flow/fast/code_cache_pool.h"

namespace ptkit::flow {

// Base of a decoder. All references must outlive it.
struct DecoderContext {
  // Instructions after which run() returns: decoding code for the first time is the slowest step.
  static constexpr std::uint64_t kSlice = std::uint64_t{1} << 18U;

  DecoderContext(const trace::Stream& stream, const trace::Configuration& configuration,
                 const code::image::Image& image, FlowSink& sink, time::TimeTrack* track, CodeCachePool* pool)
      : stream_(stream),
        bytes_(stream.data.bytes()),
        sink_(sink),
        filter_(configuration),
        caches_(pool, configuration.cs_base),
        walker_(sink, filter_, caches_),
        context_(stream, image, track, sink, walker_),
        recovery_(sink) {}

  // End of the current part of the stream, at the next loss. Nothing spans a loss.
  [[nodiscard]] std::uint64_t limit() const noexcept {
    return next_loss_ < stream_.losses.size()
               ? std::min<std::uint64_t>(stream_.losses[next_loss_].offset, bytes_.size())
               : bytes_.size();
  }
  // True if run() has to return. It began after `walked` instructions.
  [[nodiscard]] bool pauses(std::uint64_t walked) const noexcept {
    return sink_.full() || walker_.instructions() - walked >= kSlice;
  }

  const trace::Stream& stream_;
  base::Bytes bytes_;
  FlowSink& sink_;
  AddressFilter filter_;
  CodeCaches caches_;
  Walker walker_;
  ContextTracker context_;
  Recovery recovery_;
  std::size_t next_loss_ = 0;  // index in stream_.losses
};

}  // namespace ptkit::flow
