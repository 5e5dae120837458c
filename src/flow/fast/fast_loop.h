// The hot loop of the fast path: runs plain packets through the automaton of a PathCache.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "flow/code/return_stack.h"
#include "flow/events/event_binder.h"
#include "flow/events/event_state.h"
#include "flow/events/psb_header.h"
#include "flow/fast/path_cache.h"
#include "flow/rows/bulk.h"
#include "packet/decoder.h"

namespace ptkit::flow {

enum class FastStop : std::uint8_t {
  NONE,    // running
  PACKET,  // the simple decoder has to use the packet at `position`
  REST,    // the first bits of the TNT packet at `position` are used; `rest` is for the simple decoder
  FULL,    // the room is full, or the pass is long enough
};

// The last used packet other than timing packets and PADs.
enum class FastLast : std::uint8_t { NONE, BRANCH, ENABLED, DISABLED };

// State of decoding between packets, and what the loop has to know.
struct FastState {
  std::uint64_t end = 0;                // end of the stream's part; the loop stops somewhat earlier
  std::uint64_t last_psb = UINT64_MAX;  // a PSB+ after this offset is for the simple decoder
  PsbKnown known;
  packet::DecoderState packets;
  EventState events;
  BinderState binder;
  std::uint64_t end_ip = 0;  // IP of the walker, if it has moved
  NodeId node = 0;           // 0: packets are disabled
  FastLast last = FastLast::NONE;
  bool moved = false;      // the walker has moved
  bool repeats = false;    // PSB+ or MODE.Exec that repeat known state were used
  std::uint64_t rest = 1;  // for REST: with a leading 1, as PathCache::bits() takes them
};

class FastLoop {
 public:
  FastLoop(base::Bytes stream, const AddressFilter& filter, CallStack& calls)
      : stream_(stream), filter_(filter), calls_(calls) {}

  [[nodiscard]] FastStop run(PathCache& paths, FastState& state, BulkRoom& room);

 private:
  base::Bytes stream_;
  const AddressFilter& filter_;
  CallStack& calls_;
};

}  // namespace ptkit::flow
