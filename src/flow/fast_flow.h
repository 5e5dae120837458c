// The fast path of a FlowDecoder: takes over while packets are plain, and hands the simple decoder's state
// back when one is not. Rows are the same, whoever gives them.
#pragma once

#include <vector>

#include "flow/event_decoder.h"
#include "flow/fast_loop.h"

namespace ptkit::flow {

class FastFlow {
 public:
  // The parts of one decoder. `bulk` may be null: then nothing is fast. A graph that has grown above
  // `most_bytes` is forgotten.
  FastFlow(packet::PacketDecoder& packets, EventDecoder& events, Placer& placer, Walker& walker,
           Recovery& recovery, ContextTracker& context, const AddressFilter& filter, BulkSink* bulk,
           std::size_t most_bytes);
  ~FastFlow();
  FastFlow(const FastFlow&) = delete;
  FastFlow& operator=(const FastFlow&) = delete;

  // Uses packets of the stream before `end` while they are plain, PSB+ up to the one at `last_psb`.
  // Afterwards the next one is for the simple decoder, unless the sink is full. False: there was none.
  bool run(std::uint64_t end, std::uint64_t last_psb) {
    return bulk_ != nullptr && plain() && quiet(end) && work(end, last_psb);
  }
  // Gives what was only counted so far.
  void give_counts();

 private:
  [[nodiscard]] bool plain() const noexcept;
  [[nodiscard]] bool quiet(std::uint64_t& end);
  bool work(std::uint64_t end, std::uint64_t last_psb);
  [[nodiscard]] FastState take_state() const;
  void give_state(const FastState& state, const BulkRoom& room);
  void follow_time(const FastState& state, std::uint64_t begin);
  void finish_tnt(const FastState& state, std::uint64_t walked);
  void give_counts(DecisionGraph& graph);

  packet::PacketDecoder& packets_;
  EventDecoder& events_;
  Placer& placer_;
  Walker& walker_;
  Recovery& recovery_;
  ContextTracker& context_;
  BulkSink* bulk_;
  std::size_t most_bytes_;
  FastLoop loop_;
  std::vector<BlockCache*> counted_;  // whose graphs may have counts
  std::uint64_t look_at_ = 0;         // before, code or threads may change
  std::uint32_t counted_space_ = 0;   // for which they are
  bool in_order_ = true;              // how the sink wants them
};

}  // namespace ptkit::flow
