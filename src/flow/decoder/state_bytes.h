// States in files.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "flow/decoder/flow_state.h"

namespace ptkit::flow {

// Changes with the fields of a FlowState, and with their meaning.
inline constexpr std::uint32_t kStateVersion = 5;

[[nodiscard]] std::vector<std::uint8_t> to_bytes(const FlowState& state);

// False if the bytes are not a state of this stream; `out` is then unspecified.
[[nodiscard]] bool from_bytes(base::Bytes bytes, const trace::Stream& stream,
                              const trace::TraceBundle& bundle, FlowState& out);

}  // namespace ptkit::flow
