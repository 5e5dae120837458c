#include "capture/linux/encode/block_encoder_state.h"

#include <algorithm>

#include "capture/linux/encode/block_path.h"

namespace ptkit::capture {

namespace {

using code::insn::ExecMode;

}  // namespace

BlockEncoder::State::State(const trace_unit::generator::GeneratorConfig& config, const GuestCode& code_in,
                           trace_unit::generator::PacketGenerator::Output sink, BlockLogs logs_in,
                           const AddressFilter* filter_in, Watcher watcher_in)
    : tracer(config, std::move(sink)),
      code(code_in),
      logs(std::move(logs_in)),
      cyc(config.cyc),
      filter(filter_in),
      watcher(std::move(watcher_in)),
      fast_path_allowed(!logs.on()) {
  tracer.generator().hold_psb(true);
  if (filter != nullptr) armed = !filter->rules()->waits_for_start();
}

void BlockEncoder::State::begin_first(std::uint32_t number, const BlockTime& at) {
  const bool resync = begun && stale(at.tsc);
  if (!resync) advance_to(at.tsc);
  const bool psb_due = tracer.generator().psb_due();
  begin(number, at, resync);
  if (psb_due) emit_psb();
}

void BlockEncoder::State::begin_first_with_cyc(std::uint32_t number, const BlockTime& at) {
  if (quiet_until(at.tsc)) {
    fast_encoder.set_time(at.tsc);
    fast_encoder.begin_timed_step();
    if (run({&number, 1}) == 1) return fast_encoder.end_timed_step();
    begin(number, at);
  } else {
    begin_first(number, at);
  }
  tracer.generator().hold_cyc();
}

const GuestBlock* BlockEncoder::State::take_last() {
  const std::uint32_t number = std::exchange(last, kNoNumber);
  return number == kNoNumber ? nullptr : &code[number];
}

void BlockEncoder::State::advance_to(std::uint64_t tsc) {
  close_fast_path();
  // While packets are off, a PSB may come anywhere.
  if (!tracer.inside()) tracer.generator().hold_psb(false);
  if (std::exchange(has_untimed_blocks, false)) {
    tracer.set_time_loosely(tsc);
  } else {
    tracer.set_time(tsc);
  }
  tracer.generator().hold_psb(true);
}

void BlockEncoder::State::emit_psb() {
  tracer.generator().hold_psb(false);
  if (last != kNoNumber) tracer.generator().at(code[last].pc);
  tracer.generator().hold_psb(true);
}

void BlockEncoder::State::begin(std::uint32_t number, const BlockTime& at, bool resync) {
  close_fast_path();
  if (number >= code.size()) {
    ++unexplained;
    return;
  }
  const GuestBlock& block = code[number];
  if (interruption) {
    const Interruption look = *std::exchange(interruption, std::nullopt);
    if (look.ip != block.pc) interrupt(look, false);
  }
  const std::uint32_t from = last;
  bool repeated = false;
  bool follows = false;
  const BlockTime ended{at.tsc, resync ? began_at : at.logged_tsc};
  began_at = at.logged_tsc;
  if (const GuestBlock* const before = take_last()) {
    if (const auto count = retired_before(*before, block)) {
      retire(*before, *count, ended);
      repeated = before->repeats && block.pc == before->last;
      follows = repeated;
    } else {
      retire_all(*before, block.pc, ended);
      log_transfer(*before, block.pc, at.logged_sp);
      follows = tracer.inside();
    }
  } else {
    branched_here = true;
    logs.transfers.arrive(block.pc, at.logged_sp, instructions);
  }
  const std::uint64_t step = exact_tsc;
  enter(number, at.tsc, resync);
  if (!fast_path_allowed || last == kNoNumber) return;
  learn_block(number);
  if (follows && step == exact_tsc) learn_transition(from, number, repeated);
}

bool BlockEncoder::State::stale(std::uint64_t tsc) {
  if (const std::uint32_t now = code.changes(); now != changes) {
    changes = now;
    next_change = code.next_change(exact_tsc);
  }
  return next_change <= tsc;
}

void BlockEncoder::State::set_exact_tsc(std::uint64_t tsc) {
  exact_tsc = tsc;
  next_change = code.next_change(tsc);
}

void BlockEncoder::State::enter(std::uint32_t number, std::uint64_t tsc, bool resync) {
  const GuestBlock& block = code[number];
  if (block.insns == 0) return tracer.interrupted(block.pc);  // the block's bytes are no instructions
  const bool changed = block.valid_from > exact_tsc;
  if (begun && (changed || resync)) {
    set_exact_tsc(std::max(tsc, block.valid_from));
    tracer.code_changed(block.pc, exact_tsc);
    has_untimed_blocks = false;
  }
  if (!begun) {
    set_exact_tsc(std::max(tsc, block.valid_from));
    if (changed) tracer.set_time(exact_tsc);
    tracer.generator().set_mode(true, false, true);
    tracer.generator().start();
    begun = true;
  }
  if (std::exchange(branched_here, false)) land_at(block.pc);
  if (traced() && !tracer.inside()) tracer.enter(block.pc, ExecMode::BITS64);
  last = number;
}

void BlockEncoder::State::retire(const GuestBlock& block, std::size_t count, const BlockTime& at) {
  std::span<const AddressFilter::Point> points;
  if (rules != nullptr) points = rules->points(block.pc, block.next);
  if (points.empty() && !logs.instructions.on()) {
    instructions += tracer.inside() ? count : 0;
    return;
  }
  std::uint64_t ip = block.pc;
  for (std::size_t i = 0; i < count; ++i) {
    check_points(points, ip, at.tsc);
    if (tracer.inside()) {
      logs.instructions.add(ip);
      ++instructions;
    }
    ip += block.sizes[i];
  }
}

void BlockEncoder::State::retire_all(const GuestBlock& block, std::uint64_t to, const BlockTime& at) {
  retire(block, block.insns, at);
  const bool explained = leads_to(block, to);
  branched_here =
      ends_in_branch(block) && !(block.end.cls == code::insn::InsnClass::COND_JUMP && to == block.next);
  branched_here = branched_here || !explained;
  if (tracer.inside()) return retire_end(block, to, at);
  unexplained += explained ? 0 : 1;
}

// Retires the last instruction while packets are on.
void BlockEncoder::State::retire_end(const GuestBlock& block, std::uint64_t to, const BlockTime& at) {
  if (ends_in_branch(block)) {
    ++branches;
    logs.branches.add(block.last);
    logs.branches.add(at.logged_tsc);
  }
  const bool to_kernel = block.end.cls == code::insn::InsnClass::FAR_CALL && enters_kernel(block.end.kind);
  const bool out =
      rules != nullptr && branched_here && !to_kernel && leads_to(block, to) && !rules->plain(to);
  if (out) return tracer.leave_to(to);
  if (!tracer.retire(block.end, block.last, to, ExecMode::BITS64, ExecMode::BITS64)) ++unexplained;
}

// The block was executed to its end, and the next instruction is at `to`.
void BlockEncoder::State::log_transfer(const GuestBlock& block, std::uint64_t to, std::uint64_t sp) {
  const bool conditional = block.end.cls == code::insn::InsnClass::COND_JUMP;
  if (to == block.next && (conditional || !ends_in_branch(block))) return;
  leave_by_end(block);
  logs.transfers.arrive(to, sp, instructions);
}

void BlockEncoder::State::leave_by_end(const GuestBlock& block) {
  logs.transfers.leave(static_cast<std::uint8_t>(block.end.cls), block.last, block.next - block.last);
}

void BlockEncoder::State::interrupt(const Interruption& at, bool fault) {
  advance_to(at.tsc, [&](const BlockTime& ended) {
    if (const GuestBlock* const block = take_last()) {
      if (const auto count = retired_before(*block, at.ip, fault)) {
        retire(*block, *count, ended);
      } else {
        retire_all(*block, at.ip, ended);
        log_transfer(*block, at.ip, at.sp);
      }
    } else {
      logs.transfers.arrive(at.ip, at.sp, instructions);
    }
    logs.transfers.leave(TransferLog::kInterrupt, at.ip);
    logs.transfers.arrive(at.ip, at.sp, instructions);
    tracer.interrupted(at.ip);
  });
}

void BlockEncoder::State::finish(std::uint64_t tsc) {
  if (interruption) interrupt(*std::exchange(interruption, std::nullopt), true);
  advance_to(tsc, [&](const BlockTime& ended) {
    const GuestBlock* const block = take_last();
    if (block == nullptr) return;
    // The target of a last branch is unknown.
    const bool branch = ends_in_branch(*block);
    if (branch) {
      retire(*block, block->insns - std::size_t{1}, ended);
    } else {
      retire_all(*block, block->next, ended);
    }
    tracer.interrupted(branch ? block->last : block->next);
  });
  tracer.generator().flush();
  logs.instructions.flush();
  logs.branches.flush();
  logs.transfers.finish(instructions);
}

// ---- address filters (address_filter.h)

void BlockEncoder::State::update_rules() {
  if (filter == nullptr || rules == filter->rules()) return;
  close_fast_path();
  rules = filter->rules();
  hot.clear();  // learned transitions may now leave the FILTER ranges
}

void BlockEncoder::State::land_at(std::uint64_t ip) {
  if (rules == nullptr) return;
  in_range = rules->traced(ip);
  if (stopped || !armed || !rules->stops(ip)) return;
  stopped = true;
  tracer.generator().trace_stop();
}

// Applies the points at `ip` before its instruction is executed.
void BlockEncoder::State::check_points(std::span<const AddressFilter::Point> points, std::uint64_t ip,
                                       std::uint64_t tsc) {
  for (const AddressFilter::Point& point : points) {
    if (point.address != ip) continue;
    switch (point.kind) {
      case AddressFilter::Point::Kind::WATCH:
        if (watcher) watcher(point.id, tsc);
        break;
      case AddressFilter::Point::Kind::STOP:
        armed = false;
        tracer.interrupted(ip);
        break;
      case AddressFilter::Point::Kind::START:
        armed = true;
        if (traced() && !tracer.inside()) tracer.enter(ip, code::insn::ExecMode::BITS64);
        break;
    }
  }
}

}  // namespace ptkit::capture
