// Public enumerations as Python's own IntEnum and IntFlag. Their members are the rows of the tables that the
// core's enumerations are made of.
#include <pybind11/native_enum.h>

#include <initializer_list>
#include <string>

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

struct Member {
  const char* name;
  unsigned value;
  const char* text = nullptr;
};

// A text without a full stop is completed.
template <typename Enum>
void add(py::module_& module, const char* name, const char* type, std::string doc,
         std::initializer_list<Member> members) {
  if (doc.back() != '.') doc += "; docs/tables.md says what each means.";
  py::native_enum<Enum> bound(module, name, type, doc.c_str());
  for (const Member& one : members) bound.value(one.name, static_cast<Enum>(one.value), one.text);
  bound.finalize();
}

template <typename Enum>
void add_kind(py::module_& module, const char* name, const char* doc, std::initializer_list<Member> members) {
  add<Enum>(module, name, "enum.IntEnum", doc, members);
}

template <typename Flag>
void add_flag(py::module_& module, const char* name, const char* doc, std::initializer_list<Member> members) {
  add<Flag>(module, name, "enum.IntFlag", doc, members);
}

#define PT_MEMBER(name, value, text) {#name, value, text},
#define PT_BIT(name, value, ...) {#name, value},

void add_packets(py::module_& module) {
  add_kind<packet::PacketKind>(module, "PacketKind",
                               "Type of a packet. Each member's __doc__ says what `payload` and `payload2` "
                               "hold; docs/tables.md has the table.",
                               {
#define PT_PACKET(kind, name, table, mask, match, claim, least, size, payload_kind, block, psb, ovf, bulk, \
                  text, payload, payload2)                                                                 \
  {#kind, static_cast<unsigned>(packet::PacketKind::kind),                                                 \
   sizeof(payload2) > 1  ? text ". payload: " payload "; payload2: " payload2                              \
   : sizeof(payload) > 1 ? text ". payload: " payload                                                      \
                         : text},
#include "packet/packets.def"
                               });
  add_flag<packet::Packet::Flag>(module, "PacketFlag", "Bits of `flags` of packets",
                                 {
#define PT_PACKET_FLAG PT_BIT
#include "packet/kinds.def"
                                 });
  add_kind<time::TimeSource>(module, "TimeSource", "The best packet that a time rests on; see docs/time.md.",
                             {
#define PT_TIME_SOURCE PT_MEMBER
#include "time/kinds.def"
                             });
}

void add_rows(py::module_& module) {
  add_kind<flow::BranchKind>(module, "BranchKind", "Kind of a branch",
                             {
#define PT_BRANCH_KIND PT_MEMBER
#include "flow/rows/kinds.def"
                             });
  add_kind<flow::EventKind>(module, "EventKind",
                            "Kind of an event; docs/tables.md says what `ip` and the payloads of each hold.",
                            {
#define PT_EVENT_KIND PT_MEMBER
#include "flow/rows/kinds.def"
                            });
  add_kind<flow::GapCause>(module, "GapCause", "Why control flow is not known",
                           {
#define PT_GAP_CAUSE PT_MEMBER
#include "flow/rows/kinds.def"
                           });
  add_flag<flow::RowFlag>(module, "RowFlag", "Bits of `flags` of branches, blocks, instructions and gaps",
                          {
#define PT_ROW_FLAG PT_BIT
#include "flow/rows/kinds.def"
                          });
  add_flag<flow::EventFlag>(module, "EventFlag", "Bits of `flags` of events",
                            {
#define PT_EVENT_FLAG PT_BIT
#include "flow/rows/kinds.def"
                            });
  add_flag<trace::BranchRecordFlag>(
      module, "RecordFlag", "Bits of `flags` of branch records; docs/branch-records.md says what each means.",
      {
#define PT_RECORD_FLAG PT_BIT
#include "trace/kinds.def"
      });
  add_kind<code::insn::InsnClass>(module, "InsnClass", "What an instruction does to control flow",
                                  {
#define PT_INSN_CLASS PT_MEMBER
#include "code/insn/kinds.def"
                                  });
  add_kind<base::Status>(module, "ErrorCode",
                         "What happened; docs/tables.md has the sentences, the remedies and the arguments.",
                         {
#define PT_STATUS(name, value, sentence, remedy) {#name, value, sentence},
#include "base/status.def"
                         });
  add_flag<tables::columns::ErrorFlag>(module, "ErrorFlag", "Bits of `flags` of errors",
                                       {
#define PT_ERROR_FLAG PT_BIT
#include "tables/columns/kinds.def"
                                       });
}

void add_calls(py::module_& module) {
  add_kind<tables::calls::CallKind>(module, "CallKind", "How a frame began",
                                    {
#define PT_CALL_KIND PT_MEMBER
#include "tables/calls/stack/kinds.def"
                                    });
  add_kind<tables::calls::CallEnd>(module, "CallEnd", "How a frame ended",
                                   {
#define PT_CALL_END PT_MEMBER
#include "tables/calls/stack/kinds.def"
                                   });
  add_kind<tables::calls::AnomalyKind>(module, "StackAnomaly", "What fits no open frame",
                                       {
#define PT_STACK_ANOMALY PT_MEMBER
#include "tables/calls/stack/kinds.def"
                                       });
  add_flag<tables::columns::CallFlag>(module, "CallFlag", "Bits of `flags` of calls",
                                      {
#define PT_CALL_FLAG PT_BIT
#include "tables/columns/kinds.def"
                                      });
  add_flag<tables::columns::AnomalyFlag>(module, "StackAnomalyFlag", "Bits of `flags` of stack anomalies",
                                         {
#define PT_ANOMALY_FLAG PT_BIT
#include "tables/columns/kinds.def"
                                         });
  add_flag<tables::columns::FunctionFlag>(module, "FunctionFlag",
                                          "Bits of `flags` of functions and call trees",
                                          {
#define PT_FUNCTION_FLAG PT_BIT
#include "tables/columns/kinds.def"
                                          });
  add_flag<tables::columns::StackFlag>(module, "StackFlag", "Bits of `flags` of at_times and ptwrites",
                                       {
#define PT_STACK_FLAG PT_BIT
#include "tables/columns/kinds.def"
                                       });
}

}  // namespace

void register_enums(py::module_& module) {
  add_packets(module);
  add_rows(module);
  add_calls(module);
}

}  // namespace ptkit::api::python
