// Properties of a stream that follow from its description, without its packets.
#pragma once

#include "trace/bundle.h"

namespace ptkit::flow {

// True if the code or the running thread depends on time. Such a stream can only be decoded from its start.
[[nodiscard]] bool changes_with_time(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept;

}  // namespace ptkit::flow
