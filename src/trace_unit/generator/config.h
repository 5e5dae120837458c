// How a trace unit is set up: the fields of IA32_RTIT_CTL, and of the processor, that shape packets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace_unit/generator/return_stack.h"

namespace ptkit::trace_unit::generator {

struct GeneratorConfig {
  bool return_compression = true;  // !DisRETC
  bool tsc = true;                 // TSCEn
  bool mtc = false;                // MTCEn
  bool cyc = false;                // CYCEn
  bool ptw = false;                // PTWEn
  bool fup_on_ptw = false;         // FUPonPTW
  bool power = false;              // PwrEvtEn
  bool event_trace = false;        // EventEn
  bool tnt = true;                 // !DisTNT; off: no TNT packets, and therefore no return compression
  bool branches = true;            // BranchEn; off: only TraceUnit calls, PSB+ has no MODE and FUP
  bool user_only = true;           // OS = 0: no PIP and VMCS packets
  bool hides_context = false;      // PSB+ has PIP and VMCS with ContextEn only: what start() does not know
  bool use_tnt_64 = false;         // collect up to 47 bits and emit long TNT packets
  // A CYC packet before a TNT packet tells the time of the packet's first bit (as the manual says), else that
  // at which the packet was written.
  bool cyc_of_first_bit = false;
  bool deferred_tips = false;  // near TIPs wait while the TNT buffer has bits and need not be written
  TipRet tip_ret = TipRet::POPS;
  std::uint8_t mtc_period = 3;            // MTCFreq
  std::uint8_t cyc_threshold = 0;         // CycThresh: 0 none, n: 2^(n-1) cycles
  std::uint8_t core_bus_ratio = 30;       // CBR at start
  std::uint8_t max_nonturbo_ratio = 30;   // CBR at which core cycles and TSC ticks are the same
  std::uint32_t psb_bytes = 4096;         // PSB period in bytes (2048 << PSBFreq)
  std::uint32_t tsc_ctc_numerator = 84;   // CPUID 15H EBX
  std::uint32_t tsc_ctc_denominator = 1;  // CPUID 15H EAX
  std::uint64_t tsc_at_ctc_zero = 0;      // TSC when the crystal clock's counter was 0; not after the start
  std::uint64_t stop_ticks = 0;    // time that jumps this many TSC ticks was a clock stop; 0: 128 MTC periods
  std::size_t chunk_bytes = 4096;  // bytes collected before the output is called; 0: called for every packet
};

}  // namespace ptkit::trace_unit::generator
