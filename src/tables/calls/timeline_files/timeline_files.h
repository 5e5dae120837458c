// Timelines of calls in formats of other programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "tables/calls/timeline/call_timeline.h"
#include "tables/calls/timeline_files/timeline_facts.h"

namespace ptkit::tables::calls {

// Bytes on their way to a file, in chunks.
class ByteSink {
 public:
  // Takes a chunk; false: bytes after it are dropped.
  using Take = std::function<bool(std::string_view)>;

  explicit ByteSink(Take take) : take_(std::move(take)) { chunk_.reserve(kChunk + kChunk / 4); }

  void put(std::string_view bytes) {
    if (stopped_) [[unlikely]]
      return;
    chunk_ += bytes;
    if (chunk_.size() >= kChunk) [[unlikely]]
      flush();
  }
  void put(char byte) { put(std::string_view(&byte, 1)); }
  // After the last byte. False: not all bytes were taken.
  [[nodiscard]] bool finish() {
    if (!stopped_ && !chunk_.empty()) flush();
    return !stopped_;
  }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  // Bytes that were taken or wait.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return taken_ + chunk_.size(); }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;

  void flush() {
    taken_ += chunk_.size();
    stopped_ = !take_(chunk_);
    chunk_.clear();
  }

  Take take_;
  std::string chunk_;
  std::uint64_t taken_ = 0;
  bool stopped_ = false;
};

// Each function writes a whole file. False: the sink stopped.
// Perfetto: TracePackets of protocol buffers.
[[nodiscard]] bool write_perfetto(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink);
// Fuchsia trace format.
[[nodiscard]] bool write_fxt(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink);
// Chrome's trace events, as JSON.
[[nodiscard]] bool write_chrome(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink);
// speedscope: a profile of events for each track, as JSON.
[[nodiscard]] bool write_speedscope(const CallTimeline& timeline, const TimelineFacts& facts, ByteSink& sink);

}  // namespace ptkit::tables::calls
