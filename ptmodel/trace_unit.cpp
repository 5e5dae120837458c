// Enabling and ending; other packets than those of the flow (trace_flow.cpp).
#include "ptmodel/trace_unit.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ptkit::ptmodel {
namespace {

constexpr std::uint32_t kMaxByteCount = (1U << PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1;
constexpr std::uint32_t kLeastPsbBytes = 2048;

}  // namespace

TraceUnit::TraceUnit(const Capabilities& capabilities, const trace_unit::generator::GeneratorConfig& packets,
                     Platform& platform)
    : platform_(platform),
      base_config_(packets),
      registers_(capabilities),
      output_(capabilities, platform),
      ratio_(packets.core_bus_ratio) {}

TraceUnit::~TraceUnit() = default;

// ---- registers

MsrResult TraceUnit::write_msr(std::uint32_t index, std::uint64_t value, InsnAddress at) {
  const bool was_enabled = registers_.trace_enabled();
  const MsrResult result = registers_.write(index, value);
  if (result != MsrResult::OK || index != PT_MSR_RTIT_CTL) return result;
  if (!was_enabled && registers_.trace_enabled()) enable(at);
  if (was_enabled && !registers_.trace_enabled()) disable(at);
  return result;
}

MsrResult TraceUnit::read_msr(std::uint32_t index, std::uint64_t& value) const {
  const MsrResult result = registers_.read(index, value);
  if (result != MsrResult::OK || index != PT_MSR_RTIT_STATUS || !trigger_) return result;
  value |= bit(PT_STATUS_TRIGGER_EN);
  if (context_) value |= bit(PT_STATUS_CONTEXT_EN);
  if (filter_) value |= bit(PT_STATUS_FILTER_EN);
  if (!registers_.capabilities().psb_cyc()) return result;
  value &= ~field_mask(PT_STATUS_PACKET_BYTE_COUNT_SHIFT, PT_STATUS_PACKET_BYTE_COUNT_WIDTH);
  value |= std::uint64_t{packet_byte_count()} << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
  return result;
}

void TraceUnit::reset(bool warm) {
  if (trigger_) keep_byte_count();
  trigger_ = context_ = filter_ = lost_ = false;
  unit_.reset();
  registers_.reset(warm);
  update();
}

void TraceUnit::set_state(const ProcessorState& state) { state_ = state; }

void TraceUnit::set_core_bus_ratio(std::uint8_t ratio) {
  ratio_ = ratio;
  if (telling()) unit_->set_core_bus_ratio(ratio);
}

// ---- TraceEn

trace_unit::generator::GeneratorConfig TraceUnit::packet_config() const noexcept {
  const Registers& r = registers_;
  trace_unit::generator::GeneratorConfig config = base_config_;
  config.return_compression = !r.ctl_bit(PT_CTL_DIS_RETC);
  config.tsc = r.ctl_bit(PT_CTL_TSC_EN);
  config.mtc = r.ctl_bit(PT_CTL_MTC_EN);
  config.cyc = r.ctl_bit(PT_CTL_CYC_EN);
  config.ptw = r.ctl_bit(PT_CTL_PTW_EN);
  config.fup_on_ptw = r.ctl_bit(PT_CTL_FUP_ON_PTW);
  config.power = r.ctl_bit(PT_CTL_PWR_EVT_EN);
  config.event_trace = r.ctl_bit(PT_CTL_EVENT_EN);
  config.tnt = !r.ctl_bit(PT_CTL_DIS_TNT);
  config.branches = r.ctl_bit(PT_CTL_BRANCH_EN);
  config.user_only = !r.ctl_bit(PT_CTL_OS);
  config.hides_context = true;
  config.mtc_period =
      static_cast<std::uint8_t>(field_of(r.ctl(), PT_CTL_MTC_FREQ_SHIFT, PT_CTL_MTC_FREQ_WIDTH));
  config.cyc_threshold =
      static_cast<std::uint8_t>(field_of(r.ctl(), PT_CTL_CYC_THRESH_SHIFT, PT_CTL_CYC_THRESH_WIDTH));
  config.psb_bytes = kLeastPsbBytes << field_of(r.ctl(), PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH);
  config.core_bus_ratio = ratio_;
  return config;
}

// PacketByteCnt has 17 bits: it counts in larger steps where the PSB period is longer than that.
unsigned TraceUnit::byte_count_shift() const noexcept {
  constexpr unsigned kLastFit = PT_STATUS_PACKET_BYTE_COUNT_WIDTH - 11;
  const unsigned frequency = field_of(registers_.ctl(), PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH);
  return frequency > kLastFit ? frequency - kLastFit : 0;
}

// Not 0: that would mean that no PSB was written yet.
std::uint32_t TraceUnit::packet_byte_count() const noexcept {
  const std::uint64_t count = unit_->bytes_since_psb() >> count_shift_;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(count, 1, kMaxByteCount));
}

void TraceUnit::enable(InsnAddress at) {
  filters_.configure(registers_);
  branches_ = registers_.ctl_bit(PT_CTL_BRANCH_EN);
  preserves_ = registers_.ctl_bit(PT_CTL_INJECT_PSB_PMI_ON_ENABLE);
  count_shift_ = byte_count_shift();
  lost_ = stop_waits_ = false;
  if (preserves_ && registers_.status_bit(PT_STATUS_PEND_TOPA_PMI)) platform_.topa_pmi();
  if (registers_.status_bit(PT_STATUS_ERROR) || registers_.status_bit(PT_STATUS_STOPPED)) return;
  if (!output_.begin(registers_.ctl(), registers_.output)) {
    registers_.set_status(PT_STATUS_ERROR, true);
    return;
  }
  unit_ = std::make_unique<trace_unit::generator::PacketGenerator>(
      packet_config(), [this](base::Bytes bytes) { take_bytes(bytes); });
  trigger_ = true;
  context_ = context_of(state_);
  filter_ = filters_.traced(at.next_ip);
  begin_packets(at);
  update();
}

void TraceUnit::begin_packets(InsnAddress at) {
  const bool psb_waits = preserves_ && registers_.status_bit(PT_STATUS_PEND_PSB);
  std::optional<std::uint64_t> bytes_since_psb;
  if (registers_.packet_byte_count() != 0 && !psb_waits) {
    bytes_since_psb = std::uint64_t{registers_.packet_byte_count()} << count_shift_;
  }
  registers_.set_status(PT_STATUS_PEND_PSB, false);
  report_time();
  report_mode();
  report_cr3();
  unit_->tsx(in_transaction_, false, payload(at.next_ip));
  unit_->begin(context_, bytes_since_psb);
  if (inside() && branches_) {
    unit_->enable(payload(at.next_ip));
  } else {
    unit_->assume(context_, filter_);
  }
}

void TraceUnit::disable(InsnAddress at) {
  if (trigger_) {
    if (lost_) {
      resolve_overflow(nullptr);
    } else {
      report_time();
    }
    if (inside() && branches_ && !lost_) unit_->async_out(payload(at.ip));
    unit_->assume(false, false);
    unit_->disable();
    unit_->flush();
  }
  if (trigger_) {
    registers_.set_status(PT_STATUS_PEND_PSB, preserves_ && unit_->psb_due());
    keep_byte_count();
  }
  if (unit_ && status_ == base::Status::OK) status_ = unit_->status();
  unit_.reset();
  trigger_ = context_ = filter_ = lost_ = false;
  update();
}

void TraceUnit::keep_byte_count() {
  if (registers_.capabilities().psb_cyc()) registers_.set_packet_byte_count(packet_byte_count());
}

// TriggerEn goes, TraceEn stays: only software clears it.
void TraceUnit::halt(unsigned status_bit) {
  if (trigger_) keep_byte_count();
  registers_.set_status(status_bit, true);
  trigger_ = false;
  update();
}

// Packets from before the TraceStop are written out.
void TraceUnit::stop() {
  unit_->assume(context_, false);
  unit_->trace_stop();
  unit_->flush();
  if (trigger_) halt(PT_STATUS_STOPPED);
}

// While something of this unit runs: it goes on to its end, and its bytes are dropped.
void TraceUnit::take_bytes(base::Bytes bytes) {
  if (!trigger_) return;
  const TraceOutput::Outcome outcome = output_.write(bytes, registers_.output);
  if (outcome.stopped) halt(PT_STATUS_STOPPED);
  if (outcome.error) halt(PT_STATUS_ERROR);
  if (!outcome.interrupt) return;
  if (preserves_) registers_.set_status(PT_STATUS_PEND_TOPA_PMI, true);
  platform_.topa_pmi();
}

bool TraceUnit::context_of(const ProcessorState& state) const noexcept {
  return filters_.context(state.cpl, state.cr3, state.pae);
}

void TraceUnit::update() noexcept {
  const bool traced = trigger_ && inside() && branches_ && !lost_;
  plain_ = traced && !filters_.ranges();
  watching_ = traced || (trigger_ && filters_.ranges());
}

bool TraceUnit::telling() {
  if (!trigger_ || lost_) return false;
  report_time();
  return true;
}

// ---- losses

void TraceUnit::begin_overflow() {
  if (!trigger_) return;
  lost_ = true;
  update();
}

void TraceUnit::end_overflow(std::uint64_t next_ip) {
  if (!lost_) return;
  if (trigger_) resolve_overflow(&next_ip);
  lost_ = false;
  update();
}

// Section "Internal Buffer Overflow". Without `next_ip` tracing ends with it.
void TraceUnit::resolve_overflow(const std::uint64_t* next_ip) {
  unit_->hold_psb(true);  // the state from before the loss is no state to begin with
  report_time();
  unit_->assume(false, false);
  report_mode();
  report_cr3();
  unit_->tsx(in_transaction_, false, 0);
  unit_->hold_psb(false);
  const bool stops = std::exchange(stop_waits_, false);
  if (next_ip != nullptr && inside() && branches_ && !stops) return unit_->overflow(payload(*next_ip));
  unit_->overflow();
  if (stops) return stop();
  if (next_ip != nullptr) unit_->assume(context_, filter_);
}

// ---- packets beside the flow

void TraceUnit::transaction(bool in_tx, bool aborted, std::uint64_t ip) {
  in_transaction_ = in_tx;
  if (branches_ && telling()) unit_->tsx(in_tx, aborted, payload(ip));
}

void TraceUnit::ptwrite(std::uint64_t value, bool wide, std::uint64_t ip) {
  if (telling()) unit_->ptwrite(value, wide, payload(ip));
}

void TraceUnit::mwait(std::uint8_t hints, std::uint8_t extensions) {
  if (context_ && telling()) unit_->mwait(hints, extensions);
}

void TraceUnit::power_entry(std::uint8_t state, std::uint8_t sub_state, bool hardware) {
  if (telling()) unit_->pwre(state, sub_state, hardware);
}

void TraceUnit::execution_stop(std::uint64_t ip) {
  if (telling()) unit_->exstop(payload(ip));
}

void TraceUnit::power_exit(std::uint8_t last, std::uint8_t deepest, std::uint8_t reasons) {
  if (telling()) unit_->pwrx(last, deepest, reasons);
}

void TraceUnit::event(packet::CfeType type, std::uint8_t vector) {
  if (context_ && telling()) unit_->event(type, vector);
}

void TraceUnit::event_at(packet::CfeType type, std::uint8_t vector, std::uint64_t ip) {
  if (context_ && telling()) unit_->event_at(type, vector, payload(ip));
}

void TraceUnit::event_data(packet::EvdType type, std::uint64_t value) {
  if (context_ && telling()) unit_->event_data(type, value);
}

}  // namespace ptkit::ptmodel
