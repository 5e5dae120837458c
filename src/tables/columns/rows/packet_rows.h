// Rows of packets in bulk.
#pragma once

#include <vector>

#include "packet/scan.h"
#include "tables/columns/batch.h"
#include "time/track.h"

namespace ptkit::tables::columns {

class PacketRows {
 public:
  // Adds up to `most` rows of the packets from `state` on. The batch must have room for
  // packet::kPacketRowSlack more. `track` may be null. Makes the same queries of it as rows one by one, in
  // the same order.
  [[nodiscard]] packet::FilledPackets fill(Batch& batch, base::Bytes stream, packet::DecoderState& state,
                                           const packet::Errata& errata, std::size_t most,
                                           time::TimeTrack* track);

 private:
  std::vector<std::uint64_t> offsets_;  // if there is no column of offsets
};

}  // namespace ptkit::tables::columns
