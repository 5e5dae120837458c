// The fast path of a FlowDecoder. It decodes plain packets, and returns the state to the simple decoder at
// the first other packet. Both emit the same rows.
#pragma once

#include <vector>

#include "flow/events/event_decoder.h"
#include "flow/fast/code_cache_pool.h"
#include "flow/fast/fast_loop.h"

namespace ptkit::flow {

class FastFlow {
 public:
  // The parts of one decoder. `bulk` may be null: then there is no fast path. A path cache above `most_bytes`
  // is emptied.
  FastFlow(packet::PacketDecoder& packets, EventDecoder& events, EventBinder& binder, Walker& walker,
           CodeCaches& caches, Recovery& recovery, ContextTracker& context, const AddressFilter& filter,
           BulkSink* bulk, std::size_t most_bytes);
  ~FastFlow();
  FastFlow(const FastFlow&) = delete;
  FastFlow& operator=(const FastFlow&) = delete;

  // Uses plain packets before `end`, and PSB+ up to the one at `last_psb`. The next packet is then for the
  // simple decoder, unless the sink is full. Returns false if no packet was used.
  bool run(std::uint64_t end, std::uint64_t last_psb) {
    return bulk_ != nullptr && plain() && limit_to_unchanged(end) && work(end, last_psb);
  }
  // Emits the edges that were counted so far.
  void emit_counts();

 private:
  [[nodiscard]] bool plain() const noexcept;
  [[nodiscard]] bool limit_to_unchanged(std::uint64_t& end);
  bool work(std::uint64_t end, std::uint64_t last_psb);
  [[nodiscard]] FastState load_state() const;
  void store_state(FastState& state, const BulkRoom& room);
  void follow_time(const FastState& state, std::uint64_t begin);
  void finish_tnt(const FastState& state);
  void emit_counts(CachedCode& code);

  packet::PacketDecoder& packets_;
  EventDecoder& events_;
  EventBinder& binder_;
  Walker& walker_;
  CodeCaches& caches_;
  Recovery& recovery_;
  ContextTracker& context_;
  BulkSink* bulk_;
  std::size_t most_bytes_;
  FastLoop loop_;
  std::vector<CachedCode*> counted_;  // their paths may have counts
  std::uint64_t retry_at_ = 0;        // stream offset before which code or threads may change
  std::uint32_t counted_space_ = 0;   // address space of the counts
  std::uint32_t counted_phase_ = 0;
  bool in_order_ = true;  // BulkRoom::in_order of the counts
};

}  // namespace ptkit::flow
