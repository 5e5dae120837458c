// The capabilities of a processor's trace unit, by CPUID.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ptkit/rtit_regs.h"

namespace ptkit::trace_unit::msr {

// The result of one CPUID.
struct CpuidRow {
  std::uint32_t leaf = 0;
  std::uint32_t subleaf = 0;
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
};

// CPUID words. The default is a trace unit with all capabilities except output to a trace transport
// subsystem.
struct Capabilities {
  std::uint32_t leaf_14_ebx = 0x1ff;          // 14H.0 EBX
  std::uint32_t leaf_14_ecx = 0x8000'0007;    // 14H.0 ECX: ToPA, many entries, single range; IPs are linear
  std::uint32_t leaf_14_1_eax = 0xffff'0004;  // 14H.1 EAX: MTC periods, four address ranges
  std::uint32_t leaf_14_1_ebx = 0xffff'ffff;  // 14H.1 EBX: PSB periods, CYC thresholds
  std::uint8_t physical_bits = 46;            // 80000008H EAX: MAXPHYADDR
  std::uint8_t linear_bits = 48;              // 57 with five levels of paging
  bool needs_branch_en = false;               // Broadwell: setting TraceEn without BranchEn faults
  std::uint32_t tsc_ctc_denominator = 0;      // 15H EAX, EBX and ECX; 0: not enumerated
  std::uint32_t tsc_ctc_numerator = 0;
  std::uint32_t crystal_hz = 0;

  [[nodiscard]] bool ebx(unsigned bit) const noexcept { return (leaf_14_ebx >> bit & 1) != 0; }
  [[nodiscard]] bool ecx(unsigned bit) const noexcept { return (leaf_14_ecx >> bit & 1) != 0; }
  [[nodiscard]] bool topa() const noexcept { return ecx(PT_CPUID_14_ECX_TOPA); }
  [[nodiscard]] bool topa_multiple() const noexcept { return ecx(PT_CPUID_14_ECX_TOPA_MULTIPLE); }
  [[nodiscard]] bool single_range() const noexcept { return ecx(PT_CPUID_14_ECX_SINGLE_RANGE); }
  [[nodiscard]] bool cr3_filter() const noexcept { return ebx(PT_CPUID_14_EBX_CR3_FILTER); }
  [[nodiscard]] bool psb_cyc() const noexcept { return ebx(PT_CPUID_14_EBX_PSB_CYC); }
  [[nodiscard]] bool mtc() const noexcept { return ebx(PT_CPUID_14_EBX_MTC); }
  [[nodiscard]] bool preservation() const noexcept { return ebx(PT_CPUID_14_EBX_PSB_PMI_PRESERVATION); }
  [[nodiscard]] bool memory_output() const noexcept { return topa() || single_range(); }
  // The number of ADDRn_A, ADDRn_B pairs.
  [[nodiscard]] unsigned ranges() const noexcept;
  // The valid encodings of a field of IA32_RTIT_CTL, as a bitmap.
  [[nodiscard]] std::uint32_t mtc_periods() const noexcept {
    return leaf_14_1_eax >> PT_CPUID_14_1_EAX_MTC_SHIFT;
  }
  [[nodiscard]] std::uint32_t cyc_thresholds() const noexcept {
    return leaf_14_1_ebx >> PT_CPUID_14_1_EBX_CYC_SHIFT & 0xffff;
  }
  [[nodiscard]] std::uint32_t psb_periods() const noexcept {
    return leaf_14_1_ebx >> PT_CPUID_14_1_EBX_PSB_SHIFT;
  }
};

// Whether the processor has a trace unit: CPUID.(EAX=07H,ECX=0):EBX[25].
[[nodiscard]] bool has_trace_unit(std::span<const CpuidRow> rows) noexcept;
// Reads leaves 01H, 14H, 15H and 80000008H. Missing leaves read as 0, but address widths keep their defaults.
[[nodiscard]] Capabilities capabilities(std::span<const CpuidRow> rows) noexcept;
// The leaves about tracing of this processor; empty on other machines than x86.
[[nodiscard]] std::vector<CpuidRow> read_cpuid();

}  // namespace ptkit::trace_unit::msr
