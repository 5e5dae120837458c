// Event trace: a CFE gives the cause of an interruption or resumption of control flow, preceding EVDs give
// its data.
#include "flow/events/event_decoder.h"
#include "packet/event_types.h"

namespace ptkit::flow {

using base::Status;
using packet::CfeType;
using packet::EvdType;

namespace {

struct CfeRow {
  CfeType type;
  EventKind kind;
  bool has_vector;
  // without IP bit, while packets are enabled: the next FUP has the IP, and starts an asynchronous branch
  bool has_fup;
};

constexpr CfeRow kRows[] = {
    {CfeType::INTR, EventKind::INTERRUPT, true, true},
    {CfeType::IRET, EventKind::IRET, false, false},
    {CfeType::SMI, EventKind::SMI, false, true},
    {CfeType::RSM, EventKind::RSM, false, true},
    {CfeType::SIPI, EventKind::SIPI, true, true},
    {CfeType::INIT, EventKind::INIT, false, true},
    {CfeType::VMENTRY, EventKind::VMENTRY, false, false},
    {CfeType::VMEXIT, EventKind::VMEXIT, false, true},
    {CfeType::VMEXIT_INTR, EventKind::VMEXIT, true, true},
    {CfeType::SHUTDOWN, EventKind::SHUTDOWN, false, false},
    {CfeType::UINTR, EventKind::UINTR, true, true},
    {CfeType::UIRET, EventKind::UIRET, false, false},
    {CfeType::SWINTR, EventKind::SWINTR, true, true},
    {CfeType::SYSCALL, EventKind::SYSCALL, false, false},
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
    // The EVD belongs to another kind of event.
    emit_event_data(*data);
    return binder_.contradiction(Status::UNEXPECTED_PACKET);
  }
  if (row == nullptr) {
    // An unknown type of a newer processor. Its FUP does not start an asynchronous branch.
    Event event = make(EventKind::EVENT_DATA);
    event.payload = packet.payload;
    event.payload2 = packet.payload2;
    if (announced) return wait(AT_FUP_BOUND, event);
    return emit(event);
  }
  Event event = data ? *data : make(row->kind);
  if (row->has_vector) {
    event.payload = packet.payload2;
    event.flags |= EV_PAYLOAD_KNOWN;
  }
  if (announced) return wait(AT_FUP_BOUND, event);
  if (row->has_fup && binder_.on()) return wait(AT_FUP, event);
  emit(event);
}

// An EVD without its CFE is a row of its own.
void EventDecoder::emit_event_data(const Event& data) {
  const auto row = [this](EvdType type, std::uint64_t value) {
    Event event = make(EventKind::EVENT_DATA);
    event.payload = static_cast<std::uint64_t>(type);
    event.payload2 = value;
    emit(event);
  };
  if (data.kind == EventKind::INTERRUPT) return row(EvdType::CR2, data.payload2);
  if ((data.flags & EV_QUALIFICATION_KNOWN) != 0) row(EvdType::VMX_QUALIFICATION, data.payload3);
  if ((data.flags & EV_CR2_KNOWN) != 0) row(EvdType::VMX_REASON, data.payload2);
}

void EventDecoder::on_evd(const Packet& packet) {
  prove_event_trace();
  const auto type = static_cast<EvdType>(packet.payload);
  if (packet.payload > static_cast<std::uint64_t>(EvdType::VMX_REASON)) {
    Event event = make(EventKind::EVENT_DATA);
    event.payload = packet.payload;
    event.payload2 = packet.payload2;
    return emit(event);
  }
  const EventKind kind = type == EvdType::CR2 ? EventKind::INTERRUPT : EventKind::VMEXIT;
  std::optional<Event> earlier = pending_.take(AT_CFE);
  const std::uint16_t flag = type == EvdType::VMX_QUALIFICATION ? EV_QUALIFICATION_KNOWN : EV_CR2_KNOWN;
  if (earlier && (earlier->kind != kind || (earlier->flags & flag) != 0)) {
    emit_event_data(*earlier);
    return binder_.contradiction(Status::UNEXPECTED_PACKET);
  }
  Event event = earlier ? *earlier : make(kind);
  event.flags |= flag;
  (type == EvdType::VMX_QUALIFICATION ? event.payload3 : event.payload2) = packet.payload2;
  wait(AT_CFE, event);
}

}  // namespace ptkit::flow
