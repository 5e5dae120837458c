// The hot loop: packets that mean nothing special, from the memory of a DecisionGraph.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "flow/bulk.h"
#include "flow/decision_graph.h"
#include "flow/psb_header.h"
#include "flow/return_stack.h"
#include "flow/tip_order.h"

namespace ptkit::flow {

enum class FastStop : std::uint8_t {
  NONE,    // not yet
  PACKET,  // the packet at `position` is for the simple decoder
  REST,    // so are the bits `rest` of the TNT packet at `position`, whose first ones were used
  FULL,    // the room is full, or enough was done
};

// Packets that decide nothing (timing, PAD) aside: the last one that was used.
enum class FastLast : std::uint8_t { NONE, BRANCH, ENABLED, DISABLED };

// What decoding carries from packet to packet; see EventDecoder, PacketDecoder and Placer for what it means.
struct FastState {
  static constexpr std::uint64_t kNone = UINT64_MAX;

  std::uint64_t end = 0;                // of the stream's part: the loop stops somewhat earlier
  std::uint64_t last_psb = UINT64_MAX;  // PSB+ that begin behind this are for the simple decoder
  PsbKnown known;
  std::uint64_t position = 0;
  std::uint64_t last_ip = 0;
  std::uint64_t since = 0;
  std::uint64_t tnt_before = kNone;
  std::uint64_t resume_ip = 0;
  std::uint64_t end_ip = 0;  // packets are off: where the walker stands
  NodeId node = 0;           // 0: packets are off
  std::uint8_t tip_watch = 0;
  bool tips_deferred = true;
  TipOrder tip_order;
  FastLast last = FastLast::NONE;
  bool moved = false;      // the walker
  std::uint64_t psbs = 0;  // that were used
  // REST
  std::uint64_t rest = 1;                 // with a leading 1, as DecisionGraph::bits() takes them
  std::uint64_t instructions_before = 0;  // in the room, when the packet began
};

class FastLoop {
 public:
  FastLoop(base::Bytes stream, const AddressFilter& filter, CallStack& calls)
      : stream_(stream), filter_(filter), calls_(calls) {}

  [[nodiscard]] FastStop run(DecisionGraph& graph, FastState& state, BulkRoom& room);

 private:
  base::Bytes stream_;
  const AddressFilter& filter_;
  CallStack& calls_;
};

}  // namespace ptkit::flow
