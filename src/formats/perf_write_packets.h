// What the packets of streams tell of them, for writing them as perf.data. For .cpp files of this folder
// only.
#pragma once

#include <bitset>
#include <functional>
#include <optional>
#include <vector>

#include "packet/packet.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Asked now and then; false: it is not to go on.
using GoOn = std::function<bool()>;

struct StreamPackets {
  std::bitset<packet::kPacketKinds> kinds;  // those that there are
  // perf decodes a guest's code only beside its host's recording. Where all is a guest's: the places of the
  // bytes that say so (PIP.NR), so that it can be written as a processor writes it that conceals VMX.
  std::vector<std::uint64_t> non_root;

  [[nodiscard]] bool has(packet::PacketKind kind) const noexcept {
    return kinds[static_cast<std::size_t>(kind)];
  }
};

// Of each stream; nothing if it was not to go on.
[[nodiscard]] std::optional<std::vector<StreamPackets>> look_at_packets(const trace::TraceBundle& bundle,
                                                                        const GoOn& go_on);

// The first packets of the streams tell of 32-bit code, and of no other.
[[nodiscard]] bool is_32_bit(const trace::TraceBundle& bundle);

// Where tracing goes on at a PSB, as packets up to PSBEND tell; nothing: it is off there.
inline constexpr std::size_t kMostPsbPlus = 256;
[[nodiscard]] std::optional<std::uint64_t> ip_of_psb(base::Bytes bytes);

// The last time that some bytes at the end of a piece of a stream tell; 0: none.
inline constexpr std::size_t kSearchedForTsc = std::size_t{256} << 10U;
[[nodiscard]] std::uint64_t last_tsc(base::Bytes bytes);

}  // namespace ptkit::formats::perf
