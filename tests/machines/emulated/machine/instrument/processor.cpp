#include "processor.h"

#include <algorithm>

namespace ptkit::emulated {

constexpr std::uint64_t kTopaPmi = std::uint64_t{1} << PT_PERF_GLOBAL_TRACE_TOPA_PMI;
constexpr std::uint64_t kDsBuffer = std::uint64_t{1} << PT_PERF_GLOBAL_OVF_BUFFER;
constexpr std::uint64_t kLongestTrace = 32;  // BX_MAX_TRACE_LENGTH
constexpr std::uint32_t kLastAddress = PT_MSR_RTIT_ADDR0_A + 2 * PT_MSR_RTIT_ADDR_COUNT - 1;
constexpr std::uint64_t kTooFar = 16;  // bytes, Fault::FILTER
constexpr std::size_t kSpoiled = 8;    // bytes, Fault::TOPA
constexpr std::uint8_t kRatio = 10;    // of core to bus clock, always; also in msrs.def

Processor::Processor(BX_CPU_C& cpu, TruthLog& log)
    : cpu_(cpu), log_(log), runs_(log, cpu.bx_cpuid), unit_(make_unit()), branches_(cpu), counters_(cpu) {}

// Without what this machine has no instructions or events for: PTWRITE, power events, event trace.
ptmodel::Capabilities Processor::capabilities() {
  ptmodel::Capabilities all;
  all.leaf_14_ebx = 1U << PT_CPUID_14_EBX_CR3_FILTER | 1U << PT_CPUID_14_EBX_PSB_CYC |
                    1U << PT_CPUID_14_EBX_IP_FILTER | 1U << PT_CPUID_14_EBX_MTC;
  all.leaf_14_ecx &= ~(1U << PT_CPUID_14_ECX_LIP);
  all.physical_bits = 40;
  return all;
}

trace_unit::generator::GeneratorConfig Processor::packet_config() {
  trace_unit::generator::GeneratorConfig config;
  config.core_bus_ratio = kRatio;
  config.max_nonturbo_ratio = kRatio;
  config.tsc_ctc_numerator = 4;  // CPUID 15H, hooks.cpp
  config.tsc_ctc_denominator = 1;
  // Kernels have odd returns (retpolines), and libipt and perf take them differently.
  config.tip_ret = trace_unit::generator::TipRet::CLEARS;
  return config;
}

std::unique_ptr<ptmodel::TraceUnit> Processor::make_unit() {
  trace_unit::generator::GeneratorConfig config = packet_config();
  if (fault_ == Fault::TIME) ++config.tsc_ctc_numerator;
  return std::make_unique<ptmodel::TraceUnit>(capabilities(), config, *this);
}

// The guest reads what it has written, whatever the fault.
void Processor::plant(Fault fault) {
  constexpr std::uint32_t kRegisters = kLastAddress - PT_MSR_RTIT_OUTPUT_BASE + 1;
  if (unit_->trace_enabled()) return;
  std::array<Bit64u, kRegisters> values{};
  for (std::uint32_t index = 0; index < kRegisters; ++index) {
    static_cast<void>(read_msr(PT_MSR_RTIT_OUTPUT_BASE + index, values[index]));
  }
  fault_ = fault;
  unit_ = make_unit();
  for (std::uint32_t index = 0; index < kRegisters; ++index) {
    static_cast<void>(write_register(PT_MSR_RTIT_OUTPUT_BASE + index, values[index]));
  }
}

// The offset that is added to the end of an address range.
std::uint64_t Processor::range_error(unsigned index) const {
  const bool ends_range = index > PT_MSR_RTIT_ADDR0_A && index <= kLastAddress && index % 2 == 1;
  return fault_ == Fault::FILTER && ends_range ? kTooFar : 0;
}

void Processor::reset(bool warm) {
  unit_->reset(warm);
  branches_.reset();
  counters_.reset();
  executing_ = false;
  delivering_ = false;
}

ptmodel::ProcessorState Processor::state() const {
  ptmodel::ProcessorState now;
  now.cr3 = cpu_.cr3;
  now.cpl = static_cast<std::uint8_t>(cpu_.sregs[BX_SEG_REG_CS].selector.rpl);
  now.pae = cpu_.cr4.get_PAE() && !cpu_.long_mode();
  now.cs_l = cpu_.long64_mode();
  now.cs_d = cpu_.sregs[BX_SEG_REG_CS].cache.u.segment.d_b;
  now.interrupt_flag = cpu_.get_IF() != 0;
  return now;
}

Context Processor::context() const {
  const bool wide = cpu_.sregs[BX_SEG_REG_CS].cache.u.segment.d_b;
  const std::uint8_t compatible = wide ? 32 : 16;
  return {cpu_.cr3, static_cast<std::uint8_t>(cpu_.sregs[BX_SEG_REG_CS].selector.rpl),
          cpu_.long64_mode() ? std::uint8_t{64} : compatible};
}

// Bochs' clock stands still while it executes a trace of instructions; the instructions done so far stand in.
// The iterations of a string instruction do not: there may be thousands in one turn of this processor, and
// after the turns of all processors the clock, which RDTSC reads, advances by the mean of what they executed.
ptmodel::TraceUnit& Processor::unit() {
  const std::uint64_t since =
      std::min<std::uint64_t>(cpu_.get_icount() - cpu_.get_icount_last_sync(), kLongestTrace);
  time_ = std::max<std::uint64_t>(time_, cpu_.get_TSC() + since);
  unit_->set_time(time_, cpu_.get_icount());
  return *unit_;
}

void Processor::settle(std::uint64_t target) {
  if (!delivering_) return;
  delivering_ = false;
  unit().interrupt(delivered_from_, target, state());
  store_branch(delivered_from_, target);
}

void Processor::store_branch(std::uint64_t from, std::uint64_t to) {
  if (branches_.record(from, to)) counters_.interrupt(kDsBuffer);
}

void Processor::before(const bxInstruction_c& instruction) {
  ip_ = cpu_.get_instruction_pointer();
  settle(ip_);
  next_ip_ = ip_ + instruction.ilen();
  context_ = context();
  page_ = cpu_.eipFetchPtr;
  next_page_ = nullptr;
  // Of an instruction that lies in two pages, Bochs has looked at the second one last.
  if (((ip_ ^ (next_ip_ - 1)) >> 12) != 0 && log_.on(tracing())) {
    page_ = host_page(ip_);
    next_page_ = host_page(next_ip_ - 1);
  }
  executing_ = true;
}

void Processor::after(const bxInstruction_c& instruction) {
  if (!executing_) return;  // a WRMSR that changed TraceEn
  executing_ = false;
  if (!log_.on(tracing())) return runs_.close();
  const bool repeats = instruction.repUsedL() != 0 && cpu_.get_instruction_pointer() == ip_;
  if (repeats) return;
  runs_.retired(ip_, instruction.ilen(), context_, page_);
  if (next_page_ == nullptr) return;
  runs_.close();
  const std::uint64_t rest = (next_ip_ - 1) & ~std::uint64_t{0xfff};
  log_.code(cpu_.bx_cpuid, context_.cr3, rest, next_ip_ - rest, next_page_);
}

const std::uint8_t* Processor::host_page(std::uint64_t address) {
  bx_phy_address physical = 0;
  if (!cpu_.dbg_xlate_linear2phy(address & ~std::uint64_t{0xfff}, &physical)) return nullptr;
  return BX_MEM(0)->getHostMemAddr(&cpu_, physical, BX_READ);
}

void Processor::conditional(bool taken) {
  const std::uint64_t next = cpu_.get_instruction_pointer();
  if (taken) store_branch(ip_, next);
  unit().conditional(taken, next);
}

void Processor::near_branch(unsigned what, std::uint64_t to) {
  store_branch(ip_, to);
  switch (what) {
    case BX_INSTR_IS_JMP:
      return unit().jump(to);
    case BX_INSTR_IS_JMP_INDIRECT:
      return unit().jump_indirect(to);
    case BX_INSTR_IS_CALL:
      return unit().call(next_ip_, to);
    case BX_INSTR_IS_CALL_INDIRECT:
      return unit().call_indirect(next_ip_, to);
    case BX_INSTR_IS_RET:
      return spoils_return() ? unit().conditional(false, to) : unit().ret(to);
    default:
      return;
  }
}

bool Processor::spoils_return() {
  constexpr unsigned kEach = 32;
  if (fault_ != Fault::RETURNS) return false;
  std::uint64_t ctl = 0;
  static_cast<void>(unit_->read_msr(PT_MSR_RTIT_CTL, ctl));
  const bool compresses = (ctl >> PT_CTL_DIS_RETC & 1) == 0;
  return unit_->packets_enabled() && compresses && ++returns_ % kEach == 0;
}

void Processor::far_branch(unsigned what, std::uint64_t from, std::uint64_t to) {
  store_branch(from, to);
  if (what == BX_INSTR_IS_INT) {
    unit().interrupt(from, to, state());
  } else {
    unit().far_transfer(to, state());
  }
}

// The target is where the next instruction begins, or fails to begin.
void Processor::interrupt(std::uint64_t from) {
  if (delivering_ && from != delivered_from_) settle(from);
  delivering_ = true;
  delivered_from_ = from;
  executing_ = false;
}

void Processor::control_register(unsigned what) {
  const std::uint64_t next = cpu_.get_instruction_pointer();
  if (what == BX_INSTR_MOV_CR3) {
    unit().mov_cr3(cpu_.cr3, next);
  } else if (what == BX_INSTR_MOV_CR0 || what == BX_INSTR_MOV_CR4) {
    unit().change_state(state(), next);
  }
}

// Branch records, which never change by themselves here.
std::uint64_t* Processor::plain_register(unsigned index) {
  constexpr std::array<std::pair<unsigned, unsigned>, 4> kRanges{{
      {0x1c8, 0x1c9},
      {0x680, 0x69f},
      {0x6c0, 0x6df},
      {0xdc0, 0xddf},
  }};
  for (const auto& [first, last] : kRanges) {
    if (index >= first && index <= last) return &plain_[index];
  }
  return nullptr;
}

int Processor::read_msr(unsigned index, Bit64u& value) {
  value = 0;
  if (const std::uint64_t* stored = branches_.msr(index)) {
    value = *stored;
    return 1;
  }
  if (const std::uint64_t* plain = plain_register(index)) {
    value = *plain;
    return 1;
  }
  std::uint64_t read = 0;
  if (const int done = counters_.read_msr(index, read); done >= 0) {
    value = read;
    return done;
  }
  const ptmodel::MsrResult result = unit_->read_msr(index, read);
  value = read - range_error(index);
  return result == ptmodel::MsrResult::NOT_MINE ? -1 : result == ptmodel::MsrResult::OK;
}

int Processor::write_msr(unsigned index, Bit64u value) {
  // An interrupt that came before another processor's trace ended has been delivered since: before() was not
  // told of its target.
  delivering_ = false;
  const bool traced = tracing();
  const int result = write_register(index, value);
  if (traced != tracing()) {  // this WRMSR is not in the trace
    runs_.close();
    executing_ = false;
  }
  return result;
}

int Processor::write_register(unsigned index, std::uint64_t value) {
  std::uint64_t* plain = branches_.msr(index);
  if (plain == nullptr) plain = plain_register(index);
  if (plain != nullptr) {
    *plain = value;
    return 1;
  }
  if (const int done = counters_.write_msr(index, value); done >= 0) return done;
  if (!unit_->trace_enabled()) unit_->set_state(state());
  const ptmodel::InsnAddress wrmsr{cpu_.prev_rip, cpu_.get_instruction_pointer()};
  const ptmodel::MsrResult result = unit().write_msr(index, value + range_error(index), wrmsr);
  return result == ptmodel::MsrResult::NOT_MINE ? -1 : result == ptmodel::MsrResult::OK;
}

std::uint64_t Processor::read_physical(std::uint64_t address) {
  std::uint64_t value = ~std::uint64_t{0};
  if (address + sizeof value <= BX_MEM(0)->get_memory_len()) {
    BX_MEM(0)->readPhysicalPage(&cpu_, address, sizeof value, &value);
  }
  return value;
}

// The registers have the address of the first of these bytes.
bool Processor::ends_region(std::size_t bytes) {
  std::uint64_t ctl = 0;
  std::uint64_t base = 0;
  std::uint64_t pointers = 0;
  static_cast<void>(unit_->read_msr(PT_MSR_RTIT_CTL, ctl));
  static_cast<void>(unit_->read_msr(PT_MSR_RTIT_OUTPUT_BASE, base));
  static_cast<void>(unit_->read_msr(PT_MSR_RTIT_OUTPUT_MASK_PTRS, pointers));
  if ((ctl >> PT_CTL_TOPA & 1) == 0) return false;
  const std::uint64_t entry = read_physical(base + (pointers >> 7 & 0x1ffffff) * PT_TOPA_ENTRY_BYTES);
  const std::uint64_t size = std::uint64_t{0x1000} << (entry >> PT_TOPA_SIZE_SHIFT & 0xf);
  return (pointers >> 32) + bytes == size;
}

void Processor::write_physical(std::uint64_t address, base::Bytes bytes) {
  const std::size_t kept = fault_ == Fault::TOPA && ends_region(bytes.size())
                               ? bytes.size() - std::min(bytes.size(), kSpoiled)
                               : bytes.size();
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t room = 0x1000 - ((address + done) & 0xfff);
    const std::size_t size = std::min(room, bytes.size() - done);
    std::array<std::uint8_t, 0x1000> part;
    std::copy_n(bytes.data() + done, size, part.begin());
    for (std::size_t at = std::max(done, kept); at < done + size; ++at) part[at - done] = 0;
    BX_MEM(0)->writePhysicalPage(&cpu_, address + done, static_cast<unsigned>(size), part.data());
    done += size;
  }
}

void Processor::topa_pmi() {
  if (fault_ != Fault::INTERRUPT) counters_.interrupt(kTopaPmi);
}

}  // namespace ptkit::emulated
