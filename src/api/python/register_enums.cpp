// Public enumerations as Python's own IntEnum and IntFlag.
#include <pybind11/native_enum.h>

#include "api/python/bindings.h"
#include "code/insn/insn.h"
#include "flow/rows/rows.h"
#include "packet/packet.h"
#include "tables/calls/stack/frame.h"
#include "tables/columns/schema.h"
#include "time/track.h"
#include "trace/branch_record.h"

namespace ptkit::api::python {
namespace {

void register_packet_enums(py::module_& module) {
  py::native_enum<packet::PacketKind> kinds(module, "PacketKind", "enum.IntEnum",
                                            "Type of a packet. Each member's __doc__ says what `payload` and "
                                            "`payload2` hold; docs/tables.md has the "
                                            "table.");
#define PT_PACKET(kind, name, table, mask, match, claim, least, size, payload_kind, block, text, payload, \
                  payload2)                                                                               \
  kinds.value(#kind, packet::PacketKind::kind,                                                            \
              sizeof(payload2) > 1  ? text ". payload: " payload "; payload2: " payload2                  \
              : sizeof(payload) > 1 ? text ". payload: " payload                                          \
                                    : text);
#define PT_ESCAPE(table, byte, next)
#include "packet/packets.def"
#undef PT_PACKET
#undef PT_ESCAPE
  kinds.finalize();
  using packet::Packet;
  py::native_enum<Packet::Flag>(module, "PacketFlag", "enum.IntFlag",
                                "Bits of `flags` of packets; docs/tables.md says what each means.")
      .value("IP_KNOWN", Packet::IP_KNOWN)
      .value("IP_BIT", Packet::IP_BIT)
      .value("NR", Packet::NR)
      .value("HW", Packet::HW)
      .value("MULT", Packet::MULT)
      .value("ICNT", Packet::ICNT)
      .value("IN_PSB", Packet::IN_PSB)
      .value("TIME_KNOWN", static_cast<Packet::Flag>(tables::columns::PACKET_TIME_KNOWN))
      .finalize();
}

#define PT_VALUE(name) .value(#name, Enum::name)

void register_branch_kind(py::module_& module) {
  using Enum = flow::BranchKind;
  py::native_enum<Enum>(module, "BranchKind", "enum.IntEnum",
                        "Kind of a branch; docs/tables.md says what each means.")
      // clang-format off
      PT_VALUE(COND) PT_VALUE(JUMP) PT_VALUE(JUMP_INDIRECT) PT_VALUE(CALL) PT_VALUE(CALL_INDIRECT)
      PT_VALUE(RETURN) PT_VALUE(FAR_CALL) PT_VALUE(FAR_RETURN) PT_VALUE(FAR_JUMP) PT_VALUE(SYSCALL)
      PT_VALUE(SYSRET) PT_VALUE(IRET) PT_VALUE(VMENTRY) PT_VALUE(VMEXIT) PT_VALUE(ASYNC) PT_VALUE(TX_ABORT)
      PT_VALUE(UNKNOWN)
                      // clang-format on
                      .finalize();
}

void register_event_kind(py::module_& module) {
  using Enum = flow::EventKind;
  py::native_enum<Enum>(module, "EventKind", "enum.IntEnum",
                        "Kind of an event; docs/tables.md says what `ip` and the payloads of each hold.")
      // clang-format off
      PT_VALUE(ENABLED) PT_VALUE(DISABLED) PT_VALUE(ASYNC_DISABLED) PT_VALUE(ASYNC_BRANCH) PT_VALUE(OVERFLOW)
      PT_VALUE(PAGING) PT_VALUE(ASYNC_PAGING) PT_VALUE(VMCS) PT_VALUE(ASYNC_VMCS) PT_VALUE(EXEC_MODE)
      PT_VALUE(TSX_BEGIN) PT_VALUE(TSX_COMMIT) PT_VALUE(TSX_ABORT) PT_VALUE(STOP) PT_VALUE(EXSTOP)
      PT_VALUE(MWAIT) PT_VALUE(PWRE) PT_VALUE(PWRX) PT_VALUE(PTWRITE) PT_VALUE(CBR) PT_VALUE(MNT) PT_VALUE(TICK)
      PT_VALUE(IFLAG) PT_VALUE(INTERRUPT) PT_VALUE(IRET) PT_VALUE(SMI) PT_VALUE(RSM) PT_VALUE(SIPI)
      PT_VALUE(INIT) PT_VALUE(VMENTRY) PT_VALUE(VMEXIT) PT_VALUE(SHUTDOWN) PT_VALUE(UINTR) PT_VALUE(UIRET)
      PT_VALUE(TRIG) PT_VALUE(SWINTR) PT_VALUE(SYSCALL) PT_VALUE(PEBS_BEGIN) PT_VALUE(PEBS_ITEM)
      PT_VALUE(PEBS_END) PT_VALUE(EVENT_DATA) PT_VALUE(STATUS)
                                          // clang-format on
                                          .finalize();
}

void register_flow_flags(py::module_& module) {
  py::native_enum<flow::RowFlag>(
      module, "RowFlag", "enum.IntFlag",
      "Bits of `flags` of branches, blocks, instructions and gaps; docs/tables.md says what each means.")
      .value("FROM_KNOWN", flow::FROM_KNOWN)
      .value("TO_KNOWN", flow::TO_KNOWN)
      .value("TAKEN", flow::TAKEN)
      .value("IN_TX", flow::IN_TX)
      .value("PREDICTED", flow::PREDICTED)
      .value("PREDICTION_KNOWN", flow::PREDICTION_KNOWN)
      .value("TIME_KNOWN", flow::TIME_KNOWN)
      .finalize();
  py::native_enum<trace::BranchRecordFlag>(
      module, "RecordFlag", "enum.IntFlag",
      "Bits of `flags` of branch records; docs/branch-records.md says what each means.")
      .value("PREDICTED", trace::RECORD_PREDICTED)
      .value("PREDICTION_KNOWN", trace::RECORD_PREDICTION_KNOWN)
      .value("IN_TX", trace::RECORD_IN_TX)
      .value("ABORT", trace::RECORD_ABORT)
      .value("FIRST", trace::RECORD_FIRST)
      .value("CODE32", trace::RECORD_CODE32)
      .value("MAY_REPEAT", trace::RECORD_MAY_REPEAT)
      .finalize();
  py::native_enum<flow::EventFlag>(module, "EventFlag", "enum.IntFlag",
                                   "Bits of `flags` of events; docs/tables.md says what each means.")
      .value("IP_KNOWN", flow::EV_IP_KNOWN)
      .value("STATUS", flow::EV_STATUS)
      .value("RESUMED", flow::EV_RESUMED)
      .value("NON_ROOT", flow::EV_NON_ROOT)
      .value("HW", flow::EV_HW)
      .value("CR2_KNOWN", flow::EV_CR2_KNOWN)
      .value("PAYLOAD_KNOWN", flow::EV_PAYLOAD_KNOWN)
      .value("MULT", flow::EV_MULT)
      .value("ICNT_KNOWN", flow::EV_ICNT_KNOWN)
      .value("TIME_KNOWN", flow::EV_TIME_KNOWN)
      .value("QUALIFICATION_KNOWN", flow::EV_QUALIFICATION_KNOWN)
      .finalize();
  py::native_enum<tables::columns::ErrorFlag>(
      module, "ErrorFlag", "enum.IntFlag", "Bits of `flags` of errors; docs/tables.md says what each means.")
      .value("IP_KNOWN", tables::columns::ERROR_IP_KNOWN)
      .value("FILE_KNOWN", tables::columns::ERROR_FILE_KNOWN)
      .value("TIME_KNOWN", tables::columns::ERROR_TIME_KNOWN)
      .finalize();
}

void register_small_enums(py::module_& module) {
  {
    using Enum = flow::GapCause;
    py::native_enum<Enum>(module, "GapCause", "enum.IntEnum",
                          "Why control flow is not known; docs/tables.md says what each means.")
        // clang-format off
        PT_VALUE(ERROR) PT_VALUE(OVERFLOW) PT_VALUE(LOST) PT_VALUE(START) PT_VALUE(TNT_DISABLED)
        PT_VALUE(TRACE_STOP) PT_VALUE(FILTERED)
                // clang-format on
                .finalize();
  }
  {
    using Enum = time::TimeSource;
    py::native_enum<Enum>(module, "TimeSource", "enum.IntEnum",
                          "The best packet that a time rests on; see docs/time.md.") PT_VALUE(NONE)
        PT_VALUE(TSC) PT_VALUE(MTC) PT_VALUE(CYC) PT_VALUE(CBR) PT_VALUE(RECORD)
            .finalize();
  }
  {
    using Enum = code::insn::InsnClass;
    py::native_enum<Enum>(module, "InsnClass", "enum.IntEnum",
                          "What an instruction does to control flow; docs/tables.md says what each means.")
        // clang-format off
        PT_VALUE(OTHER) PT_VALUE(COND_JUMP) PT_VALUE(JUMP) PT_VALUE(JUMP_INDIRECT) PT_VALUE(CALL)
        PT_VALUE(CALL_INDIRECT) PT_VALUE(RETURN) PT_VALUE(FAR_CALL) PT_VALUE(FAR_RETURN) PT_VALUE(FAR_JUMP)
        PT_VALUE(PTWRITE)
                    // clang-format on
                    .finalize();
  }
  py::native_enum<base::Status> codes(
      module, "ErrorCode", "enum.IntEnum",
      "What happened; docs/tables.md has the sentences, the remedies and the arguments.");
#define PT_STATUS(name, value_, sentence, remedy) codes.value(#name, base::Status::name, sentence);
#include "base/status.def"
#undef PT_STATUS
  codes.finalize();
}

void register_call_enums(py::module_& module) {
  {
    using Enum = tables::calls::CallKind;
    py::native_enum<Enum>(module, "CallKind", "enum.IntEnum",
                          "How a frame began; docs/tables.md says what each means.")
        // clang-format off
        PT_VALUE(ROOT) PT_VALUE(CALL) PT_VALUE(TAIL) PT_VALUE(PLT) PT_VALUE(SIGNAL) PT_VALUE(INTERRUPT)
        PT_VALUE(SYSCALL) PT_VALUE(INLINED) PT_VALUE(THREAD) PT_VALUE(RESUMED)
                // clang-format on
                .finalize();
  }
  {
    using Enum = tables::calls::CallEnd;
    py::native_enum<Enum>(module, "CallEnd", "enum.IntEnum",
                          "How a frame ended; docs/tables.md says what each means.")
        // clang-format off
        PT_VALUE(RETURN) PT_VALUE(UNWIND) PT_VALUE(LONGJMP) PT_VALUE(TAIL) PT_VALUE(ABORT) PT_VALUE(SWITCH)
        PT_VALUE(GAP) PT_VALUE(END)
                // clang-format on
                .finalize();
  }
  {
    using Enum = tables::calls::AnomalyKind;
    py::native_enum<Enum>(module, "StackAnomaly", "enum.IntEnum",
                          "What fits no open frame; docs/tables.md says what each means.")
        // clang-format off
        PT_VALUE(RETURN_ELSEWHERE) PT_VALUE(SKIPPED_FRAMES) PT_VALUE(JUMP_INSIDE) PT_VALUE(SIGNAL_RETURN)
        PT_VALUE(INTERRUPT_RETURN) PT_VALUE(TOO_DEEP) PT_VALUE(ENTERED_ELSEWHERE)
            PT_VALUE(UNDECIDED)
                // clang-format on
                .finalize();
  }
}

void register_call_flags(py::module_& module) {
  py::native_enum<tables::columns::CallFlag>(module, "CallFlag", "enum.IntFlag",
                                             "Bits of `flags` of calls; docs/tables.md says what each means.")
      .value("EXACT", tables::columns::CALL_EXACT)
      .value("PARENT_KNOWN", tables::columns::CALL_PARENT)
      .value("ENTRY_KNOWN", tables::columns::CALL_ENTRY)
      .value("CALL_KNOWN", tables::columns::CALL_CALL)
      .value("RETURN_KNOWN", tables::columns::CALL_RETURN)
      .value("CONTINUES_KNOWN", tables::columns::CALL_CONTINUES)
      .value("RECURSIVE", tables::columns::CALL_RECURSIVE)
      .value("IN_TX", tables::columns::CALL_IN_TX)
      .value("BEGIN_SEEN", tables::columns::CALL_BEGIN_SEEN)
      .value("TIME_KNOWN", tables::columns::CALL_TIME_KNOWN)
      .value("END_TIME_KNOWN", tables::columns::CALL_END_TIME_KNOWN)
      .value("UNDECIDED", tables::columns::CALL_UNDECIDED)
      .value("IMPORT", tables::columns::CALL_IMPORT)
      .value("BEGINS_BEFORE", tables::columns::CALL_BEGINS_BEFORE)
      .value("ENDS_AFTER", tables::columns::CALL_ENDS_AFTER)
      .finalize();
  py::native_enum<tables::columns::AnomalyFlag>(
      module, "StackAnomalyFlag", "enum.IntFlag",
      "Bits of `flags` of stack anomalies; docs/tables.md says what each means.")
      .value("FROM_KNOWN", tables::columns::ANOMALY_FROM_KNOWN)
      .value("FRAME_KNOWN", tables::columns::ANOMALY_FRAME_KNOWN)
      .value("EXPECTED_KNOWN", tables::columns::ANOMALY_EXPECTED_KNOWN)
      .value("NO_CALL_BEFORE", tables::columns::ANOMALY_NO_CALL_BEFORE)
      .value("TIME_KNOWN", tables::columns::ANOMALY_TIME_KNOWN)
      .finalize();
  py::native_enum<tables::columns::FunctionFlag>(
      module, "FunctionFlag", "enum.IntFlag",
      "Bits of `flags` of functions and call trees; docs/tables.md says what each means.")
      .value("ENTRY_KNOWN", tables::columns::FUNCTION_ENTRY_KNOWN)
      .value("FILE_KNOWN", tables::columns::FUNCTION_FILE_KNOWN)
      .value("EXACT", tables::columns::FUNCTION_EXACT)
      .value("PARENT_KNOWN", tables::columns::FUNCTION_PARENT_KNOWN)
      .value("SYSCALL", tables::columns::FUNCTION_SYSCALL)
      .value("INTERRUPT", tables::columns::FUNCTION_INTERRUPT)
      .value("TIME_KNOWN", tables::columns::FUNCTION_TIME_KNOWN)
      .value("INLINED", tables::columns::FUNCTION_INLINED)
      .value("COUNT_EXACT", tables::columns::FUNCTION_COUNT_EXACT)
      .value("IMPORT", tables::columns::FUNCTION_IMPORT)
      .finalize();
}

void register_moment_flag(py::module_& module) {
  py::native_enum<tables::columns::MomentFlag>(
      module, "MomentFlag", "enum.IntFlag",
      "Bits of `flags` of at_times and ptwrites; docs/tables.md says what each means.")
      .value("IP_KNOWN", tables::columns::MOMENT_IP_KNOWN)
      .value("FRAME_KNOWN", tables::columns::MOMENT_FRAME_KNOWN)
      .value("ENTRY_KNOWN", tables::columns::MOMENT_ENTRY_KNOWN)
      .value("INNERMOST", tables::columns::MOMENT_INNERMOST)
      .value("SYSCALL", tables::columns::MOMENT_SYSCALL)
      .value("INTERRUPT", tables::columns::MOMENT_INTERRUPT)
      .value("TIME_KNOWN", tables::columns::MOMENT_TIME_KNOWN)
      .value("COVERED", tables::columns::MOMENT_COVERED)
      .value("IMPORT", tables::columns::MOMENT_IMPORT)
      .finalize();
}

}  // namespace

void register_enums(py::module_& module) {
  register_packet_enums(module);
  register_branch_kind(module);
  register_event_kind(module);
  register_flow_flags(module);
  register_small_enums(module);
  register_call_enums(module);
  register_call_flags(module);
  register_moment_flag(module);
}

}  // namespace ptkit::api::python
