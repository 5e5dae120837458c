// Random programs, their machine code, and random walks through them whose every branch is known: what a
// trace unit is told and what a decoder must give back. Header only: the tests of flow use it too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "trace_unit/generator/packet_generator.h"

namespace ptkit::walk {

enum class Op : std::uint8_t {
  NOP,
  JCC,
  JMP,
  CALL,
  CALL_INDIRECT,
  JMP_INDIRECT,
  RET,
  IRET,
  SYSCALL,
  PTWRITE,
  REP,
  MOV_CR3
};

struct Insn {
  std::uint64_t ip = 0;
  std::uint64_t target = 0;  // of JCC, JMP, CALL
  std::uint8_t size = 0;
  Op op = Op::NOP;
  std::uint32_t function = 0;
};

struct CodeRegion {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};

struct Function {
  std::uint64_t entry = 0;
  std::uint32_t module = 0;
  unsigned bits = 64;                 // of its code
  std::vector<std::uint64_t> blocks;  // first instructions, for indirect jumps
};

// Of programs whose kernel is 64-bit code.
[[nodiscard]] inline bool is_kernel(std::size_t function, std::size_t functions) {
  return function >= functions / 2;
}

struct Program {
  std::vector<CodeRegion> regions;
  std::vector<Function> functions;  // the last one is an interrupt handler
  std::map<std::uint64_t, Insn> insns;
};

// Far apart, so that every width of IP compression occurs.
inline constexpr std::uint64_t kModules[] = {0x401000, 0x7ffff7dd1000, 0x555555554000, 0xffffffffa0001000};
// Offsets in the code segment.
inline constexpr std::uint32_t kModules32[] = {0x1000, 0x40'1000, 0x7000'0000, 0xa000'1000};
inline constexpr std::uint32_t kModules16[] = {0x0100, 0x5000, 0xb000, 0xf000};

// Which instructions a program has beside NOPs, conditionals, calls, jumps and returns.
struct ProgramOptions {
  bool strings = false;       // string instructions that repeat
  bool system = false;        // MOV CR3
  bool dense = false;         // mostly direct jumps and calls between conditionals
  bool plain = false;         // no SYSCALL and no PTWRITE either, and all code in one module
  unsigned bits = 64;         // of the code
  std::uint32_t cs_base = 0;  // of the segment that 16 and 32-bit code lies in; addresses are linear
  bool kernel_64 = false;     // the second half of the functions is 64-bit code, whatever `bits` says
};

class ProgramMaker {
 public:
  explicit ProgramMaker(std::uint64_t seed, const ProgramOptions& options = {})
      : random_(seed),
        strings_(options.strings),
        system_(options.system),
        dense_(options.dense),
        plain_(options.plain),
        bits_(options.bits),
        cs_base_(options.cs_base),
        kernel_64_(options.kernel_64) {}

  Program make(std::uint32_t functions) {
    functions_ = functions;
    for (std::uint32_t m = 0; m < std::size(kModules); ++m)
      program_.regions.push_back({module_address(m), {}});
    for (std::uint32_t f = 0; f < functions; ++f) make_function(f, f + 1 == functions);
    for (const Patch& patch : patches_) apply(patch);
    return std::move(program_);
  }

 private:
  struct Patch {
    std::uint64_t ip = 0;
    std::uint32_t function = 0;
    bool entry_of_other =
        false;  // target is a function of the same module, else block `block` of the function
    std::uint32_t block = 0;
  };

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  std::uint64_t module_address(std::uint32_t m) const {
    if (bits_ == 64 || (kernel_64_ && m >= kKernelModules)) return kModules[m];
    return static_cast<std::uint32_t>((bits_ == 32 ? kModules32[m] : kModules16[m]) + cs_base_);
  }

  void make_function(std::uint32_t f, bool handler) {
    Function function;
    function.bits = kernel_64_ && is_kernel(f, functions_) ? 64 : bits_;
    function.module = plain_ ? 0 : below(std::size(kModules));
    if (kernel_64_)
      function.module = function.module % kKernelModules + (is_kernel(f, functions_) ? kKernelModules : 0);
    CodeRegion& region = program_.regions[function.module];
    function.entry = region.address + region.bytes.size();
    program_.functions.push_back(function);
    const std::uint32_t blocks = 2 + below(6);
    for (std::uint32_t b = 0; b < blocks; ++b) {
      program_.functions[f].blocks.push_back(region.address + region.bytes.size());
      for (std::uint32_t n = below(4); n > 0; --n) nop(f);
      terminate(f, b, blocks, handler);
    }
  }

  // Every cycle passes a conditional: the first block of a function ends in one, and direct jumps go forward.
  void terminate(std::uint32_t f, std::uint32_t b, std::uint32_t blocks, bool handler) {
    const bool legacy = program_.functions[f].bits != 64;
    if (b + 1 == blocks) {
      if (!handler) return emit(f, Op::RET, {0xc3});
      return legacy ? emit(f, Op::IRET, {0xcf}) : emit(f, Op::IRET, {0x48, 0xcf});
    }
    constexpr std::uint32_t kDense[] = {0, 0, 4, 4, 4, 4, 4, 5, 5, 5, 6, 7, 7, 7, 8, 9, 11, 12};
    const std::uint32_t choice = b == 0               ? 0
                                 : dense_ && !handler ? kDense[below(std::size(kDense))]
                                                      : below(handler ? 5 : 14);
    switch (choice) {
      case 4:
        return direct(f, Op::JMP, {0xe9}, {0, f, false, b + 1 + below(blocks - b - 1)});
      case 5:
      case 6:
        return direct(f, Op::CALL, {0xe8}, {0, f, true, 0});
      case 7:
        if (program_.functions[f].bits == 16) return emit(f, Op::CALL, {0xe8, 0, 0});
        return emit(f, Op::CALL, {0xe8, 0, 0, 0, 0});  // to the next instruction
      case 8:
        return emit(f, Op::CALL_INDIRECT, {0xff, 0xd0});
      case 9:
        return emit(f, Op::JMP_INDIRECT, {0xff, 0xe0});
      case 10:
        if (legacy && !plain_) return emit(f, Op::SYSCALL, {0xcb});  // a far RET
        return plain_ ? conditional(f, blocks) : emit(f, Op::SYSCALL, {0x0f, 0x05});
      case 11:
        if (legacy && !plain_) return emit(f, Op::PTWRITE, {0xf3, 0x0f, 0xae, 0xe0});
        return plain_ ? conditional(f, blocks) : emit(f, Op::PTWRITE, {0xf3, 0x48, 0x0f, 0xae, 0xe0});
      case 12:
      case 13:
        return emit(f, Op::RET, {0xc3});
      default:
        // A conditional parts it from what comes then: without a packet in between, a TIP.PGD could be of
        // either.
        if (system_ && below(3) == 0) emit(f, Op::MOV_CR3, {0x0f, 0x22, 0xd8});
        return conditional(f, blocks);
    }
  }

  void conditional(std::uint32_t f, std::uint32_t blocks) {
    direct(f, Op::JCC, {0x0f, 0x84}, {0, f, false, below(blocks)});
  }

  void nop(std::uint32_t f) {
    static const std::vector<std::uint8_t> kNops[] = {{0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}};
    if (strings_ && below(12) == 0) return emit(f, Op::REP, {0xf3, 0xa4});
    emit(f, Op::NOP, kNops[below(3)]);
  }

  void direct(std::uint32_t f, Op op, std::vector<std::uint8_t> opcode, Patch patch) {
    const CodeRegion& region = program_.regions[program_.functions[f].module];
    patch.ip = region.address + region.bytes.size();
    opcode.insert(opcode.end(), displacement_bytes(f), 0);
    patches_.push_back(patch);
    emit(f, op, opcode);
  }

  void emit(std::uint32_t f, Op op, const std::vector<std::uint8_t>& bytes) {
    CodeRegion& region = program_.regions[program_.functions[f].module];
    Insn insn;
    insn.ip = region.address + region.bytes.size();
    insn.size = static_cast<std::uint8_t>(bytes.size());
    insn.target = insn.ip + insn.size;
    insn.op = op;
    insn.function = f;
    program_.insns[insn.ip] = insn;
    region.bytes.insert(region.bytes.end(), bytes.begin(), bytes.end());
  }

  std::uint64_t target_of(const Patch& patch) {
    const Function& own = program_.functions[patch.function];
    if (!patch.entry_of_other) return own.blocks[patch.block];
    std::vector<std::uint64_t> entries;
    for (std::size_t f = 0; f + 1 < program_.functions.size(); ++f) {
      const Function& other = program_.functions[f];
      // 16-bit code reaches all of its segment: branches wrap.
      const bool reached = own.bits == 16 ? other.bits == 16 : other.module == own.module;
      if (reached) entries.push_back(other.entry);
    }
    return entries[below(static_cast<std::uint32_t>(entries.size()))];
  }

  void apply(const Patch& patch) {
    Insn& insn = program_.insns[patch.ip];
    insn.target = target_of(patch);
    CodeRegion& region = program_.regions[program_.functions[patch.function].module];
    const auto displacement = static_cast<std::uint32_t>(insn.target - insn.ip - insn.size);
    const std::size_t bytes = displacement_bytes(patch.function);
    const std::size_t offset = insn.ip - region.address + insn.size - bytes;
    for (unsigned i = 0; i < bytes; ++i)
      region.bytes[offset + i] = static_cast<std::uint8_t>(displacement >> (8 * i));
  }

  [[nodiscard]] std::size_t displacement_bytes(std::uint32_t f) const {
    return program_.functions[f].bits == 16 ? 2 : 4;
  }

  static constexpr std::uint32_t kKernelModules = 2;  // the first ones are not the kernel's

  std::mt19937_64 random_;
  bool strings_;
  bool system_;
  bool dense_;
  bool plain_;
  unsigned bits_;
  std::uint32_t cs_base_;
  bool kernel_64_;
  std::uint32_t functions_ = 0;
  Program program_;
  std::vector<Patch> patches_;
};

// What happened, in order. `to` is where control went on.
enum class StepKind : std::uint8_t {
  COND,
  JUMP,
  CALL,
  CALL_INDIRECT,
  JUMP_INDIRECT,
  RETURN,
  IRET,
  SYSCALL,
  PTWRITE,
  ASYNC,      // before the instruction at `from`
  ASYNC_OUT,  // the same, packets off
  RESUME,     // packets on at `to`
  OVERFLOW,   // steps were lost; known again at `to`
  PLAIN,      // no branch
  HALT,       // the core clock stops or runs again; no branch
};

struct Step {
  StepKind kind = StepKind::COND;
  bool taken = false;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t next_ip = 0;  // behind the instruction
  std::uint64_t value = 0;    // PTWRITE
  std::uint64_t insns = 0;    // instructions visible so far, this one included
  std::uint64_t tsc = 0;
  std::uint64_t cycles = 0;
  std::uint8_t ratio = 0;
};

struct WalkOptions {
  std::uint64_t seed = 1;
  std::uint32_t functions = 12;
  std::uint32_t steps = 5000;
  std::uint32_t async_per_mille = 5;
  std::uint32_t async_out_per_mille = 5;
  std::uint32_t overflow_per_mille = 0;
  std::uint32_t odd_return_per_mille = 20;  // returns that go elsewhere
  std::uint32_t sleep_per_mille = 1;
  std::uint32_t ratio_per_mille = 2;
  std::uint32_t halt_per_mille = 0;     // the core clock stops for less than a sleep
  bool plain_steps = false;             // instructions that do not branch are steps, too
  std::uint32_t cycles = 4;             // of an instruction, at most
  std::uint32_t halts_per_million = 0;  // instructions: the core clock stops, MTC goes on
  std::uint32_t halt_ticks = 20'000;    // mean
  ProgramOptions program{};
};

struct Walk {
  Program program;
  std::uint64_t entry = 0;
  std::uint64_t start_tsc = 0;
  std::uint64_t start_cycles = 0;
  std::vector<std::uint64_t> ips;   // every instruction that a decoder can know of
  std::vector<std::uint64_t> tscs;  // when it retired
  std::vector<Step> steps;
  std::uint64_t end_ip = 0;  // the next instruction that would have been executed
};

class Walker {
 public:
  explicit Walker(const WalkOptions& options) : options_(options), random_(options.seed * 7919) {
    walk_.program = ProgramMaker(options.seed, options.program).make(options.functions);
    walk_.entry = ip_ = walk_.program.functions[0].entry;
    walk_.start_tsc = tsc_;
    walk_.start_cycles = cycles_;
  }

  Walk run() {
    while (walk_.steps.size() < options_.steps) step();
    walk_.end_ip = ip_;
    return std::move(walk_);
  }

 private:
  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  bool chance(std::uint32_t per_mille) { return below(1000) < per_mille; }

  void step() {
    if (irqs_.empty() && chance(options_.async_per_mille)) return interrupt();
    if (chance(options_.async_out_per_mille)) return leave();
    if (chance(options_.overflow_per_mille)) return lose();
    execute();
  }

  void interrupt() {
    const std::uint64_t from = ip_;
    irqs_.push_back(ip_);
    ip_ = walk_.program.functions.back().entry;
    note({.kind = StepKind::ASYNC, .from = from, .to = ip_});
  }

  void leave() {
    note({.kind = StepKind::ASYNC_OUT, .from = ip_});
    pass(100 + below(2000));
    if (chance(100)) tsc_ += 2000000;
    note({.kind = StepKind::RESUME, .to = ip_});
  }

  void lose() {
    seen_ = false;
    for (std::uint32_t n = 1 + below(40); n > 0; --n) execute();
    seen_ = true;
    note({.kind = StepKind::OVERFLOW, .to = ip_});
  }

  void execute() {
    const Insn& insn = walk_.program.insns.at(ip_);
    if (seen_) walk_.ips.push_back(ip_);
    pass(1 + below(options_.cycles));
    if (options_.halts_per_million != 0 && below(1'000'000) < options_.halts_per_million) halt();
    if (chance(options_.ratio_per_mille)) ratio_ = static_cast<std::uint8_t>(8 + below(28));
    if (chance(options_.sleep_per_mille)) tsc_ += 300000 + below(1000000);
    if (options_.halt_per_mille != 0 && chance(options_.halt_per_mille)) tsc_ += 50 + below(4000);
    if (seen_) walk_.tscs.push_back(tsc_);
    Step step;
    step.from = ip_;
    step.next_ip = ip_ + insn.size;
    ip_ = step.next_ip;
    if (insn.op == Op::NOP && !options_.plain_steps) return;
    act(insn, step);
    step.to = ip_;
    note(step);
    if (step.kind != StepKind::SYSCALL) return;
    pass(500 + below(3000));
    note({.kind = StepKind::RESUME, .to = ip_});
  }

  void act(const Insn& insn, Step& step) {
    switch (insn.op) {
      case Op::NOP:
        step.kind = StepKind::PLAIN;
        break;
      case Op::JCC:
        step.kind = StepKind::COND;
        step.taken = below(2) != 0;
        if (step.taken) ip_ = insn.target;
        break;
      case Op::JMP:
        step.kind = StepKind::JUMP;
        ip_ = insn.target;
        break;
      case Op::CALL:
      case Op::CALL_INDIRECT:
        step.kind = insn.op == Op::CALL ? StepKind::CALL : StepKind::CALL_INDIRECT;
        if (insn.target != step.next_ip || insn.op == Op::CALL_INDIRECT) stack_.push_back(step.next_ip);
        ip_ = insn.op == Op::CALL ? insn.target : random_entry();
        break;
      case Op::JMP_INDIRECT: {
        const auto& blocks = walk_.program.functions[insn.function].blocks;
        step.kind = StepKind::JUMP_INDIRECT;
        ip_ = blocks[below(blocks.size())];
        break;
      }
      case Op::RET:
        step.kind = StepKind::RETURN;
        ip_ = pop(stack_);
        break;
      case Op::IRET:
        step.kind = StepKind::IRET;
        ip_ = pop(irqs_);
        break;
      case Op::SYSCALL:
        step.kind = StepKind::SYSCALL;
        break;
      default:
        step.kind = StepKind::PTWRITE;
        step.value = random_();
        break;
    }
  }

  std::uint64_t random_entry() {
    return walk_.program.functions[below(walk_.program.functions.size() - 1)].entry;
  }

  std::uint64_t pop(std::vector<std::uint64_t>& from) {
    if (from.empty()) return random_entry();
    const std::uint64_t ip = from.back();
    from.pop_back();
    return &from == &stack_ && chance(options_.odd_return_per_mille) ? random_entry() : ip;
  }

  void halt() {
    const double mean = options_.halt_ticks;
    note({.kind = StepKind::HALT});
    tsc_ += static_cast<std::uint64_t>(std::exponential_distribution<double>(1 / mean)(random_));
    note({.kind = StepKind::HALT});
  }

  void pass(std::uint64_t cycles) {
    cycles_ += cycles;
    fraction_ += cycles * 30;
    tsc_ += fraction_ / ratio_;
    fraction_ %= ratio_;
  }

  void note(Step step) {
    if (!seen_) return;
    step.insns = walk_.ips.size();
    step.tsc = tsc_;
    step.cycles = cycles_;
    step.ratio = ratio_;
    walk_.steps.push_back(step);
  }

  WalkOptions options_;
  std::mt19937_64 random_;
  Walk walk_;
  std::vector<std::uint64_t> stack_;
  std::vector<std::uint64_t> irqs_;
  std::uint64_t ip_ = 0;
  std::uint64_t tsc_ = 1'000'000'007;
  std::uint64_t cycles_ = 5000;
  std::uint64_t fraction_ = 0;
  std::uint8_t ratio_ = 30;
  bool seen_ = true;
};

[[nodiscard]] inline Walk random_walk(const WalkOptions& options) { return Walker(options).run(); }

// Tells one step to a trace unit.
inline void tell(trace_unit::generator::PacketGenerator& unit, const Step& step) {
  unit.set_time(step.tsc, step.cycles);
  unit.set_core_bus_ratio(step.ratio);  // the cycles until now had the one before
  switch (step.kind) {
    case StepKind::COND:
      return unit.conditional(step.taken, step.to);
    case StepKind::JUMP:
    case StepKind::PLAIN:
      return unit.at(step.to);
    case StepKind::CALL:
      return unit.call(step.next_ip, step.to);
    case StepKind::CALL_INDIRECT:
      return unit.call_indirect(step.next_ip, step.to);
    case StepKind::JUMP_INDIRECT:
      return unit.jump_indirect(step.to);
    case StepKind::RETURN:
      return unit.ret(step.to);
    case StepKind::IRET:
      return unit.far_transfer(step.to);
    case StepKind::SYSCALL:
      return unit.far_transfer_out();
    case StepKind::PTWRITE:
      return unit.ptwrite(step.value, true, step.from);
    case StepKind::ASYNC:
      return unit.async(step.from, step.to);
    case StepKind::ASYNC_OUT:
      return unit.async_out(step.from);
    case StepKind::RESUME:
      return unit.enable(step.to);
    case StepKind::OVERFLOW:
      return unit.overflow(step.to);
    case StepKind::HALT:
      return;
  }
}

// The whole walk as a trace: enabled at its entry; at its end an interrupt leads out of the trace. TNT
// packets that are not full are written each `flush_every` steps (0: never): a processor may write one at any
// time.
[[nodiscard]] inline std::vector<std::uint8_t> trace_of(const Walk& walk,
                                                        const trace_unit::generator::GeneratorConfig& config,
                                                        std::size_t flush_every = 0) {
  std::vector<std::uint8_t> bytes;
  trace_unit::generator::PacketGenerator unit(
      config, [&bytes](base::Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  unit.set_time(walk.start_tsc, walk.start_cycles);
  unit.set_mode(true, false, true);
  unit.enable(walk.entry);
  std::size_t steps = 0;
  for (const Step& step : walk.steps) {
    tell(unit, step);
    if (flush_every != 0 && ++steps % flush_every == 0) unit.flush();
  }
  unit.async_out(walk.end_ip);
  unit.flush();
  return bytes;
}

}  // namespace ptkit::walk
