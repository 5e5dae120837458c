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
  COND = 0,           // Jcc, JCXZ, LOOPcc; see flag TAKEN
  JUMP = 1,           // direct near jump
  JUMP_INDIRECT = 2,  // near jump by register or memory
  CALL = 3,           // direct near call
  CALL_INDIRECT = 4,  // near call by register or memory
  RETURN = 5,         // near return
  FAR_CALL = 6,       // CALL far, INT n, INT3, INT1, INTO
  FAR_RETURN = 7,     // RET far
  FAR_JUMP = 8,       // JMP far
  SYSCALL = 9,        // SYSCALL, SYSENTER
  SYSRET = 10,        // SYSRET, SYSEXIT, ERETS, ERETU
  IRET = 11,          // IRET, UIRET
  VMENTRY = 12,       // VMLAUNCH, VMRESUME
  VMEXIT = 13,        // by an instruction such as VMCALL
  ASYNC = 14,         // interrupt, exception, SMI, ...: no branch instruction
  TX_ABORT = 15,      // transaction aborted: from the abort's IP to the fallback handler
  UNKNOWN = 16,       // taken; the branch instruction is unknown because the image has no code there
};

// Stored in the `flags` column of branches and instructions: append only.
enum RowFlag : std::uint8_t {
  FROM_KNOWN = 1,
  TO_KNOWN = 2,
  TAKEN = 4,
  IN_TX = 8,
  PREDICTED = 16,  // branch stacks and BTS only
  PREDICTION_KNOWN = 32,
  TIME_KNOWN = 64,  // set by columns, not by decoders
};
inline constexpr std::uint8_t kBothKnown = FROM_KNOWN | TO_KNOWN;
inline constexpr std::uint8_t kTakenBranch = kBothKnown | TAKEN;

struct Branch {
  StreamSpan place;
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
  StreamSpan place;
  std::uint64_t ip = 0;
  std::span<const BlockInsn> insns;  // at least one instruction
  std::uint32_t size = 0;            // bytes of all instructions
  code::insn::ExecMode mode = code::insn::ExecMode::BITS64;
  std::uint8_t flags = 0;  // IN_TX
};

// Stored in the `kind` column of events: append only.
enum class EventKind : std::uint8_t {
  ENABLED = 0,   // packets are enabled; ip = first IP, flag RESUMED if it is where packets were disabled
  DISABLED = 1,  // a branch left the traced code; ip = its target, if known
  ASYNC_DISABLED = 2,  // an interrupt or exception left the traced code; payload = IP where it happened
  ASYNC_BRANCH = 3,    // interrupt, exception, ...; ip = target, payload = IP where it happened
  OVERFLOW = 4,        // packets were lost (OVF); ip = IP after the overflow, if packets are enabled
  PAGING = 5,          // PIP: CR3 was written; payload = CR3, flag NON_ROOT
  ASYNC_PAGING = 6,    // as PAGING, at an asynchronous branch or from a PSB+; payload = CR3
  VMCS = 7,            // payload = VMCS base address
  ASYNC_VMCS = 8,      // as VMCS, at an asynchronous branch or from a PSB+; payload = VMCS base
  EXEC_MODE = 9,       // MODE.Exec; payload = 16, 32 or 64; ip = first instruction in this mode
  TSX_BEGIN = 10,      // a transaction begins; ip
  TSX_COMMIT = 11,     // a transaction commits; ip
  TSX_ABORT = 12,      // a transaction aborts; ip = where
  STOP = 13,           // TraceStop
  EXSTOP = 14,         // execution stopped (power event trace); ip, if known
  MWAIT = 15,          // payload = hints (EAX), payload2 = extensions (ECX)
  PWRE = 16,           // power state entry; payload = state << 4 | sub-state, flag HW
  PWRX = 17,           // power state exit; payload = last state << 4 | deepest, payload2 = wake reason bits
  PTWRITE = 18,        // payload = operand, payload2 = its size in bytes (4 or 8); ip = the instruction
  CBR = 19,            // payload = core:bus ratio
  MNT = 20,            // payload = 64 bits, not documented
  TICK = 21,           // a timing packet advanced time; only with ticks=True
  IFLAG = 22,          // payload = 1 if interrupts are enabled
  INTERRUPT = 23,      // payload = vector; payload2 = CR2 (flag CR2_KNOWN); ip
  IRET = 24,           // ip = the instruction
  SMI = 25,            // ip, if known
  RSM = 26,            // ip, if known
  SIPI = 27,           // payload = vector
  INIT = 28,           // ip, if known
  VMENTRY = 29,        // ip = the instruction
  VMEXIT = 30,         // payload = vector (flag PAYLOAD_KNOWN), payload2 = exit reason (flag CR2_KNOWN),
                       // payload3 = qualification (flag QUALIFICATION_KNOWN)
  SHUTDOWN = 31,       // ip, if known
  UINTR = 32,          // user interrupt; payload = vector
  UIRET = 33,          // ip = the instruction
  TRIG = 34,           // payload = TRBV, payload2 = ICNT (flag ICNT_KNOWN); flag MULT
  SWINTR = 35,         // software interrupt; payload = vector
  SYSCALL = 36,        // ip = the instruction
  PEBS_BEGIN = 37,     // BBP; payload = type, payload2 = item size in bytes
  PEBS_ITEM = 38,      // BIP; payload = id, payload2 = value
  PEBS_END = 39,       // BEP
  EVENT_DATA = 40,  // an EVD without its CFE, or a CFE of an unknown type; payload = type, payload2 = value
  STATUS = 41,      // spare
};

// Stored in the `flags` column of events: append only.
enum EventFlag : std::uint16_t {
  EV_IP_KNOWN = 1,
  EV_STATUS = 2,  // repeats state (PSB+); nothing happened
  EV_RESUMED = 4,
  EV_NON_ROOT = 8,
  EV_HW = 16,
  EV_CR2_KNOWN = 32,      // INTERRUPT: CR2, VMEXIT: exit reason; payload2 is valid
  EV_PAYLOAD_KNOWN = 64,  // vectors: payload is valid
  EV_MULT = 128,
  EV_ICNT_KNOWN = 256,
  EV_TIME_KNOWN = 512,            // set by columns
  EV_QUALIFICATION_KNOWN = 1024,  // VMEXIT: payload3 is valid
};

struct Event {
  StreamSpan place;
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
  StreamSpan place;
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
  ERROR = 0,         // after an error row
  OVERFLOW = 1,      // OVF packet
  LOST = 2,          // the recorder reports missing bytes
  START = 3,         // bytes before the first PSB, or branches before the oldest branch record
  TNT_DISABLED = 4,  // conditional branches are not recorded: from here on, paths between others are unknown
  TRACE_STOP = 5,    // execution entered a TraceStop range
  FILTERED = 6,  // branch records: another privilege level is not recorded, or the thread or process changed
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
