#include "capture/block_encoder_state.h"

#include <algorithm>

#include "capture/block_path.h"

namespace ptkit::capture {

namespace {

using insn::ExecMode;
using insn::InsnClass;

bool is_branch(InsnClass cls) { return cls != InsnClass::OTHER && cls != InsnClass::PTWRITE; }

}  // namespace

BlockEncoder::State::State(const softpt::UnitConfig& config, const GuestCode& code_in,
                           softpt::PtUnit::Output sink, BlockTruth truth_in)
    : unit(config, std::move(sink)), code(code_in), truth(std::move(truth_in)), cyc(config.cyc) {
  unit.unit().hold_psb(true);
}

void BlockEncoder::State::reach(std::uint64_t tsc) {
  if (std::exchange(loose, false)) {
    unit.set_time_loosely(tsc);
  } else {
    unit.set_time(tsc);
  }
  if (!unit.inside()) place_psb();
}

void BlockEncoder::State::place_psb() {
  unit.unit().hold_psb(false);
  if (last != nullptr) unit.unit().at(last->pc);
  unit.unit().hold_psb(true);
}

void BlockEncoder::State::begin(std::uint32_t number, const Moment& at) {
  if (number >= code.size()) {
    ++unexplained;
    return;
  }
  const GuestBlock& block = code[number];
  if (interruption) {
    const Interruption look = *std::exchange(interruption, std::nullopt);
    if (look.ip != block.pc) interrupt(look, false);
  }
  if (last != nullptr) {
    if (const auto count = left_before(*last, block)) {
      retire(*last, *count);
    } else {
      retire_all(*last, block.pc, at.truth);
    }
  }
  enter(block, at.tsc);
}

void BlockEncoder::State::enter(const GuestBlock& block, std::uint64_t tsc) {
  const bool changed = block.valid_from > in_step;
  if (block.insns == 0) {
    // Whatever the emulator did here is not code to a decoder.
    unit.interrupted(block.pc);
    last = nullptr;
    return;
  }
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
  last = &block;
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
  if (is_branch(block.end.cls)) {
    ++branches;
    truth.branches.add(block.last);
    truth.branches.add(true_tsc);
  }
  if (!unit.retire(block.end, block.last, to, ExecMode::BITS64, ExecMode::BITS64)) ++unexplained;
}

void BlockEncoder::State::interrupt(const Interruption& at, bool fault) {
  reach(at.tsc);
  if (last != nullptr) {
    const GuestBlock& block = *std::exchange(last, nullptr);
    if (const auto count = left_before(block, at.ip, fault)) {
      retire(block, *count);
    } else {
      retire_all(block, at.ip, at.tsc);
    }
  }
  unit.interrupted(at.ip);
}

void BlockEncoder::State::finish(std::uint64_t tsc) {
  if (interruption) interrupt(*std::exchange(interruption, std::nullopt), true);
  reach(tsc);
  if (last != nullptr) {
    const GuestBlock& block = *std::exchange(last, nullptr);
    // Where a branch went is not known any more.
    const bool branch = is_branch(block.end.cls);
    if (branch) {
      retire(block, block.insns - std::size_t{1});
    } else {
      retire_all(block, block.next, tsc);
    }
    unit.interrupted(branch ? block.last : block.next);
  }
  unit.unit().flush();
  truth.instructions.flush();
  truth.branches.flush();
}

}  // namespace ptkit::capture
