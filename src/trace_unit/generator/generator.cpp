#include "trace_unit/generator/generator.h"

#include <algorithm>
#include <utility>

namespace ptkit::trace_unit::generator {
namespace {

using packet::Packet;
using packet::PacketKind;

// A decoder has to find a deferred TIP; more than a few would only make time less exact.
constexpr std::size_t kMaxDeferredTips = 8;
constexpr std::uint64_t kTscMask = (std::uint64_t{1} << 56) - 1;
constexpr std::uint64_t kCr3Mask = 0x000fffffffffffe0;   // bits 51:5
constexpr std::uint64_t kVmcsMask = 0x000ffffffffff000;  // bits 51:12
constexpr std::uint64_t kCtcMask = 0xffff;

Packet make(PacketKind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0) noexcept {
  Packet packet;
  packet.kind = kind;
  packet.payload = payload;
  packet.payload2 = payload2;
  return packet;
}

Packet vmcs_packet(std::uint64_t base) noexcept { return make(PacketKind::VMCS, base & kVmcsMask); }

}  // namespace

Generator::Generator(const GeneratorConfig& config_in, Output output)
    : config(config_in),
      writer(std::move(output), config_in.chunk_bytes),
      timing_(config_in),
      tnt_(config_in.use_tnt_64 ? TntBuffer::kLongBits : TntBuffer::kShortBits),
      ratio_(config_in.core_bus_ratio) {
  if (!config.tnt) config.return_compression = false;  // a compressed RET is a TNT bit
  deferred_.reserve(kMaxDeferredTips);
}

// ---- time

void Generator::advance(Instant to) {
  cyc_held_ = false;
  to = timing_.not_before_now(to);
  if (enables.trigger()) {
    if (timing_.is_stop(to)) {
      timing_.move_to(to);
      time_anew();
    } else if (config.mtc) {
      while (const auto ctc = timing_.next_mtc(to)) emit(make(PacketKind::MTC, *ctc));
    }
  }
  timing_.move_to(to);
  if (enables.trigger()) psb_if_due();
}

bool Generator::advance_loosely(Instant to) {
  to = timing_.not_before_now(to);
  if (!config.tsc || !enables.trigger() || !(timing_.is_stop(to) || (config.mtc && timing_.passes_mtc(to)))) {
    advance(to);
    return false;
  }
  cyc_held_ = false;
  timing_.move_to(to);
  time_anew();
  psb_if_due();
  return true;
}

void Generator::time_anew() {
  emit_cyc();  // the cycles until now belong before the TSC
  emit_tsc_tma();
  emit(make(PacketKind::CBR, ratio_));
}

void Generator::emit_tsc_tma() {
  if (!config.tsc) return;
  const std::uint64_t tsc = timing_.now().tsc;
  writer.put(make(PacketKind::TSC, tsc & kTscMask));
  if (!config.mtc) return;
  const CrystalClock& crystal = timing_.crystal();
  writer.put(make(PacketKind::TMA, crystal.ctc_at(tsc) & kCtcMask, crystal.fast_counter(tsc)));
}

void Generator::set_ratio(std::uint8_t ratio) {
  if (ratio == ratio_) return;
  ratio_ = ratio;
  if (enables.trigger()) emit(make(PacketKind::CBR, ratio_));
}

void Generator::emit_cyc(std::uint64_t cycles) {
  if (!config.cyc || cyc_held_) return;
  if (const auto passed = timing_.take_cycles(cycles)) writer.put(make(PacketKind::CYC, *passed));
}

// ---- one packet

// Every packet outside of PSB+ that is not itself a time is CYC-eligible.
void Generator::emit(const Packet& packet) {
  emit_cyc();
  writer.put(packet);
}

void Generator::emit_ip(PacketKind kind, std::uint64_t ip) {
  emit_cyc();
  writer.put_ip(kind, ip);
}

void Generator::standalone(const Packet& packet) {
  flush_branches();
  emit(packet);
}

void Generator::pebs_packet(const Packet& packet, bool items_4) {
  flush_branches();
  emit_cyc();
  writer.put(packet, items_4);
}

// ---- branches

void Generator::tnt_bit(bool taken) {
  if (tnt_.empty()) first_bit_cycles_ = timing_.now().cycles;
  tnt_.push(taken);
  if (tnt_.full()) flush_branches();
}

void Generator::near_tip(std::uint64_t target) {
  // Without bits there is no TNT packet to defer.
  if (config.deferred_tips && !tnt_.empty() && !mode_due()) {
    deferred_.push_back(target);
    if (deferred_.size() >= kMaxDeferredTips) flush_branches();
    return;
  }
  return_tip(target);
}

// A decoder takes a TNT bit that is left at a RET for that RET: no later bit may come before this TIP.
void Generator::return_tip(std::uint64_t target) {
  flush_branches();
  emit_mode_if_due();
  emit_ip(PacketKind::TIP, target);
}

void Generator::emit_tnt(unsigned count, PacketKind kind) {
  emit_cyc(config.cyc_of_first_bit ? first_bit_cycles_ : timing_.now().cycles);
  writer.put(make(kind, tnt_.take(count), count));
}

void Generator::flush_branches() {
  // One packet for all bits: a decoder takes a TNT packet for older than the branches of the next one.
  if (!tnt_.empty()) {
    const bool is_short = tnt_.count() <= TntBuffer::kShortBits;
    emit_tnt(tnt_.count(), is_short ? PacketKind::TNT_8 : PacketKind::TNT_64);
  }
  for (const std::uint64_t target : deferred_) emit_ip(PacketKind::TIP, target);
  deferred_.clear();
}

void Generator::far_tip(std::uint64_t target) {
  flush_branches();
  emit_transfer_state();
  emit_mode_if_due();
  emit_ip(PacketKind::TIP, target);
  close_sequence();
}

void Generator::fup(std::uint64_t ip) {
  flush_branches();
  emit_ip(PacketKind::FUP, ip);
}

// ---- state that packets tell

Packet Generator::mode_packet() const noexcept {
  const std::uint64_t bits = mode.cs_l ? 64 : mode.cs_d ? 32 : 16;
  const bool iflag = config.event_trace && mode.interrupt_flag;
  const unsigned fields = (mode.cs_l ? 1U : 0U) | (mode.cs_d ? 2U : 0U) | (iflag ? 4U : 0U);
  return make(PacketKind::MODE_EXEC, bits, fields);
}

bool Generator::mode_due() const noexcept {
  if (!told_mode_) return true;
  if (told_mode_->cs_l != mode.cs_l || told_mode_->cs_d != mode.cs_d) return true;
  return config.event_trace && told_mode_->interrupt_flag != mode.interrupt_flag;
}

void Generator::mode_exec() {
  emit(mode_packet());
  told_mode_ = mode;
}

void Generator::emit_mode_if_due() {
  if (mode_due()) mode_exec();
}

Packet Generator::tsx_packet(bool aborted) const noexcept {
  return make(PacketKind::MODE_TSX, (in_transaction ? 1U : 0U) | (aborted ? 2U : 0U));
}

void Generator::mode_tsx(bool in_tx, bool aborted) {
  in_transaction = in_tx;
  flush_branches();
  emit(tsx_packet(aborted));
  told_transaction_ = in_tx;
}

Packet Generator::pip_packet() const noexcept {
  Packet packet = make(PacketKind::PIP, paging_state.cr3 & kCr3Mask);
  if (paging_state.non_root) packet.flags = Packet::NR;
  return packet;
}

void Generator::paging() {
  if (config.user_only) return;
  flush_branches();
  emit(pip_packet());
  told_paging_ = paging_state;
}

void Generator::emit_transfer_state() {
  const auto cr3 = std::exchange(transfer_cr3, std::nullopt);
  const auto base = std::exchange(transfer_vmcs, std::nullopt);
  if (cr3) {
    paging_state.cr3 = *cr3;
    paging();
  }
  if (base) {
    vmcs = base;
    if (!config.user_only) emit(vmcs_packet(*base));
  }
}

void Generator::transfer_unseen() {
  if (const auto cr3 = std::exchange(transfer_cr3, std::nullopt)) paging_state.cr3 = *cr3;
  if (const auto base = std::exchange(transfer_vmcs, std::nullopt)) vmcs = base;
}

void Generator::vmcs_now(std::uint64_t base) {
  if (config.user_only) return;
  standalone(vmcs_packet(base));
  next_instruction_unknown();
}

// ---- PSB

void Generator::next_instruction(std::uint64_t ip) {
  ip_ = ip;
  ip_known_ = true;
  close_sequence();
  psb_if_due();
}

void Generator::psb_if_due() {
  if (!enables.trigger() || sequence_open_ || psb_held_) return;
  if (!psb_due()) return;
  if (enables.packet() && !ip_known_ && config.branches) return;
  psb_plus();
}

void Generator::psb_plus() {
  flush_branches();
  emit_cyc();
  psb_start_ = writer.bytes_written();
  writer.put(make(PacketKind::PSB));
  writer.forget_last_ip();
  calls.clear();
  told_mode_.reset();
  told_transaction_.reset();
  told_paging_.reset();
  emit_tsc_tma();
  writer.put(make(PacketKind::CBR, ratio_));
  if (!config.user_only && (enables.context || !config.hides_context)) {
    writer.put(pip_packet());
    told_paging_ = paging_state;
    if (vmcs) writer.put(vmcs_packet(*vmcs));
  }
  if (enables.packet() && config.branches) {
    writer.put(tsx_packet(false));
    told_transaction_ = in_transaction;
    writer.put(mode_packet());
    told_mode_ = mode;
    writer.put_ip(PacketKind::FUP, ip_);
  }
  writer.put(make(PacketKind::PSBEND));
}

void Generator::repeat_state_if_changed() {
  const bool paging_changed = !config.user_only && told_paging_ != paging_state;
  if (mode_due() || told_transaction_.value_or(false) != in_transaction || paging_changed) psb_plus();
}

// ---- enabling

void Generator::start() {
  if (enables.trigger()) return;
  reset_enables();
  if (!std::exchange(started_, true)) {
    psb_plus();
  } else {
    time_anew();
    psb_if_due();
  }
}

void Generator::reset_enables() noexcept {
  enables = Enables{};
  enables.trace = true;
  close_sequence();
  timing_.restart_cycles();
}

void Generator::begin(bool context, std::optional<std::uint64_t> bytes_since_psb) {
  reset_enables();
  started_ = true;
  enables.context = context;
  if (!bytes_since_psb) return psb_plus();
  psb_start_ = writer.bytes_written() - *bytes_since_psb;
  time_anew();
  psb_if_due();
}

void Generator::packets_on(std::uint64_t ip) {
  enables.context = true;
  enables.filter = true;
  emit_transfer_state();
  if (told_paging_ && told_paging_ != paging_state) paging();
  if (told_transaction_.value_or(false) != in_transaction) mode_tsx(in_transaction, false);
  emit_mode_if_due();
  emit_ip(PacketKind::TIP_PGE, ip);
  told_transaction_ = in_transaction;
  calls.clear();
  next_instruction(ip);
}

void Generator::packets_off(std::optional<std::uint64_t> target) {
  flush_branches();
  if (target) {
    emit_ip(PacketKind::TIP_PGD, *target);
  } else {
    emit_cyc();
    writer.put_without_ip(PacketKind::TIP_PGD);
  }
  calls.clear();
  ip_known_ = false;
  close_sequence();
}

void Generator::overflow() {
  standalone(make(PacketKind::OVF));
  calls.clear();
  writer.forget_last_ip();
  ip_known_ = false;
  close_sequence();
}

void Generator::stop() {
  if (enables.packet()) packets_off(std::nullopt);
  standalone(make(PacketKind::TRACE_STOP));
  enables.stopped = true;
  calls.clear();
}

}  // namespace ptkit::trace_unit::generator
