// PacketGenerator's packets beside control flow: PTWRITE, power events, event trace, PEBS, triggers.
#include "trace_unit/generator/state.h"

namespace ptkit::trace_unit::generator {
namespace {

using packet::Packet;
using packet::PacketKind;

Packet make(PacketKind kind, std::uint64_t payload, std::uint64_t payload2, unsigned flags) noexcept {
  Packet packet;
  packet.kind = kind;
  packet.payload = payload;
  packet.payload2 = payload2;
  packet.flags = static_cast<std::uint8_t>(flags);
  return packet;
}

std::uint64_t nibbles(std::uint8_t high, std::uint8_t low) noexcept {
  return static_cast<std::uint64_t>(high & 0xf) << 4 | (low & 0xfU);
}

unsigned flag_if(bool condition, Packet::Flag flag) noexcept {
  return condition ? static_cast<unsigned>(flag) : 0U;
}

}  // namespace

void PacketGenerator::ptwrite(std::uint64_t value, bool wide, std::uint64_t ip) {
  if (!state_->enables.packet()) return;
  if (state_->config.ptw) {
    const bool with_ip = state_->config.fup_on_ptw;
    const std::uint64_t payload = wide ? value : value & 0xffffffff;
    state_->standalone(make(PacketKind::PTW, payload, wide ? 1 : 0, flag_if(with_ip, Packet::IP_BIT)));
    if (with_ip) state_->fup(ip);
  }
  state_->next_instruction_unknown();
}

// ---- power events

void PacketGenerator::mwait(std::uint8_t hints, std::uint8_t extensions) {
  if (!state_->config.power || !state_->enables.trigger()) return state_->next_instruction_unknown();
  state_->standalone(make(PacketKind::MWAIT, hints, extensions & 3U, 0));
  state_->next_instruction_unknown();
  state_->open_sequence();  // EXSTOP says where
}

void PacketGenerator::pwre(std::uint8_t state, std::uint8_t sub_state, bool hardware) {
  if (!state_->config.power || !state_->enables.trigger()) return;
  state_->standalone(make(PacketKind::PWRE, nibbles(state, sub_state), 0, flag_if(hardware, Packet::HW)));
}

void PacketGenerator::exstop(std::uint64_t ip) {
  if (!state_->enables.packet()) return exstop();
  if (!state_->config.power) return;
  state_->standalone(make(PacketKind::EXSTOP, 0, 0, Packet::IP_BIT));
  state_->fup(ip);
  state_->next_instruction_unknown();
  state_->close_sequence();
}

void PacketGenerator::exstop() {
  if (!state_->config.power || !state_->enables.trigger()) return;
  state_->standalone(make(PacketKind::EXSTOP, 0, 0, 0));
  state_->close_sequence();
}

void PacketGenerator::pwrx(std::uint8_t last, std::uint8_t deepest, std::uint8_t reasons) {
  if (!state_->config.power || !state_->enables.trigger()) return;
  state_->standalone(make(PacketKind::PWRX, nibbles(last, deepest), reasons & 7U, 0));
}

// ---- event trace

void PacketGenerator::event_data(packet::EvdType type, std::uint64_t value) {
  if (!state_->config.event_trace || !state_->enables.trigger()) return;
  state_->standalone(make(PacketKind::EVD, static_cast<std::uint64_t>(type), value, 0));
  state_->open_sequence();
}

void PacketGenerator::event(packet::CfeType type, std::uint8_t vector) {
  if (!state_->config.event_trace || !state_->enables.trigger()) return;
  state_->standalone(make(PacketKind::CFE, static_cast<std::uint64_t>(type), vector, 0));
  state_->next_instruction_unknown();
  if (state_->enables.packet()) {
    state_->open_sequence();  // the transfer's FUP or TIP follows
  } else {
    state_->close_sequence();
  }
}

void PacketGenerator::event_at(packet::CfeType type, std::uint8_t vector, std::uint64_t ip) {
  if (!state_->enables.packet()) return event(type, vector);
  if (!state_->config.event_trace) return;
  state_->standalone(make(PacketKind::CFE, static_cast<std::uint64_t>(type), vector, Packet::IP_BIT));
  state_->fup(ip);
  state_->next_instruction_unknown();
  state_->close_sequence();
}

// ---- PEBS and triggers

void PacketGenerator::pebs(std::span<const PebsBlock> record, std::uint64_t ip) {
  if (!state_->enables.trigger() || record.empty()) return;
  for (const PebsBlock& block : record) {
    state_->standalone(make(PacketKind::BBP, block.type & 0x1fU, block.items_4 ? 1 : 0, 0));
    for (const PebsItem& item : block.items) {
      const std::uint64_t value = block.items_4 ? item.value & 0xffffffff : item.value;
      state_->pebs_packet(make(PacketKind::BIP, item.id & 0x1fU, value, 0), block.items_4);
    }
  }
  const bool with_ip = state_->enables.packet();
  state_->standalone(make(PacketKind::BEP, 0, 0, flag_if(with_ip, Packet::IP_BIT)));
  if (!with_ip) return;
  state_->fup(ip);
  state_->next_instruction_unknown();
}

void PacketGenerator::trigger(std::uint8_t trbv, std::uint16_t icnt, bool icnt_known, bool multiple,
                              std::uint64_t ip) {
  if (!state_->enables.trigger()) return;
  const bool with_ip = state_->enables.packet();
  unsigned flags = flag_if(with_ip, Packet::IP_BIT);
  if (icnt_known) flags |= Packet::ICNT;
  if (multiple) flags |= Packet::MULT;
  state_->standalone(make(PacketKind::TRIG, trbv, icnt_known ? icnt : 0U, flags));
  if (!with_ip) return;
  state_->fup(ip);
  state_->next_instruction_unknown();
}

}  // namespace ptkit::trace_unit::generator
