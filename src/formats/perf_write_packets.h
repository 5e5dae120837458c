// What the packets of streams tell of them, for writing them as perf.data. For .cpp files of this folder
// only.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "packet/scan.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Asked now and then; false: it is not to go on.
using GoOn = std::function<bool()>;

struct StreamPackets {
  packet::PacketCounts counts;
  // perf decodes a guest's code only beside its host's recording. Where all is a guest's: the places of the
  // bytes that say so (PIP.NR), so that it can be written as a processor writes it that conceals VMX.
  std::vector<std::uint64_t> non_root;

  [[nodiscard]] bool has(packet::PacketKind kind) const noexcept {
    return counts.packets[static_cast<std::size_t>(kind)] != 0;
  }
};

// Of each stream; nothing if it was not to go on.
[[nodiscard]] std::optional<std::vector<StreamPackets>> look_at_packets(const trace::TraceBundle& bundle,
                                                                        const GoOn& go_on);

// The first packets of the streams tell of 32-bit code, and of no other.
[[nodiscard]] bool is_32_bit(const trace::TraceBundle& bundle);

// The last time that some bytes of a stream tell near their end; 0: none.
[[nodiscard]] std::uint64_t last_tsc(base::Bytes bytes);

}  // namespace ptkit::formats::perf
