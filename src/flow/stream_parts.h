// What decoders of a stream have in common, be it of packets or of branch records.
#pragma once

#include <algorithm>

#include "flow/context.h"
#include "flow/recovery.h"

namespace ptkit::flow {

// Base of a decoder; all references must outlive it.
struct StreamParts {
  // Instructions after which run() lets its caller look around: walks through code that was not seen before
  // take the most time.
  static constexpr std::uint64_t kSlice = std::uint64_t{1} << 18U;

  StreamParts(const trace::Stream& stream, const trace::Configuration& configuration,
              const image::Image& image, FlowSink& sink, time::TimeTrack* track, CodeCachePool* pool)
      : stream_(stream),
        bytes_(stream.data.bytes()),
        sink_(sink),
        filter_(configuration),
        walker_(sink, filter_, pool, configuration.cs_base),
        context_(stream, image, track, sink, walker_),
        recovery_(sink) {}

  // Nothing reaches across a loss: the part of the stream that is being decoded ends here.
  [[nodiscard]] std::uint64_t limit() const noexcept {
    return next_loss_ < stream_.losses.size()
               ? std::min<std::uint64_t>(stream_.losses[next_loss_].offset, bytes_.size())
               : bytes_.size();
  }
  // Shall run() return, which began when `walked` instructions had been given?
  [[nodiscard]] bool pauses(std::uint64_t walked) const noexcept {
    return sink_.full() || walker_.instructions() - walked >= kSlice;
  }

  const trace::Stream& stream_;
  base::Bytes bytes_;
  FlowSink& sink_;
  AddressFilter filter_;
  Walker walker_;
  ContextTracker context_;
  Recovery recovery_;
  std::size_t next_loss_ = 0;  // in stream_.losses
};

}  // namespace ptkit::flow
