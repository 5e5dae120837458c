#include "trace_unit/generator/packet_generator.h"

#include <utility>

#include "trace_unit/generator/state.h"

namespace ptkit::trace_unit::generator {

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

}  // namespace ptkit::trace_unit::generator
