// Packets of retired instructions. Section "Packet Generation Under Different Enable Conditions".
#include "ptmodel/trace_unit.h"

namespace ptkit::ptmodel {

// ---- near branches

// A taken branch goes to `target`. True: packets stay on, its own packet is due.
bool TraceUnit::lands(std::uint64_t target) {
  if (!plain_) return lands_filtered(target);
  report_time();
  return true;
}

bool TraceUnit::lands_filtered(std::uint64_t target) {
  const bool was_on = inside();
  filter_ = filters_.traced(target);
  const bool stops = context_ && filters_.stops(target);
  if (was_on != inside()) update();
  if (lost_) {
    stop_waits_ = stop_waits_ || stops;
    return false;
  }
  report_time();
  if (branches_ && was_on && inside() && !stops) return true;
  if (branches_ && was_on) {
    unit_->disable(payload(target));
  } else if (branches_ && inside() && !stops) {
    unit_->enable(payload(target));
  } else {
    unit_->assume(context_, filter_);
  }
  if (stops) stop();
  return false;
}

void TraceUnit::on_conditional(bool taken, std::uint64_t ip_after) {
  if (taken) {
    if (lands(ip_after)) unit_->conditional(true, payload(ip_after));
  } else if (branches_ && inside() && !lost_) {
    report_time();
    unit_->conditional(false, payload(ip_after));
  }
}

void TraceUnit::on_jump(std::uint64_t target) {
  if (lands(target)) unit_->at(payload(target));
}

void TraceUnit::on_call(std::uint64_t next_ip, std::uint64_t target) {
  if (lands(target)) unit_->call(payload(next_ip), payload(target));
}

void TraceUnit::on_jump_indirect(std::uint64_t target) {
  if (lands(target)) unit_->jump_indirect(payload(target));
}

void TraceUnit::on_call_indirect(std::uint64_t next_ip, std::uint64_t target) {
  if (lands(target)) unit_->call_indirect(payload(next_ip), payload(target));
}

void TraceUnit::on_ret(std::uint64_t target) {
  if (lands(target)) unit_->ret(payload(target));
}

// ---- far transfers

void TraceUnit::far_transfer(std::uint64_t target, const ProcessorState& after) {
  transfer(nullptr, target, after);
}

void TraceUnit::interrupt(std::uint64_t from, std::uint64_t target, const ProcessorState& after) {
  const std::uint64_t stop_ip = payload(from);  // in the segment that is left
  transfer(&stop_ip, target, after);
}

void TraceUnit::transfer(const std::uint64_t* from, std::uint64_t target, const ProcessorState& after) {
  const std::uint64_t cr3_before = told_cr3();
  state_ = after;
  if (!trigger_) return;
  const bool cr3_loaded = told_cr3() != cr3_before;
  const bool was_on = inside();
  context_ = context_of(state_);
  filter_ = filters_.traced(target);
  const bool stops = context_ && filters_.stops(target);
  update();
  if (lost_) {
    stop_waits_ = stop_waits_ || stops;
    return;
  }
  report_time();
  report_mode();
  const bool reports_flow = branches_ && (was_on || (inside() && !stops));
  if (reports_flow) {
    if (cr3_loaded) unit_->transfer_loads_cr3(told_cr3());
    transfer_packets(from, payload(target), was_on, stops);
  } else {
    unit_->assume(context_, inside() ? !stops : filter_);
    if (cr3_loaded) report_cr3();
    unit_->at(payload(target));
  }
  if (stops) stop();
}

// PacketEn was set, is set, or both. `from` and `target` are payloads.
void TraceUnit::transfer_packets(const std::uint64_t* from, std::uint64_t target, bool was_on, bool stops) {
  if (!was_on) {
    unit_->enable(target);
  } else if (inside() && !stops) {
    from != nullptr ? unit_->async(*from, target) : unit_->far_transfer(target);
  } else if (context_) {
    from != nullptr ? unit_->async_out(*from, target) : unit_->far_transfer_out(target);
  } else {
    from != nullptr ? unit_->async_out(*from) : unit_->far_transfer_out();
  }
}

// ---- changes without a transfer

void TraceUnit::mov_cr3(std::uint64_t cr3, std::uint64_t next_ip) {
  ProcessorState after = state_;
  after.cr3 = cr3;
  change(after, next_ip, true);
}

void TraceUnit::change_state(const ProcessorState& after, std::uint64_t next_ip) {
  change(after, next_ip, after.cr3 != state_.cr3);
}

void TraceUnit::change(const ProcessorState& after, std::uint64_t next_ip, bool cr3_written) {
  const bool was_on = inside();
  const bool had_context = context_;
  state_ = after;
  if (!trigger_) return;
  context_ = context_of(state_);
  update();
  const bool stops = context_ && !had_context && filters_.stops(next_ip);
  if (lost_) {
    stop_waits_ = stop_waits_ || stops;
    return;
  }
  report_time();
  if (was_on && inside()) return change_inside(next_ip, cr3_written);
  if (was_on && branches_) unit_->far_transfer_out();
  // A PIP comes before the TIP.PGE, and not at all where the new context is none of ours.
  unit_->assume(context_, filter_ && !inside());
  report_mode();
  if (cr3_written) report_cr3();
  if (stops) return stop();
  if (!inside()) return;
  if (branches_) {
    unit_->enable(payload(next_ip));
  } else {
    unit_->assume(true, true);
  }
}

void TraceUnit::change_inside(std::uint64_t next_ip, bool cr3_written) {
  if (branches_) unit_->set_interrupt_flag(state_.interrupt_flag, payload(next_ip));
  report_mode();
  if (cr3_written) report_cr3();
  unit_->at(payload(next_ip));
}

}  // namespace ptkit::ptmodel
