// A Processor Trace unit's packet generation in software: what a logical processor retires goes in, the bytes that
// a trace unit would write come out. Recorders and the MSR model build on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/bytes.h"

namespace ptkit::softpt {

// The fields of IA32_RTIT_CTL (and of the processor) that shape packets.
struct UnitConfig {
  bool return_compression = true;   // !DisRETC
  bool tsc = true;                  // TSCEn
  bool mtc = false;                 // MTCEn
  bool cyc = false;                 // CYCEn
  bool ptw = false;                 // PTWEn
  bool fup_on_ptw = false;
  bool power = false;               // PwrEvtEn
  bool event_trace = false;         // EventEn
  bool tnt = true;                  // !DisTNT
  bool user_only = true;            // OS = 0: far transfers to CPL 0 leave the trace
  bool use_tnt_64 = false;          // emit long TNT packets where they save bytes
  std::uint8_t mtc_period = 3;      // MTCFreq
  std::uint8_t cyc_threshold = 0;   // CycThresh
  std::uint32_t psb_bytes = 4096;   // PSB period in bytes (2048 << PSBFreq)
  std::uint32_t tsc_ctc_numerator = 84;  // CPUID 15H EBX
  std::uint32_t tsc_ctc_denominator = 1; // CPUID 15H EAX
  std::uint8_t core_bus_ratio = 30;      // CBR at start
  std::uint8_t max_nonturbo_ratio = 30;
};

// Packet generation. Every call takes the time at which it happens (`set_time` before it); bytes go to `sink` as they are made.
// Call order is retirement order. With TraceEn off, or outside the filter, calls keep state but make no packets
// save those the manual says (PIP with OS traced, power events, ...).
class PtUnit {
 public:
  using Output = std::function<void(base::Bytes)>;
  PtUnit(const UnitConfig& config, Output sink);

  void set_time(std::uint64_t tsc, std::uint64_t core_cycles);  // never goes back; makes MTC/CYC/TSC packets as configured
  void set_core_bus_ratio(std::uint8_t ratio);
  void set_mode(bool cs_l, bool cs_d, bool interrupt_flag);     // MODE.Exec, given with the IP packet that it belongs to
  void set_cr3(std::uint64_t cr3);                              // PIP where the configuration lets it out

  void enable(std::uint64_t ip);        // PSB+ the first time, then TIP.PGE: TraceEn, or filter entered
  void disable();                       // TraceEn cleared: TIP.PGD without IP
  void disable(std::uint64_t ip);       // left the filter to `ip`: TIP.PGD with IP

  void conditional(bool taken);                                   // Jcc, JCXZ, LOOPcc
  void call(std::uint64_t next_ip, std::uint64_t target);         // direct near CALL
  void call_indirect(std::uint64_t next_ip, std::uint64_t target);
  void jump_indirect(std::uint64_t target);
  void ret(std::uint64_t target);                                 // near RET: compressed where allowed
  void far_transfer(std::uint64_t target);                        // target visible to the filter: TIP
  void far_transfer_out();                                        // SYSCALL etc. into a filtered CPL: TIP.PGD without IP
  void async(std::uint64_t from_ip, std::uint64_t target);        // interrupt, exception, signal seen from user space: FUP + TIP
  void async_out(std::uint64_t from_ip);                          // the same into a filtered CPL: FUP + TIP.PGD
  void tsx(bool in_tx, bool aborted, std::uint64_t ip);           // MODE.TSX + FUP (begin, commit); abort: + TIP by async()
  void ptwrite(std::uint64_t value, bool wide, std::uint64_t ip);
  void overflow(std::uint64_t resume_ip);                         // packets were lost: OVF, then FUP or TIP.PGE
  void trace_stop();
  void flush();                                                   // write out a partly filled TNT packet

  [[nodiscard]] std::uint64_t bytes_written() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ptkit::softpt
