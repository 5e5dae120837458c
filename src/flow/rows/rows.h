// Rows of control flow: what decoders emit to a FlowSink.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "code/insn/insn.h"
#include "trace/bundle.h"

namespace ptkit::flow {

// Position of a row in the stream, as an interval of packets. The row's branch or event happened after the
// packet at `since` was generated, and not after the packet at `offset` was generated. A branch of a TNT
// packet may be older than the packet. Both offsets are equal for a TIP that was not deferred. Neither offset
// goes back within a stream.
struct StreamSpan {
  std::uint64_t since = 0;
  std::uint64_t offset = 0;
  // The row happened before the branch of a TNT packet's first bit. The TNT packet is at `offset`, or its
  // bits wait for a target from the packet at `offset`. A CYC packet may give the time of that branch.
  bool before_first_bit = false;

  bool operator==(const StreamSpan&) const = default;
};

// Stored in the `kind` column of branches: append only.
enum class BranchKind : std::uint8_t {
#define PT_BRANCH_KIND(name, value, text) name = value,
#include "flow/rows/kinds.def"
};

// Stored in the `flags` column of branches and instructions: append only.
enum RowFlag : std::uint8_t {
#define PT_ROW_FLAG(name, value) name = value,
#include "flow/rows/kinds.def"
};
inline constexpr std::uint8_t kBothKnown = FROM_KNOWN | TO_KNOWN;
inline constexpr std::uint8_t kTakenBranch = kBothKnown | TAKEN;

struct Branch {
  StreamSpan span;
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;  // a conditional branch that falls through: the next instruction
  BranchKind kind = BranchKind::COND;
  std::uint8_t flags = 0;
  bool in_block = true;  // the branch instruction, if any, is the last one of an emitted block

  // True if the branch is itself an emitted instruction.
  [[nodiscard]] bool is_counted() const noexcept {
    return in_block && (flags & FROM_KNOWN) != 0 && kind != BranchKind::ASYNC &&
           kind != BranchKind::TX_ABORT && kind != BranchKind::UNKNOWN;
  }
};

// One instruction of a block, as cached by the decoder. Spans of these are valid during the call only.
struct BlockInsn {
  std::uint8_t size = 0;
  code::insn::InsnClass cls = code::insn::InsnClass::OTHER;
  code::insn::InsnKind kind = code::insn::InsnKind::OTHER;
};

// Consecutive instructions at increasing addresses. A branch (which follows as a Branch), an event, or the
// end of known control flow ends the block.
struct Block {
  StreamSpan span;
  std::uint64_t ip = 0;
  std::span<const BlockInsn> insns;  // at least one instruction
  std::uint32_t size = 0;            // bytes of all instructions
  code::insn::ExecMode mode = code::insn::ExecMode::BITS64;
  std::uint8_t flags = 0;  // IN_TX
};

// Stored in the `kind` column of events: append only.
enum class EventKind : std::uint8_t {
#define PT_EVENT_KIND(name, value, text) name = value,
#include "flow/rows/kinds.def"
};

// Stored in the `flags` column of events: append only.
enum EventFlag : std::uint16_t {
#define PT_EVENT_FLAG(name, value) EV_##name = value,
#include "flow/rows/kinds.def"
};

struct Event {
  StreamSpan span;
  std::uint64_t ip = 0;
  std::uint64_t payload = 0;
  std::uint64_t payload2 = 0;
  std::uint64_t payload3 = 0;
  EventKind kind = EventKind::ENABLED;
  std::uint16_t flags = 0;
  bool finds_flow = false;  // with EV_STATUS: control flow was not known before
};
[[nodiscard]] constexpr bool ip_known(const Event& event) noexcept {
  return (event.flags & EV_IP_KNOWN) != 0;
}

// An error: its code, its position, and the arguments of its sentence.
struct FlowError {
  StreamSpan span;
  base::Status code = base::Status::OK;
  std::uint64_t ip = 0;
  bool ip_known = false;
  // NO_CODE/BAD_INSN: start of the image range (or page); BAD_OPCODE: the bytes, little-endian; *_MISMATCH:
  // kind of the packet
  std::uint64_t argument = 0;
  // NO_CODE/BAD_INSN: size of the range; BAD_OPCODE: number of bytes; FUP_MISMATCH: the expected IP;
  // TNT_MISMATCH: target of a TIP.PGD, or 0
  std::uint64_t argument2 = 0;
  std::int32_t file = -1;  // index in TraceBundle::files, or -1
};

// Stored in the `cause` column of gaps: append only.
enum class GapCause : std::uint8_t {
#define PT_GAP_CAUSE(name, value, text) name = value,
#include "flow/rows/kinds.def"
};

// Control flow is unknown from `begin` (stream offset, last known IP) to `end` (offset, first known IP).
struct Gap {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  GapCause cause = GapCause::ERROR;
  base::Status code = base::Status::OK;  // the error that caused the gap, if any
  std::uint8_t flags = 0;                // FROM_KNOWN, TO_KNOWN
};

// The running thread and its address space, from `offset` on.
struct Context {
  std::uint64_t offset = 0;
  trace::SpaceId space = trace::kAnySpace;
  std::int64_t cpu = trace::kNoId;
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
};

}  // namespace ptkit::flow
