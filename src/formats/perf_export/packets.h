// Surveys the packets of streams, to write them as perf.data. For .cpp files of this folder only.
#pragma once

#include <bitset>
#include <functional>
#include <optional>
#include <vector>

#include "packet/packet.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Called repeatedly; false: stop.
using GoOn = std::function<bool()>;

struct StreamPackets {
  std::bitset<packet::kPacketKinds> kinds;  // kinds that occur
  // perf decodes a guest's code only with the host's recording. If the whole stream is a guest's: offsets of
  // the bytes with PIP.NR. They are cleared in the output, as by a CPU that conceals VMX.
  std::vector<std::uint64_t> non_root;

  [[nodiscard]] bool has(packet::PacketKind kind) const noexcept {
    return kinds[static_cast<std::size_t>(kind)];
  }
};

// Returns a survey of each stream; nullopt: stopped.
[[nodiscard]] std::optional<std::vector<StreamPackets>> survey_packets(const trace::TraceBundle& bundle,
                                                                       const GoOn& go_on);

// Returns true if MODE.Exec in the streams' first packets shows 32-bit code only.
[[nodiscard]] bool is_32_bit(const trace::TraceBundle& bundle);

// Returns the IP of a PSB+ (its FUP); nullopt: tracing is disabled there.
inline constexpr std::size_t kMostPsbPlus = 256;
[[nodiscard]] std::optional<std::uint64_t> ip_of_psb(base::Bytes bytes);

// Returns the last TSC packet's value in bytes from the end of a chunk; 0: none.
inline constexpr std::size_t kSearchedForTsc = std::size_t{256} << 10U;
[[nodiscard]] std::uint64_t last_tsc(base::Bytes bytes);

}  // namespace ptkit::formats::perf
