// A random program on a machine with a trace unit whose registers are set at random: rings, address spaces,
// interrupts, TraceEn switched on and off. Keeps which instructions a trace of it must show, by the manual's
// description of the enables alone (no code of ptmodel), and the bytes that came out.
#pragma once

#include <array>
#include <random>

#include "machine.h"
#include "trace/bundle.h"
#include "unit/support/traces/walk.h"

namespace ptkit::ptmodel::test {

struct RunOptions {
  std::uint64_t seed = 1;
  unsigned steps = 6000;
  bool topa = false;
  bool stop_region = false;  // the table ends in a region with STOP
  bool ranges = true;
  bool trace_stops = false;
  bool overflows = false;
  walk::ProgramOptions program{.system = true};  // not all 64-bit code: IP payloads are effective addresses
};

// A processor's state as this file sees it, and what traces show of it.
struct Enables {
  bool os = false;
  bool user = false;
  bool by_cr3 = false;
  std::uint64_t cr3_match = 0;
  struct Range {
    std::uint64_t first;
    std::uint64_t last;
  };
  std::vector<Range> filters;
  std::vector<Range> stops;
  bool trace = false;
  bool stopped = false;
  bool in_filter = false;

  static bool within(const std::vector<Range>& ranges, std::uint64_t ip) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [ip](const Range& one) { return ip >= one.first && ip <= one.last; });
  }
  [[nodiscard]] bool context(unsigned cpl, std::uint64_t cr3) const {
    return (cpl == 0 ? os : user) && (!by_cr3 || cr3 >> 12 == cr3_match >> 12);
  }
  void land(std::uint64_t ip, unsigned cpl, std::uint64_t cr3) {
    in_filter = filters.empty() || within(filters, ip);
    if (trace && context(cpl, cr3) && within(stops, ip)) stopped = true;
  }
  [[nodiscard]] bool sees(unsigned cpl, std::uint64_t cr3) const {
    return trace && !stopped && in_filter && context(cpl, cr3);
  }
};

class RandomMachine {
 public:
  static constexpr std::uint64_t kTable = 0x10000;

  explicit RandomMachine(const RunOptions& options)
      : program(walk::ProgramMaker(options.seed, options.program).make(12)),
        options_(options),
        random_(options.seed * 104729),
        config_(make_config()),
        unit(capabilities(options), config_, platform) {
    ip_ = entry();
    set_up();
  }

  void run() {
    switch_on();
    for (unsigned step = 0; step < options_.steps; ++step) one_step();
    if (lost_) end_loss();
    if (now_.trace) switch_off();
    segments.push_back(ips.size());
  }

  // As decoders have to know it.
  [[nodiscard]] GeneratorConfig config() const {
    GeneratorConfig config = config_;
    config.mtc_period = static_cast<std::uint8_t>(ctl_ >> PT_CTL_MTC_FREQ_SHIFT & 15);
    return config;
  }
  [[nodiscard]] std::uint64_t ctl() const { return ctl_; }
  // What decoders of such code have to know besides.
  void describe_code(trace::Configuration& out) const {
    if (options_.program.bits == 64) return;
    out.ip_payloads = trace::IpPayloads::EFFECTIVE;
    out.cs_base = options_.program.cs_base;
    for (std::size_t i = 0; i < now_.filters.size(); ++i)
      out.ranges[i] = {trace::RangeKind::FILTER, now_.filters[i].first, now_.filters[i].last};
  }

  FakePlatform platform;
  walk::Program program;
  std::vector<std::uint64_t> ips;     // instructions that are traced
  std::vector<std::size_t> segments;  // how many of them came before each loss, and in all

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(unsigned per_mille) { return below(1000) < per_mille; }
  std::uint64_t entry() {
    const std::uint64_t all = program.functions.size() - 1;  // but for the handler
    if (!options_.program.kernel_64) return program.functions[below(all)].entry;
    const std::uint64_t user = program.functions.size() / 2;
    return program.functions[cpl_ == 0 ? user + below(all - user) : below(user)].entry;
  }

  static Capabilities capabilities(const RunOptions& options) {
    Capabilities out;
    if (options.program.bits != 64) out.leaf_14_ecx &= ~(1U << PT_CPUID_14_ECX_LIP);
    return out;
  }

  GeneratorConfig make_config() {
    GeneratorConfig config;
    config.chunk_bytes = std::size_t{1} << below(9);
    config.use_tnt_64 = chance(300);
    config.tip_ret = TipRet::CLEARS;
    config.tsc_ctc_numerator = 168;
    config.tsc_ctc_denominator = 2;
    return config;
  }

  void write(std::uint32_t msr, std::uint64_t value, InsnAddress at = {}) {
    ASSERT_EQ(unit.write_msr(msr, value, at), MsrResult::OK) << std::hex << msr << " = " << value;
  }

  // ---- registers

  void set_up() {
    const std::uint64_t rings = 1 + below(3);
    ctl_ = kBranches | rings << PT_CTL_OS | (options_.topa ? kTopa : 0);
    for (const unsigned number : {PT_CTL_CYC_EN + 0U, PT_CTL_MTC_EN + 0U, PT_CTL_TSC_EN + 0U,
                                  PT_CTL_DIS_RETC + 0U, PT_CTL_PTW_EN + 0U, PT_CTL_FUP_ON_PTW + 0U,
                                  PT_CTL_CR3_FILTER + 0U, PT_CTL_INJECT_PSB_PMI_ON_ENABLE + 0U}) {
      if (chance(400)) ctl_ |= bit(number);
    }
    ctl_ |= below(10) << PT_CTL_MTC_FREQ_SHIFT | below(8) << PT_CTL_CYC_THRESH_SHIFT |
            below(3) << PT_CTL_PSB_FREQ_SHIFT;
    now_.os = (rings & 1) != 0;
    now_.user = (rings & 2) != 0;
    now_.by_cr3 = (ctl_ & bit(PT_CTL_CR3_FILTER)) != 0;
    now_.cr3_match = kSpaces[below(3)] | (chance(500) ? 0x20 : 0);
    write(PT_MSR_RTIT_CR3_MATCH, now_.cr3_match);
    if (options_.ranges || options_.trace_stops) set_up_ranges();
    set_up_output();
    unit.set_state(state());
  }

  void set_up_ranges() {
    for (unsigned n = 0; n < 4; ++n) {
      const bool stop = options_.trace_stops && n == 3;
      if (!stop && (!options_.ranges || chance(400))) continue;
      // From some block to the function's end, from which no code goes straight on: where a range is left
      // that way, and then by a branch to what comes after it, the trace does not tell which it was.
      const std::uint64_t f = below(program.functions.size());
      const walk::Function& function = program.functions[f];
      const std::uint64_t first = function.blocks[below(2) != 0 ? 0 : below(function.blocks.size())];
      const std::uint64_t last = stop ? first : end_of(f) - 1;
      write(PT_MSR_RTIT_ADDR0_A + 2 * n, first);
      write(PT_MSR_RTIT_ADDR0_A + 2 * n + 1, last);
      (stop ? now_.stops : now_.filters).push_back({first, last});
      ctl_ |= (stop ? std::uint64_t{PT_ADDR_CFG_TRACE_STOP} : PT_ADDR_CFG_FILTER)
              << (PT_CTL_ADDR0_CFG_SHIFT + 4 * n);
    }
  }

  std::uint64_t end_of(std::uint64_t f) {
    std::uint64_t end = program.functions[f].blocks.back();
    while (program.insns.count(end) != 0 && program.insns.at(end).function == f)
      end += program.insns.at(end).size;
    return end;
  }

  void set_up_output() {
    if (!options_.topa) {
      write(PT_MSR_RTIT_OUTPUT_BASE, 0x40'0000);
      write(PT_MSR_RTIT_OUTPUT_MASK_PTRS, (std::uint64_t{4096} << below(5)) - 1);
      return;
    }
    std::uint64_t address = 0x40'0000;
    const std::uint64_t regions = 1 + below(4);
    for (std::uint64_t n = 0; n < regions; ++n) {
      const std::uint64_t size = below(3);
      const bool last = n + 1 == regions;
      platform.put_entry(kTable + 8 * n, address | topa_size(size) | (chance(500) ? kInt : 0) |
                                             (last && options_.stop_region ? kStop : 0));
      address += 0x4'0000;
    }
    platform.put_entry(kTable + 8 * regions, kTable | kEnd);
    write(PT_MSR_RTIT_OUTPUT_BASE, kTable);
    write(PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
  }

  [[nodiscard]] ProcessorState state() const {
    ProcessorState out;
    out.cpl = static_cast<std::uint8_t>(cpl_);
    out.cr3 = cr3_;
    const walk::ProgramOptions& code = options_.program;
    const unsigned bits = code.kernel_64 && cpl_ == 0 ? 64 : code.bits;
    out.cs_l = bits == 64;
    out.cs_d = bits == 32;
    out.cs_base = code.cs_base;
    return out;
  }

  void switch_on() {
    write(PT_MSR_RTIT_CTL, ctl_ | kTraceEn, {ip_, ip_});
    now_.trace = true;
    now_.in_filter = now_.filters.empty() || Enables::within(now_.filters, ip_);
  }
  void switch_off() {
    write(PT_MSR_RTIT_CTL, ctl_, {ip_, ip_});
    now_.trace = false;
  }

  // ---- execution

  void one_step() {
    tsc_ += 1 + below(3);
    unit.set_time(tsc_, tsc_);
    if (!now_.trace ? chance(100) : chance(2)) return now_.trace ? toggle_off() : switch_on();
    if (options_.overflows && now_.trace && !now_.stopped && chance(lost_ ? 30 : 3))
      return lost_ ? end_loss() : begin_loss();
    if (chance(5)) return interrupt();
    execute();
  }

  void toggle_off() {
    if (!lost_) switch_off();
  }

  void begin_loss() {
    lost_ = true;
    unit.begin_overflow();
    segments.push_back(ips.size());
  }
  void end_loss() {
    lost_ = false;
    unit.end_overflow(ip_);
  }

  void fault() {
    if (now_.sees(cpl_, cr3_) && !lost_) ips.pop_back();  // it does not retire
    interrupt();
  }
  void interrupt() {
    const std::uint64_t from = ip_;
    frames_.push_back({ip_, cpl_});
    ip_ = program.functions.back().entry;
    cpl_ = 0;
    now_.land(ip_, cpl_, cr3_);
    unit.interrupt(from, ip_, state());
  }

  void execute() {
    const walk::Insn& insn = program.insns.at(ip_);
    if (now_.sees(cpl_, cr3_) && !lost_) ips.push_back(ip_);
    const std::uint64_t from = ip_;
    const std::uint64_t next = ip_ + insn.size;
    ip_ = next;
    switch (insn.op) {
      case walk::Op::JCC:
        return conditional(insn, next);
      case walk::Op::JMP:
        go(insn.target);
        return unit.jump(ip_);
      case walk::Op::CALL:
        if (insn.target != next) stack().push_back(next);
        go(insn.target);
        return unit.call(next, ip_);
      case walk::Op::CALL_INDIRECT:
        stack().push_back(next);
        go(entry());
        return unit.call_indirect(next, ip_);
      case walk::Op::JMP_INDIRECT: {
        const auto& blocks = program.functions[insn.function].blocks;
        go(blocks[below(blocks.size())]);
        return unit.jump_indirect(ip_);
      }
      case walk::Op::RET:
        go(pop());
        return unit.ret(ip_);
      case walk::Op::IRET:
      case walk::Op::SYSCALL:
        return far(insn.op == walk::Op::IRET);
      case walk::Op::PTWRITE:
        return unit.ptwrite(random_(), true, from);
      case walk::Op::MOV_CR3:
        ip_ = from;
        return mov_cr3(next);
      default:
        return;
    }
  }

  void go(std::uint64_t target) {
    ip_ = target;
    now_.land(ip_, cpl_, cr3_);
  }

  void conditional(const walk::Insn& insn, std::uint64_t next) {
    const bool taken = below(2) != 0;
    if (taken) {
      go(insn.target);
    } else {
      ip_ = next;
    }
    unit.conditional(taken, ip_);
  }

  void far(bool iret) {
    if (iret && !frames_.empty()) {
      cpl_ = frames_.back().cpl;
      ip_ = frames_.back().ip;
      frames_.pop_back();
    } else {
      cpl_ = cpl_ == 0 ? 3 : 0;
      ip_ = entry();
    }
    now_.land(ip_, cpl_, cr3_);
    unit.far_transfer(ip_, state());
  }

  void mov_cr3(std::uint64_t next) {
    if (cpl_ != 0) return fault();
    const bool had_context = now_.context(cpl_, cr3_);
    cr3_ = kSpaces[below(3)];
    const bool begins = !had_context && now_.context(cpl_, cr3_);
    if (now_.trace && begins && Enables::within(now_.stops, next)) now_.stopped = true;
    ip_ = next;
    unit.mov_cr3(cr3_, next);
  }

  std::uint64_t pop() {
    if (stack().empty() || chance(20)) return entry();
    const std::uint64_t ip = stack().back();
    stack().pop_back();
    return ip;
  }

  std::vector<std::uint64_t>& stack() { return stacks_[options_.program.kernel_64 && cpl_ == 0 ? 1 : 0]; }

  static constexpr std::uint64_t kSpaces[] = {0x1000, 0x2000, 0x3000};
  struct Frame {
    std::uint64_t ip;
    unsigned cpl;
  };

  RunOptions options_;
  std::mt19937_64 random_;
  GeneratorConfig config_;
  std::uint64_t ctl_ = 0;
  Enables now_;
  std::array<std::vector<std::uint64_t>, 2> stacks_;
  std::vector<Frame> frames_;
  std::uint64_t ip_ = 0;
  std::uint64_t cr3_ = 0x1000;
  std::uint64_t tsc_ = 1'000'000;
  unsigned cpl_ = 3;
  bool lost_ = false;

 public:
  TraceUnit unit;
};

}  // namespace ptkit::ptmodel::test
