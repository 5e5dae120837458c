// Checkpoints in files.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "flow/decoder/checkpoint.h"

namespace ptkit::flow {

// Changes with the fields of a Checkpoint, and with their meaning.
inline constexpr std::uint32_t kCheckpointVersion = 3;

[[nodiscard]] std::vector<std::uint8_t> to_bytes(const Checkpoint& checkpoint);

// False if the bytes are not a checkpoint of this stream; `out` is then unspecified.
[[nodiscard]] bool from_bytes(base::Bytes bytes, const trace::Stream& stream,
                              const trace::TraceBundle& bundle, Checkpoint& out);

}  // namespace ptkit::flow
