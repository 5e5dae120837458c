// The trace unit of one logical processor: packet generation (trace_unit::generator::PacketGenerator) with
// the RTIT registers and the filters before it, and the output after it. The caller reports what the
// processor retires; the trace unit decides which part of it is traced. Trace bytes go to physical memory as
// the registers say. docs/trace-unit.md says what is modelled.
//
// Use by an emulator, one TraceUnit for each CPU:
//   set_state() once; then, as things retire, set_time() and one call. While TraceEn is clear calls cost a
//   comparison. Near branches may be left out while watching() is false, nothing else may.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "ptmodel/capabilities.h"
#include "ptmodel/filters.h"
#include "ptmodel/output.h"
#include "ptmodel/platform.h"
#include "ptmodel/registers.h"
#include "trace_unit/generator/config.h"
#include "trace_unit/generator/packet_generator.h"
#include "trace_unit/generator/timing.h"

namespace ptkit::ptmodel {

// The processor state on which filters and MODE.Exec depend. Real-address mode has CPL 0, virtual-8086 mode
// CPL 3.
struct ProcessorState {
  std::uint64_t cr3 = 0;
  std::uint8_t cpl = 0;
  bool pae = false;             // PAE paging (not 64-bit): the CR3 filter compares bits 63:5
  bool cs_l = true;             // CS.L with EFER.LMA
  bool cs_d = false;            // CS.D
  std::uint32_t cs_base = 0;    // of the code segment; without effect in 64-bit mode
  bool interrupt_flag = false;  // RFLAGS.IF; traced with event trace only
};

// The address of a WRMSR, and that of the instruction after it.
struct InsnAddress {
  std::uint64_t ip = 0;
  std::uint64_t next_ip = 0;
};

class TraceUnit {
 public:
  // `packets` gives what no register says: ratios, the crystal clock (CPUID 15H), long TNT, deferred TIPs;
  // what CTL says replaces its fields each time TraceEn is set. chunk_bytes is the size of the internal
  // buffer: bytes that were not yet written to memory. Clearing TraceEn writes them. `platform` must outlive
  // the unit.
  TraceUnit(const Capabilities& capabilities, const trace_unit::generator::GeneratorConfig& packets,
            Platform& platform);
  ~TraceUnit();
  TraceUnit(const TraceUnit&) = delete;
  TraceUnit& operator=(const TraceUnit&) = delete;

  // --- registers: RDMSR and WRMSR of 0x560-0x561, 0x570-0x572, 0x580-0x587. FAULT: #GP(0), and nothing
  // changed. Addresses, here and below, are linear. A write that clears TraceEn comes as FUP with at.ip; one
  // that sets it begins the trace at at.next_ip.
  MsrResult write_msr(std::uint32_t index, std::uint64_t value, InsnAddress at = {});
  [[nodiscard]] MsrResult read_msr(std::uint32_t index, std::uint64_t& value) const;
  void reset(
      bool warm);  // RESET: cold clears all registers, warm TraceEn only where CPUID 14H EBX[2] says so

  // --- state that was not changed by one of the calls below, before tracing begins or while it is off
  void set_state(const ProcessorState& state);
  [[nodiscard]] const ProcessorState& state() const noexcept { return state_; }

  // --- time of the calls that follow. Never goes back. Core cycles count for CYC packets
  void set_time(std::uint64_t tsc, std::uint64_t core_cycles) noexcept { now_ = {tsc, core_cycles}; }
  void set_core_bus_ratio(std::uint8_t ratio);

  // --- near branches, when they retire. Of CALL, `next_ip` is where a return comes back to
  void conditional(bool taken,
                   std::uint64_t ip_after) {  // Jcc, JCXZ, LOOPcc; `ip_after`: where control goes on
    if (watching_) on_conditional(taken, ip_after);
  }
  void jump(std::uint64_t target) {  // direct
    if (watching_) on_jump(target);
  }
  void call(std::uint64_t next_ip, std::uint64_t target) {  // direct
    if (watching_) on_call(next_ip, target);
  }
  void jump_indirect(std::uint64_t target) {
    if (watching_) on_jump_indirect(target);
  }
  void call_indirect(std::uint64_t next_ip, std::uint64_t target) {
    if (watching_) on_call_indirect(next_ip, target);
  }
  void ret(std::uint64_t target) {
    if (watching_) on_ret(target);
  }

  // --- far transfers; `after`: the state at the target
  // Far JMP, CALL, RET, IRET, SYSCALL, SYSRET, SYSENTER, SYSEXIT.
  void far_transfer(std::uint64_t target, const ProcessorState& after);
  // Hardware interrupt (`from`: the instruction that would have been next), exception (that which faulted, or
  // behind a trap), INT n, INT3, INTO, INT1 (the instruction itself): FUP(from) and TIP.
  void interrupt(std::uint64_t from, std::uint64_t target, const ProcessorState& after);
  // Instructions that change the state without a transfer; `next_ip`: behind the instruction.
  void mov_cr3(std::uint64_t cr3, std::uint64_t next_ip);                 // always a PIP, if any
  void change_state(const ProcessorState& after, std::uint64_t next_ip);  // MOV CR0, CR4; CLI, STI, POPF
  void transaction(bool in_tx, bool aborted, std::uint64_t ip);  // TSX; an abort's interrupt() follows

  // --- other packets, as CTL lets them out
  void ptwrite(std::uint64_t value, bool wide, std::uint64_t ip);
  void mwait(std::uint8_t hints, std::uint8_t extensions);
  void power_entry(std::uint8_t state, std::uint8_t sub_state, bool hardware);  // PWRE
  void execution_stop(std::uint64_t ip);  // EXSTOP, HLT and MWAIT among others
  void power_exit(std::uint8_t last, std::uint8_t deepest, std::uint8_t reasons);  // PWRX
  void event(packet::CfeType type, std::uint8_t vector);  // CFE, before the interrupt() it belongs to
  void event_at(packet::CfeType type, std::uint8_t vector,
                std::uint64_t ip);                             // CFE of its own: IRET, INIT, ...
  void event_data(packet::EvdType type, std::uint64_t value);  // EVD, before its CFE

  // --- a condition of the machine: packets from begin to end are lost. OVF comes at the end, where execution
  // stands at `next_ip`; a TraceStop that fell into it behind that
  void begin_overflow();
  void end_overflow(std::uint64_t next_ip);

  // Near branches have an effect.
  [[nodiscard]] bool watching() const noexcept { return watching_; }
  [[nodiscard]] bool trace_enabled() const noexcept { return registers_.trace_enabled(); }  // TraceEn
  [[nodiscard]] bool trigger_enabled() const noexcept { return trigger_; }                  // TriggerEn
  [[nodiscard]] bool context_enabled() const noexcept { return trigger_ && context_; }      // ContextEn
  [[nodiscard]] bool filter_enabled() const noexcept { return trigger_ && filter_; }        // FilterEn
  [[nodiscard]] bool packets_enabled() const noexcept { return trigger_ && context_ && filter_; }  // PacketEn
  // Not OK: a packet could not be encoded (a defect).
  [[nodiscard]] base::Status status() const noexcept { return unit_ ? unit_->status() : status_; }

 private:
  void on_conditional(bool taken, std::uint64_t ip_after);
  void on_jump(std::uint64_t target);
  void on_call(std::uint64_t next_ip, std::uint64_t target);
  void on_jump_indirect(std::uint64_t target);
  void on_call_indirect(std::uint64_t next_ip, std::uint64_t target);
  void on_ret(std::uint64_t target);

  // TraceEn, and what ends TriggerEn before it.
  void enable(InsnAddress at);
  void disable(InsnAddress at);
  void begin_packets(InsnAddress at);
  void halt(unsigned status_bit);
  void stop();
  void keep_byte_count();
  void take_bytes(base::Bytes bytes);
  [[nodiscard]] bool context_of(const ProcessorState& state) const noexcept;
  [[nodiscard]] trace_unit::generator::GeneratorConfig packet_config() const noexcept;
  [[nodiscard]] std::uint32_t packet_byte_count() const noexcept;
  [[nodiscard]] unsigned byte_count_shift() const noexcept;

  // Changes of the enables by retired instructions, and their packets.
  [[nodiscard]] bool lands(std::uint64_t target);
  [[nodiscard]] bool lands_filtered(std::uint64_t target);
  void transfer(const std::uint64_t* from, std::uint64_t target, const ProcessorState& after);
  void transfer_packets(const std::uint64_t* from, std::uint64_t target, bool was_on, bool stops);
  void change(const ProcessorState& after, std::uint64_t next_ip, bool cr3_written);
  void change_inside(std::uint64_t next_ip, bool cr3_written);
  void resolve_overflow(const std::uint64_t* next_ip);

  // The IP payload for a linear address: the address itself, or its offset in the code segment
  // (CPUID.14H:ECX[31], "LIP"). Filters compare linear addresses.
  [[nodiscard]] std::uint64_t payload(std::uint64_t ip) const noexcept {
    if (state_.cs_l || registers_.capabilities().ecx(PT_CPUID_14_ECX_LIP)) return ip;
    return static_cast<std::uint32_t>(ip - state_.cs_base);
  }
  [[nodiscard]] bool inside() const noexcept { return context_ && filter_; }
  [[nodiscard]] bool telling();  // packets that do not depend on PacketEn come out now
  void report_time() { unit_->set_time(now_.tsc, now_.cycles); }
  void report_mode() { unit_->set_mode(state_.cs_l, state_.cs_d, state_.interrupt_flag); }
  // PIP has the address alone: bits 11:5 belong to it with PAE paging only.
  [[nodiscard]] std::uint64_t told_cr3() const noexcept {
    return state_.cr3 & ~std::uint64_t{state_.pae ? 0x1fU : 0xfffU};
  }
  void report_cr3() { unit_->set_cr3(told_cr3()); }
  void update() noexcept;

  Platform& platform_;
  trace_unit::generator::GeneratorConfig base_config_;
  Registers registers_;
  Filters filters_;
  TraceOutput output_;
  std::unique_ptr<trace_unit::generator::PacketGenerator> unit_;  // while TraceEn is set
  ProcessorState state_;
  trace_unit::generator::Instant now_;
  std::uint8_t ratio_;
  unsigned count_shift_ = 0;  // of PacketByteCnt
  bool trigger_ = false;
  bool context_ = false;
  bool filter_ = false;
  bool branches_ = true;    // BranchEn
  bool preserves_ = false;  // InjectPsbPmiOnEnable
  bool in_transaction_ = false;
  bool lost_ = false;        // in an overflow
  bool stop_waits_ = false;  // a TraceStop fell into it
  bool plain_ = false;       // branches are traced, and nothing else can become of them
  bool watching_ = false;
  base::Status status_ = base::Status::OK;
};

}  // namespace ptkit::ptmodel
