#include "trace_unit/generator/packet_generator.h"

#include <utility>

#include "trace_unit/generator/generator.h"

namespace ptkit::trace_unit::generator {

struct PacketGenerator::State : Generator {
  using Generator::Generator;
};

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

PacketGenerator::PacketGenerator(const GeneratorConfig& config, Output sink)
    : state_(std::make_unique<State>(config, std::move(sink))) {}
PacketGenerator::~PacketGenerator() = default;
PacketGenerator::PacketGenerator(PacketGenerator&&) noexcept = default;
PacketGenerator& PacketGenerator::operator=(PacketGenerator&&) noexcept = default;

// ---- time and state

void PacketGenerator::set_time(std::uint64_t tsc, std::uint64_t core_cycles) {
  state_->advance({tsc, core_cycles});
}
bool PacketGenerator::set_time_loosely(std::uint64_t tsc, std::uint64_t core_cycles) {
  return state_->advance_loosely({tsc, core_cycles});
}
void PacketGenerator::set_core_bus_ratio(std::uint8_t ratio) { state_->set_ratio(ratio); }

void PacketGenerator::wake() {
  if (state_->enables.trigger()) state_->time_anew();
}

void PacketGenerator::set_mode(bool cs_l, bool cs_d, bool interrupt_flag) {
  state_->mode = {cs_l, cs_d && !cs_l, interrupt_flag};  // CS.L and CS.D together are reserved
}

void PacketGenerator::set_interrupt_flag(bool flag, std::uint64_t next_ip) {
  if (state_->mode.interrupt_flag == flag) return;
  state_->mode.interrupt_flag = flag;
  if (!state_->config.event_trace || !state_->enables.packet()) return;
  state_->flush_branches();
  state_->mode_exec();
  state_->fup(next_ip);
  state_->next_instruction(next_ip);
}

void PacketGenerator::set_cr3(std::uint64_t cr3) {
  state_->paging_state.cr3 = cr3;
  if (!state_->enables.trigger() || !state_->enables.context) return;
  if (state_->config.user_only) return;
  state_->paging();
  state_->next_instruction_unknown();
}

void PacketGenerator::set_vmcs(std::uint64_t base) {
  state_->vmcs = base;
  if (state_->enables.trigger() && state_->enables.context) state_->vmcs_now(base);
}

void PacketGenerator::set_non_root(bool non_root) { state_->paging_state.non_root = non_root; }
void PacketGenerator::transfer_loads_cr3(std::uint64_t cr3) { state_->transfer_cr3 = cr3; }
void PacketGenerator::transfer_loads_vmcs(std::uint64_t base) { state_->transfer_vmcs = base; }

// ---- enabling

void PacketGenerator::start() { state_->start(); }

void PacketGenerator::enable(std::uint64_t ip) {
  state_->start();
  if (!state_->enables.packet()) state_->packets_on(ip);
}

void PacketGenerator::disable() {
  if (state_->enables.packet()) state_->packets_off(std::nullopt);
  state_->enables = {};
  state_->calls.clear();
}

void PacketGenerator::disable(std::uint64_t ip) {
  if (state_->enables.packet()) state_->packets_off(ip);
  state_->enables.filter = false;
}

void PacketGenerator::begin(bool context, std::optional<std::uint64_t> bytes_since_psb) {
  state_->begin(context, bytes_since_psb);
}
void PacketGenerator::assume(bool context, bool filter) {
  state_->enables.context = context;
  state_->enables.filter = filter;
}
std::uint64_t PacketGenerator::bytes_since_psb() const noexcept { return state_->bytes_since_psb(); }

// ---- branches

void PacketGenerator::conditional(bool taken) {
  if (!state_->enables.packet()) return;
  if (state_->config.tnt) state_->tnt_bit(taken);
  state_->next_instruction_unknown();
}

void PacketGenerator::conditional(bool taken, std::uint64_t next_ip) {
  if (!state_->enables.packet()) return;
  if (state_->config.tnt) state_->tnt_bit(taken);
  state_->next_instruction(next_ip);
}

void PacketGenerator::call(std::uint64_t next_ip, std::uint64_t target) {
  if (!state_->enables.packet()) return;
  // A call to the next instruction reads the IP; no return belongs to it.
  if (target != next_ip) state_->calls.push(next_ip);
  state_->next_instruction(target);
}

void PacketGenerator::call_indirect(std::uint64_t next_ip, std::uint64_t target) {
  if (!state_->enables.packet()) return;
  state_->calls.push(next_ip);
  state_->near_tip(target);
  state_->next_instruction(target);
}

void PacketGenerator::jump_indirect(std::uint64_t target) {
  if (!state_->enables.packet()) return;
  state_->near_tip(target);
  state_->next_instruction(target);
}

void PacketGenerator::ret(std::uint64_t target) {
  if (!state_->enables.packet()) return;
  const bool matches = state_->calls.ret(target, state_->config.tip_ret);
  if (matches && state_->config.return_compression) {
    state_->tnt_bit(true);
  } else {
    state_->return_tip(target);
  }
  state_->next_instruction(target);
}

void PacketGenerator::far_transfer(std::uint64_t target) {
  if (!state_->enables.packet()) return state_->transfer_unseen();
  state_->far_tip(target);
  state_->next_instruction(target);
}

void PacketGenerator::far_transfer_out() {
  state_->transfer_unseen();
  if (state_->enables.packet()) state_->packets_off(std::nullopt);
  state_->enables.context = false;
}

void PacketGenerator::far_transfer_out(std::uint64_t target) {
  if (!state_->enables.packet()) return state_->transfer_unseen();
  state_->flush_branches();
  state_->emit_transfer_state();
  disable(target);
}

void PacketGenerator::async(std::uint64_t from_ip, std::uint64_t target) {
  if (!state_->enables.packet()) return state_->transfer_unseen();
  state_->fup(from_ip);
  state_->far_tip(target);
  state_->next_instruction(target);
}

void PacketGenerator::async_out(std::uint64_t from_ip) {
  if (state_->enables.packet()) state_->fup(from_ip);
  far_transfer_out();
}

void PacketGenerator::async_out(std::uint64_t from_ip, std::uint64_t target) {
  if (state_->enables.packet()) state_->fup(from_ip);
  far_transfer_out(target);
}

void PacketGenerator::tsx(bool in_tx, bool aborted, std::uint64_t ip) {
  state_->in_transaction = in_tx;
  if (!state_->enables.trigger() || !state_->enables.context) return;
  state_->mode_tsx(in_tx, aborted);
  state_->next_instruction_unknown();
  if (!state_->enables.packet()) return;
  if (aborted) {
    state_->open_sequence();
  } else {
    state_->fup(ip);
  }
}

void PacketGenerator::at(std::uint64_t ip) {
  if (state_->enables.packet()) state_->next_instruction(ip);
}

void PacketGenerator::hold_psb(bool held) { state_->hold_psb(held); }
void PacketGenerator::hold_cyc() { state_->hold_cyc(); }
bool PacketGenerator::psb_due() const noexcept { return state_->psb_due(); }
bool PacketGenerator::begin_fast_path(FastEncoder& fast) { return state_->begin_fast_path(fast); }
void PacketGenerator::end_fast_path(FastEncoder& fast) { state_->end_fast_path(fast); }

// ---- losses and ends

void PacketGenerator::overflow(std::uint64_t resume_ip) {
  if (!state_->enables.trigger()) return;
  state_->overflow();
  state_->enables.context = true;
  state_->enables.filter = true;
  state_->fup(resume_ip);
  state_->next_instruction(resume_ip);
  state_->repeat_state_if_changed();
}

void PacketGenerator::overflow() {
  if (!state_->enables.trigger()) return;
  state_->overflow();
  state_->enables.context = false;
  state_->enables.filter = false;
  state_->forget_told_mode();
}

void PacketGenerator::trace_stop() {
  if (state_->enables.trigger()) state_->stop();
}

void PacketGenerator::flush() {
  state_->flush_branches();
  state_->writer.flush();
}

std::uint64_t PacketGenerator::bytes_written() const noexcept { return state_->writer.bytes_written(); }
bool PacketGenerator::packets_enabled() const noexcept { return state_->enables.packet(); }
base::Status PacketGenerator::status() const noexcept { return state_->writer.status(); }

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
