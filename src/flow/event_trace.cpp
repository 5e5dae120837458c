// Event trace: CFE says that control flow was interrupted or resumed and by what, EVD before it gives
// particulars.
#include "flow/event_decoder.h"

namespace ptkit::flow {

using base::Status;

namespace {

// Types of CFE packets (manual, "Control Flow Event Packet").
enum class Cfe : std::uint8_t {
  INTR = 1,
  IRET = 2,
  SMI = 3,
  RSM = 4,
  SIPI = 5,
  INIT = 6,
  VMENTRY = 7,
  VMEXIT = 8,
  VMEXIT_INTR = 9,
  SHUTDOWN = 10,
  UINTR = 12,
  UIRET = 13,
  SWINTR = 14,
  SYSCALL = 15,
};

// Types of EVD packets.
enum class Evd : std::uint8_t { CR2 = 0, VMX_QUALIFICATION = 1, VMX_REASON = 2 };

struct CfeRow {
  Cfe type;
  EventKind kind;
  bool has_vector;
  bool has_fup;  // without IP bit, while packets are on: the next FUP tells where, and begins an asynchronous
                 // branch
};

constexpr CfeRow kRows[] = {
    {Cfe::INTR, EventKind::INTERRUPT, true, true},     {Cfe::IRET, EventKind::IRET, false, false},
    {Cfe::SMI, EventKind::SMI, false, true},           {Cfe::RSM, EventKind::RSM, false, true},
    {Cfe::SIPI, EventKind::SIPI, true, true},          {Cfe::INIT, EventKind::INIT, false, true},
    {Cfe::VMENTRY, EventKind::VMENTRY, false, false},  {Cfe::VMEXIT, EventKind::VMEXIT, false, true},
    {Cfe::VMEXIT_INTR, EventKind::VMEXIT, true, true}, {Cfe::SHUTDOWN, EventKind::SHUTDOWN, false, false},
    {Cfe::UINTR, EventKind::UINTR, true, true},        {Cfe::UIRET, EventKind::UIRET, false, false},
    {Cfe::SWINTR, EventKind::SWINTR, true, true},      {Cfe::SYSCALL, EventKind::SYSCALL, false, false},
};

const CfeRow* find_row(std::uint64_t type) noexcept {
  for (const CfeRow& row : kRows) {
    if (static_cast<std::uint64_t>(row.type) == type) return &row;
  }
  return nullptr;
}

}  // namespace

void EventDecoder::on_cfe(const Packet& packet) {
  prove_event_trace();
  const bool announced = (packet.flags & Packet::IP_BIT) != 0;
  const CfeRow* row = find_row(packet.payload);
  std::optional<Event> data = pending_.take(AT_CFE);
  if (data && (row == nullptr || row->kind != data->kind)) {
    // The EVD belonged to another kind of event.
    give_event_data(*data);
    return placer_.contradiction(Status::UNEXPECTED_PACKET);
  }
  if (row == nullptr) {
    // A type from after this was written: what it means is not known, but its FUP is no asynchronous branch.
    Event event = make(EventKind::EVENT_DATA);
    event.payload = packet.payload;
    event.payload2 = packet.payload2;
    if (announced) return wait(AT_FUP_BOUND, event);
    return give(event);
  }
  Event event = data ? *data : make(row->kind);
  if (row->has_vector) {
    event.payload = packet.payload2;
    event.flags |= EV_PAYLOAD_KNOWN;
  }
  if (announced) return wait(AT_FUP_BOUND, event);
  if (row->has_fup && placer_.on()) return wait(AT_FUP, event);
  give(event);
}

// An EVD that no CFE took is a row of its own.
void EventDecoder::give_event_data(const Event& data) {
  const auto row = [this](Evd type, std::uint64_t value) {
    Event event = make(EventKind::EVENT_DATA);
    event.payload = static_cast<std::uint64_t>(type);
    event.payload2 = value;
    give(event);
  };
  if (data.kind == EventKind::INTERRUPT) return row(Evd::CR2, data.payload2);
  if ((data.flags & EV_QUALIFICATION_KNOWN) != 0) row(Evd::VMX_QUALIFICATION, data.payload3);
  if ((data.flags & EV_CR2_KNOWN) != 0) row(Evd::VMX_REASON, data.payload2);
}

void EventDecoder::on_evd(const Packet& packet) {
  prove_event_trace();
  const auto type = static_cast<Evd>(packet.payload);
  if (packet.payload > static_cast<std::uint64_t>(Evd::VMX_REASON)) {
    Event event = make(EventKind::EVENT_DATA);
    event.payload = packet.payload;
    event.payload2 = packet.payload2;
    return give(event);
  }
  const EventKind kind = type == Evd::CR2 ? EventKind::INTERRUPT : EventKind::VMEXIT;
  std::optional<Event> earlier = pending_.take(AT_CFE);
  const std::uint16_t flag = type == Evd::VMX_QUALIFICATION ? EV_QUALIFICATION_KNOWN : EV_CR2_KNOWN;
  if (earlier && (earlier->kind != kind || (earlier->flags & flag) != 0)) {
    give_event_data(*earlier);
    return placer_.contradiction(Status::UNEXPECTED_PACKET);
  }
  Event event = earlier ? *earlier : make(kind);
  event.flags |= flag;
  (type == Evd::VMX_QUALIFICATION ? event.payload3 : event.payload2) = packet.payload2;
  wait(AT_CFE, event);
}

}  // namespace ptkit::flow
