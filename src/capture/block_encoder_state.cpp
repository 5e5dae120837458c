#include "capture/block_encoder_state.h"

#include <algorithm>

#include "capture/block_path.h"

namespace ptkit::capture {

namespace {

using insn::ExecMode;

}  // namespace

BlockEncoder::State::State(const softpt::UnitConfig& config, const GuestCode& code_in,
                           softpt::PtUnit::Output sink, BlockTruth truth_in)
    : unit(config, std::move(sink)),
      code(code_in),
      truth(std::move(truth_in)),
      cyc(config.cyc),
      may_hurry(!truth.on()) {
  unit.unit().hold_psb(true);
}

void BlockEncoder::State::begin_first(std::uint32_t number, const Moment& at) {
  reach(at.tsc);
  const bool psb_due = unit.unit().psb_due();
  begin(number, at);
  if (psb_due) place_psb();
}

const GuestBlock* BlockEncoder::State::take_last() {
  const std::uint32_t number = std::exchange(last, kNoNumber);
  return number == kNoNumber ? nullptr : &code[number];
}

void BlockEncoder::State::reach(std::uint64_t tsc) {
  close_lane();
  if (std::exchange(loose, false)) {
    unit.set_time_loosely(tsc);
  } else {
    unit.set_time(tsc);
  }
  if (!unit.inside()) place_psb();
}

void BlockEncoder::State::place_psb() {
  unit.unit().hold_psb(false);
  if (last != kNoNumber) unit.unit().at(code[last].pc);
  unit.unit().hold_psb(true);
}

void BlockEncoder::State::begin(std::uint32_t number, const Moment& at) {
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
  if (const GuestBlock* const before = take_last()) {
    if (const auto count = left_before(*before, block)) {
      retire(*before, *count);
      repeated = before->repeats && block.pc == before->last;
      follows = repeated;
    } else {
      retire_all(*before, block.pc, at.truth);
      follows = unit.inside();
    }
  }
  const std::uint64_t step = in_step;
  enter(number, at.tsc);
  if (!may_hurry || last == kNoNumber) return;
  learn_block(number);
  if (follows && step == in_step) learn_way(from, number, repeated);
}

void BlockEncoder::State::enter(std::uint32_t number, std::uint64_t tsc) {
  const GuestBlock& block = code[number];
  if (block.insns == 0) return unit.interrupted(block.pc);  // what the emulator did here is no code
  const bool changed = block.valid_from > in_step;
  if (begun && changed) {
    in_step = std::max(tsc, block.valid_from);
    unit.code_changed(block.pc, in_step);
  }
  if (!begun) {
    in_step = std::max(tsc, block.valid_from);
    if (changed) unit.set_time(in_step);
    begun = true;
  }
  if (!unit.inside()) unit.enter(block.pc, ExecMode::BITS64);
  last = number;
}

void BlockEncoder::State::retire(const GuestBlock& block, std::size_t count) {
  std::uint64_t ip = block.pc;
  for (std::size_t i = 0; i < count; ++i) {
    truth.instructions.add(ip);
    ip += block.sizes[i];
  }
  instructions += count;
}

void BlockEncoder::State::retire_all(const GuestBlock& block, std::uint64_t to, std::uint64_t true_tsc) {
  retire(block, block.insns);
  if (ends_in_branch(block)) {
    ++branches;
    truth.branches.add(block.last);
    truth.branches.add(true_tsc);
  }
  if (!unit.retire(block.end, block.last, to, ExecMode::BITS64, ExecMode::BITS64)) ++unexplained;
}

void BlockEncoder::State::interrupt(const Interruption& at, bool fault) {
  reach(at.tsc);
  if (const GuestBlock* const block = take_last()) {
    if (const auto count = left_before(*block, at.ip, fault)) {
      retire(*block, *count);
    } else {
      retire_all(*block, at.ip, at.tsc);
    }
  }
  unit.interrupted(at.ip);
}

void BlockEncoder::State::finish(std::uint64_t tsc) {
  if (interruption) interrupt(*std::exchange(interruption, std::nullopt), true);
  reach(tsc);
  if (const GuestBlock* const block = take_last()) {
    // Where a branch went is not known any more.
    const bool branch = ends_in_branch(*block);
    if (branch) {
      retire(*block, block->insns - std::size_t{1});
    } else {
      retire_all(*block, block->next, tsc);
    }
    unit.interrupted(branch ? block->last : block->next);
  }
  unit.unit().flush();
  truth.instructions.flush();
  truth.branches.flush();
}

}  // namespace ptkit::capture
