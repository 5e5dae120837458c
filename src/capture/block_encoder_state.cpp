#include "capture/block_encoder_state.h"

#include <algorithm>

#include "capture/block_path.h"

namespace ptkit::capture {

namespace {

using insn::ExecMode;

}  // namespace

BlockEncoder::State::State(const softpt::UnitConfig& config, const GuestCode& code_in,
                           softpt::PtUnit::Output sink, BlockTruth truth_in, const AddressFilter* filter_in,
                           Watcher watcher_in)
    : unit(config, std::move(sink)),
      code(code_in),
      truth(std::move(truth_in)),
      cyc(config.cyc),
      filter(filter_in),
      watcher(std::move(watcher_in)),
      may_hurry(!truth.on()) {
  unit.unit().hold_psb(true);
  if (filter != nullptr) armed = !filter->rules()->waits_for_start();
}

void BlockEncoder::State::begin_first(std::uint32_t number, const Moment& at) {
  const bool resync = begun && stale(at.tsc);
  if (!resync) reach(at.tsc);
  const bool psb_due = unit.unit().psb_due();
  begin(number, at, resync);
  if (psb_due) place_psb();
}

const GuestBlock* BlockEncoder::State::take_last() {
  const std::uint32_t number = std::exchange(last, kNoNumber);
  return number == kNoNumber ? nullptr : &code[number];
}

void BlockEncoder::State::reach(std::uint64_t tsc) {
  close_lane();
  // While packets are off, a PSB has a place anywhere.
  if (!unit.inside()) unit.unit().hold_psb(false);
  if (std::exchange(loose, false)) {
    unit.set_time_loosely(tsc);
  } else {
    unit.set_time(tsc);
  }
  unit.unit().hold_psb(true);
}

void BlockEncoder::State::place_psb() {
  unit.unit().hold_psb(false);
  if (last != kNoNumber) unit.unit().at(code[last].pc);
  unit.unit().hold_psb(true);
}

void BlockEncoder::State::begin(std::uint32_t number, const Moment& at, bool resync) {
  close_lane();
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
  const Moment ended{at.tsc, resync ? began_at : at.truth};
  began_at = at.truth;
  if (const GuestBlock* const before = take_last()) {
    if (const auto count = left_before(*before, block)) {
      retire(*before, *count, ended);
      repeated = before->repeats && block.pc == before->last;
      follows = repeated;
    } else {
      retire_all(*before, block.pc, ended);
      follows = unit.inside();
    }
  } else {
    landed = true;
  }
  const std::uint64_t step = in_step;
  enter(number, at.tsc, resync);
  if (!may_hurry || last == kNoNumber) return;
  learn_block(number);
  if (follows && step == in_step) learn_way(from, number, repeated);
}

bool BlockEncoder::State::stale(std::uint64_t tsc) {
  if (const std::uint32_t now = code.changes(); now != changes) {
    changes = now;
    next_change = code.next_change(in_step);
  }
  return next_change <= tsc;
}

void BlockEncoder::State::set_in_step(std::uint64_t tsc) {
  in_step = tsc;
  next_change = code.next_change(tsc);
}

void BlockEncoder::State::enter(std::uint32_t number, std::uint64_t tsc, bool resync) {
  const GuestBlock& block = code[number];
  if (block.insns == 0) return unit.interrupted(block.pc);  // what the emulator did here is no code
  const bool changed = block.valid_from > in_step;
  if (begun && (changed || resync)) {
    set_in_step(std::max(tsc, block.valid_from));
    unit.code_changed(block.pc, in_step);
    loose = false;
  }
  if (!begun) {
    set_in_step(std::max(tsc, block.valid_from));
    if (changed) unit.set_time(in_step);
    unit.unit().set_mode(true, false, true);
    unit.unit().start();
    begun = true;
  }
  if (std::exchange(landed, false)) land(block.pc);
  if (traced() && !unit.inside()) unit.enter(block.pc, ExecMode::BITS64);
  last = number;
}

void BlockEncoder::State::retire(const GuestBlock& block, std::size_t count, const Moment& at) {
  std::span<const AddressFilter::Point> points;
  if (rules != nullptr) points = rules->points(block.pc, block.next);
  if (points.empty() && !truth.instructions.on()) {
    instructions += unit.inside() ? count : 0;
    return;
  }
  std::uint64_t ip = block.pc;
  for (std::size_t i = 0; i < count; ++i) {
    pass_points(points, ip, at.tsc);
    if (unit.inside()) {
      truth.instructions.add(ip);
      ++instructions;
    }
    ip += block.sizes[i];
  }
}

void BlockEncoder::State::retire_all(const GuestBlock& block, std::uint64_t to, const Moment& at) {
  retire(block, block.insns, at);
  const bool explained = leads_to(block, to);
  landed = ends_in_branch(block) && !(block.end.cls == insn::InsnClass::COND_JUMP && to == block.next);
  landed = landed || !explained;
  if (unit.inside()) return retire_end(block, to, at);
  unexplained += explained ? 0 : 1;
}

// The last instruction, while packets are on.
void BlockEncoder::State::retire_end(const GuestBlock& block, std::uint64_t to, const Moment& at) {
  if (ends_in_branch(block)) {
    ++branches;
    truth.branches.add(block.last);
    truth.branches.add(at.truth);
  }
  const bool to_kernel = block.end.cls == insn::InsnClass::FAR_CALL && enters_kernel(block.end.kind);
  const bool out = rules != nullptr && landed && !to_kernel && leads_to(block, to) && !rules->plain(to);
  if (out) return unit.leave_to(to);
  if (!unit.retire(block.end, block.last, to, ExecMode::BITS64, ExecMode::BITS64)) ++unexplained;
}

void BlockEncoder::State::interrupt(const Interruption& at, bool fault) {
  reach(at.tsc, [&](const Moment& ended) {
    if (const GuestBlock* const block = take_last()) {
      if (const auto count = left_before(*block, at.ip, fault)) {
        retire(*block, *count, ended);
      } else {
        retire_all(*block, at.ip, ended);
      }
    }
    unit.interrupted(at.ip);
  });
}

void BlockEncoder::State::finish(std::uint64_t tsc) {
  if (interruption) interrupt(*std::exchange(interruption, std::nullopt), true);
  reach(tsc, [&](const Moment& ended) {
    const GuestBlock* const block = take_last();
    if (block == nullptr) return;
    // Where a branch went is not known any more.
    const bool branch = ends_in_branch(*block);
    if (branch) {
      retire(*block, block->insns - std::size_t{1}, ended);
    } else {
      retire_all(*block, block->next, ended);
    }
    unit.interrupted(branch ? block->last : block->next);
  });
  unit.unit().flush();
  truth.instructions.flush();
  truth.branches.flush();
}

}  // namespace ptkit::capture
