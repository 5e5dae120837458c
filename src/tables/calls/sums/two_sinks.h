// Gives frames to two sinks, such as a table and sums.
#pragma once

#include <cstdint>

#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {

class TwoSinks final : public FrameSink {
 public:
  // Both must outlive this.
  TwoSinks(FrameSink& first, FrameSink& second) : first_(first), second_(second) {}

  void on_frame(const Frame& frame, const Owner& owner) override {
    first_.on_frame(frame, owner);
    second_.on_frame(frame, owner);
  }
  void on_anomaly(const Anomaly& anomaly, const Owner& owner) override {
    first_.on_anomaly(anomaly, owner);
    second_.on_anomaly(anomaly, owner);
  }
  void on_window(std::span<const std::uint64_t> open, std::uint64_t frames) override {
    first_.on_window(open, frames);
    second_.on_window(open, frames);
  }
  void on_hidden(const Frame& frame) override {
    first_.on_hidden(frame);
    second_.on_hidden(frame);
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return first_.bytes() + second_.bytes(); }
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override {
    return first_.later_bytes(counts) + second_.later_bytes(counts);
  }

 private:
  FrameSink& first_;
  FrameSink& second_;
};

}  // namespace ptkit::tables::calls
