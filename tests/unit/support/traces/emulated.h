// A random program, executed by a small emulator that behaves as QEMU does. The output is its blocks and
// marks, and the executed instructions.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "capture/linux/encode/block_encoder.h"
#include "walk.h"

namespace ptkit::capture::test {

using walk::Op;

struct EmulatorEvent {
  enum class Kind : std::uint8_t { BLOCK, INTERRUPT, RESUME, SYSCALL, SYSCALL_END };
  Kind kind = Kind::BLOCK;
  std::uint32_t number = 0;
  std::uint64_t ip = 0;
  std::uint64_t tsc = 0;
  int signal = 0;
};

struct ExpectedBranch {
  std::uint64_t ip = 0;
  std::uint64_t tsc = 0;
};

struct EmulationOptions {
  std::uint64_t seed = 1;
  std::uint32_t events = 20'000;
  std::uint32_t fault_per_mille = 3;
  std::uint32_t signal_per_mille = 4;
  std::uint32_t signal_check_per_mille = 4;  // the emulator checks for signals and finds none
  std::uint32_t split_per_mille = 6;    // a block is interrupted; single-instruction blocks execute the rest
  std::uint32_t flush_per_mille = 1;    // all blocks are translated again
  std::uint32_t preempt_per_mille = 1;  // another thread is scheduled
  std::uint32_t block_ticks = 14;       // mean
  std::uint32_t unmatched_return_per_mille = 20;
};

struct Emulation {
  walk::Program program;
  GuestCode code;
  std::vector<EmulatorEvent> events;
  std::vector<std::uint64_t> ips;
  std::vector<bool> branched_here;  // for each IP: whether a taken branch or an event led to it
  std::vector<ExpectedBranch> branches;
  std::vector<std::size_t> branch_indices;  // index of each branch in `ips`
  std::uint64_t end_tsc = 0;
};

class Emulator {
 public:
  Emulator(Emulation& out, const EmulationOptions& options)
      : out_(out), options_(options), random_(options.seed * 31 + 7) {
    out_.program = walk::ProgramMaker(options.seed, {.strings = true}).make(12);
    ip_ = out_.program.functions[0].entry;
  }

  void run() {
    while (out_.events.size() < options_.events) {
      if (chance(options_.flush_per_mille)) blocks_.clear();
      if (handlers_.size() < 3 && chance(options_.signal_per_mille)) deliver(14);
      if (chance(options_.signal_check_per_mille)) check_signals();
      execute_block();
    }
    deliver(14);  // ends the last block
    out_.end_tsc = tsc_ + 100;
  }

 private:
  struct Translated {
    std::uint32_t number = 0;
    std::vector<std::uint64_t> ips;
  };

  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  bool chance(std::uint32_t per_mille) { return below(1000) < per_mille; }
  const walk::Insn& insn(std::uint64_t ip) const { return out_.program.insns.at(ip); }

  static bool ends_block(Op op) { return op != Op::NOP && op != Op::PTWRITE; }

  Translated translate(std::uint64_t ip, std::size_t most) {
    Translated block;
    const std::uint64_t begin = ip;
    for (bool ended = false; !ended && block.ips.size() < most;) {
      const walk::Insn& one = insn(ip);
      block.ips.push_back(ip);
      ip += one.size;
      ended = ends_block(one.op) || ip / 4096 != begin / 4096;
    }
    block.number = out_.code.add(begin, bytes_of(begin, ip), 0);
    return block;
  }

  base::Bytes bytes_of(std::uint64_t from, std::uint64_t to) const {
    for (const walk::CodeRegion& region : out_.program.regions) {
      if (from >= region.address && from < region.address + region.bytes.size())
        return base::Bytes(region.bytes).subspan(from - region.address, to - from);
    }
    return {};
  }

  void pass() {
    // Mostly short, sometimes long.
    tsc_ +=
        1 + below(options_.block_ticks) + (chance(30) ? below(std::size_t{10} * options_.block_ticks) : 0);
    if (chance(options_.preempt_per_mille)) tsc_ += 1'000'000 + below(3'000'000);
  }

  void emit(EmulatorEvent what) {
    const std::uint64_t tsc = note(what);
    if (branch_) out_.branches.push_back({*branch_, tsc});
    branch_.reset();
  }
  std::uint64_t note(EmulatorEvent what) {
    pass();
    what.tsc = tsc_;
    out_.events.push_back(what);
    return tsc_;
  }

  void begin(const Translated& block) {
    emit({.kind = EmulatorEvent::Kind::BLOCK, .number = block.number, .ip = block.ips.front()});
  }

  const Translated& block_at(std::uint64_t ip) {
    const auto found = blocks_.find(ip);
    if (found != blocks_.end()) return found->second;
    return blocks_[ip] = translate(ip, chance(100) ? 2 : 200);
  }

  void execute_block() {
    const Translated block = block_at(ip_);
    begin(block);
    const bool faults = handlers_.size() < 3 && chance(options_.fault_per_mille);
    const bool left = chance(options_.split_per_mille);
    const std::size_t at = below(block.ips.size());
    for (std::size_t i = 0; i < block.ips.size(); ++i) {
      ip_ = block.ips[i];
      if (faults && i == at) return fault();
      if (left && i == at && may_store(insn(ip_).op)) return step();
      if (insn(ip_).op == Op::REP && !repeat()) return;
      execute(ip_);
    }
  }

  // Only a store can interrupt a block.
  static bool may_store(Op op) {
    return op == Op::NOP || op == Op::PTWRITE || op == Op::CALL || op == Op::CALL_INDIRECT;
  }

  // Executes one instruction of an interrupted block as a block.
  void step() {
    begin(translate(ip_, 1));
    execute(ip_);
  }

  // Executes the iterations after the first one. Returns false after a fault.
  bool repeat() {
    for (std::uint32_t n = below(4); n > 0; --n) {
      begin(block_at(ip_));
      if (handlers_.size() < 3 && chance(options_.fault_per_mille)) return fault(), false;
    }
    return true;
  }

  void execute(std::uint64_t ip) {
    const walk::Insn& one = insn(ip);
    const std::uint64_t next = ip + one.size;
    out_.ips.push_back(ip);
    out_.branched_here.push_back(std::exchange(branched_here_, false));
    ip_ = next;
    if (one.op == Op::NOP || one.op == Op::REP || one.op == Op::PTWRITE) return;
    branch_ = ip;
    out_.branch_indices.push_back(out_.ips.size() - 1);
    branched_here_ = true;
    switch (one.op) {
      case Op::JCC:
        if (below(3) != 0) ip_ = one.target;
        branched_here_ = ip_ != next;
        return;
      case Op::JMP:
        ip_ = one.target;
        return;
      case Op::CALL:
      case Op::CALL_INDIRECT:
        if (one.target != next || one.op == Op::CALL_INDIRECT) stack_.push_back(next);
        ip_ = one.op == Op::CALL ? one.target : random_entry();
        return;
      case Op::JMP_INDIRECT: {
        const auto& blocks = out_.program.functions[one.function].blocks;
        ip_ = blocks[below(blocks.size())];
        return;
      }
      case Op::RET:
        ip_ = stack_.empty() || chance(options_.unmatched_return_per_mille) ? random_entry() : stack_.back();
        if (!stack_.empty()) stack_.pop_back();
        return;
      case Op::IRET:
        ip_ = handlers_.empty() ? random_entry() : handlers_.back();
        if (!handlers_.empty()) handlers_.pop_back();
        return;
      default:
        return call_system();
    }
  }

  void call_system() {
    emit({.kind = EmulatorEvent::Kind::SYSCALL});
    tsc_ += below(3000) + (chance(100) ? 500'000 : 0);
    emit({.kind = EmulatorEvent::Kind::SYSCALL_END});
  }

  void fault() { deliver(11); }

  void deliver(int signal) {
    emit({.kind = EmulatorEvent::Kind::INTERRUPT, .ip = ip_});
    handlers_.push_back(ip_);
    branched_here_ = true;
    ip_ = out_.program.functions.back().entry;
    tsc_ += below(2000);
    emit({.kind = EmulatorEvent::Kind::RESUME, .ip = ip_, .signal = signal});
  }

  void check_signals() {
    note({.kind = EmulatorEvent::Kind::INTERRUPT, .ip = ip_});
    note({.kind = EmulatorEvent::Kind::RESUME, .ip = ip_});
  }

  std::uint64_t random_entry() {
    return out_.program.functions[below(out_.program.functions.size() - 1)].entry;
  }

  Emulation& out_;
  EmulationOptions options_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, Translated> blocks_;
  std::vector<std::uint64_t> stack_;
  std::vector<std::uint64_t> handlers_;  // return addresses
  std::optional<std::uint64_t> branch_;  // an executed branch without a time
  std::uint64_t ip_ = 0;
  bool branched_here_ = true;
  std::uint64_t tsc_ = 5'000'000'011;
};

// How deliver() passes blocks to the encoder.
struct Delivery {
  std::size_t line = 14;  // maximum blocks per line; 0: random; 1: each block with its time
  bool exact = false;     // by block()
};

// Passes all events to an encoder, blocks in lines as in capture/linux/emulator/plugin/channel.h.
inline void deliver(const Emulation& run, BlockEncoder& encoder, const Delivery& how,
                    std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> line;
  std::vector<std::uint64_t> times;
  std::size_t room = 0;
  const auto finish_line = [&](std::uint64_t end) {
    if (!line.empty()) encoder.blocks(line, times.front(), end, times);
    line.clear();
    times.clear();
  };
  for (const EmulatorEvent& what : run.events) {
    if (what.kind == EmulatorEvent::Kind::BLOCK && how.exact) {
      encoder.block(what.number, what.tsc);
      continue;
    }
    if (line.empty() || line.size() >= room || what.kind != EmulatorEvent::Kind::BLOCK) {
      finish_line(what.tsc);
      room = how.line != 0 ? how.line : 1 + random() % 14;
    }
    switch (what.kind) {
      case EmulatorEvent::Kind::BLOCK:
        line.push_back(what.number);
        times.push_back(what.tsc);
        break;
      case EmulatorEvent::Kind::INTERRUPT:
        encoder.interrupted(what.ip, what.tsc);
        break;
      case EmulatorEvent::Kind::RESUME:
        encoder.resumed(what.ip, what.tsc, what.signal);
        break;
      case EmulatorEvent::Kind::SYSCALL:
        encoder.syscall(what.tsc);
        break;
      case EmulatorEvent::Kind::SYSCALL_END:
        encoder.syscall_end(what.tsc);
        break;
    }
  }
  finish_line(run.end_tsc);
  encoder.end(run.end_tsc);
}

}  // namespace ptkit::capture::test
