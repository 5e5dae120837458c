// Checkpoints in files.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "flow/checkpoint.h"

namespace ptkit::flow {

// To be changed with what a Checkpoint consists of, or with what decoding makes of it.
inline constexpr std::uint32_t kCheckpointVersion = 2;

[[nodiscard]] std::vector<std::uint8_t> to_bytes(const Checkpoint& checkpoint);

// False, and no checkpoint, if these are not the bytes of one of this stream.
[[nodiscard]] bool from_bytes(base::Bytes bytes, const trace::Stream& stream,
                              const trace::TraceBundle& bundle, Checkpoint& out);

}  // namespace ptkit::flow
