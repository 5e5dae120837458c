// State of the Walker between two packets.
#pragma once

#include <cstdint>
#include <optional>

#include "flow/code/block_cache.h"
#include "flow/code/return_stack.h"
#include "flow/rows/rows.h"

namespace ptkit::flow {

// The instruction that events were bound to, while execution is right after it, or at its branch.
struct BoundInsn {
  BlockInsn insn;
  std::uint64_t ip = 0;
  std::uint64_t kinds = 0;  // of these events, a bit each
};

// No TNT bits wait for a target.
struct WalkState {
  StreamSpan span;       // of the last packet's rows
  std::uint64_t ip = 0;  // where execution continues, unless a branch waits
  // The branch at the end of an emitted block, if it waits for its packet: without neighbours.
  std::optional<BasicBlock> branch;
  bool in_tx = false;
  std::optional<BoundInsn> binding;
  // Instructions since the last packet with an IP, from which ICNT of TRIG packets counts.
  std::optional<std::uint64_t> icnt;
  CallStack calls;
};

}  // namespace ptkit::flow
