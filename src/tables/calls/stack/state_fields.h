// Fields of call stacks in files, and their limits: files may be damaged or hostile.
#pragma once

#include <cstdint>

#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {

struct StateLimits {
  std::uint64_t functions = 0;  // numbers are below
  std::uint64_t spaces = 0;
  std::uint64_t frames = 0;  // of a stream
};

template <typename Fields>
void state_fields(Fields& fields, StreamPosition& position) {
  fields(position.instructions);
  fields(position.branches);
  fields(position.stream_instructions);
  fields(position.offset);
  fields(position.tsc);
  fields(position.tsc_error);
  fields(position.time_known);
}

template <typename Fields>
void state_fields(Fields& fields, Owner& owner) {
  fields(owner.cpu);
  fields(owner.pid);
  fields(owner.tid);
  fields(owner.space);
}

}  // namespace ptkit::tables::calls
