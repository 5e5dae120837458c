#include "ptmodel/registers.h"

namespace ptkit::ptmodel {
namespace {

constexpr std::uint64_t kReadOnlyStatus =
    bit(PT_STATUS_FILTER_EN) | bit(PT_STATUS_CONTEXT_EN) | bit(PT_STATUS_TRIGGER_EN);
constexpr std::uint64_t kByteCount =
    field_mask(PT_STATUS_PACKET_BYTE_COUNT_SHIFT, PT_STATUS_PACKET_BYTE_COUNT_WIDTH);
constexpr std::uint32_t kAddrEnd = PT_MSR_RTIT_ADDR0_A + 2 * PT_MSR_RTIT_ADDR_COUNT;

bool is_addr(std::uint32_t index) noexcept { return index >= PT_MSR_RTIT_ADDR0_A && index < kAddrEnd; }

bool is_mine(std::uint32_t index) noexcept {
  return index == PT_MSR_RTIT_OUTPUT_BASE || index == PT_MSR_RTIT_OUTPUT_MASK_PTRS ||
         index == PT_MSR_RTIT_CTL || index == PT_MSR_RTIT_STATUS || index == PT_MSR_RTIT_CR3_MATCH ||
         is_addr(index);
}

// 0 is the value at reset: CTL can always be cleared.
bool listed(std::uint32_t bitmap, std::uint64_t ctl, unsigned shift, unsigned width) noexcept {
  const unsigned encoding = field_of(ctl, shift, width);
  return encoding == 0 || (bitmap >> encoding & 1) != 0;
}

}  // namespace

Registers::Registers(const Capabilities& capabilities)
    : capabilities_(capabilities), allowed_ctl_(allowed_ctl()), allowed_status_(allowed_status()) {}

// Bits of CTL that are not reserved (manual: table of IA32_RTIT_CTL, and of CPUID leaf 14H).
std::uint64_t Registers::allowed_ctl() const noexcept {
  const Capabilities& can = capabilities_;
  const auto bits_if = [](bool condition, std::uint64_t bits) { return condition ? bits : 0; };
  std::uint64_t allowed = bit(PT_CTL_TRACE_EN) | bit(PT_CTL_OS) | bit(PT_CTL_USER) | bit(PT_CTL_TSC_EN) |
                          bit(PT_CTL_DIS_RETC) | bit(PT_CTL_BRANCH_EN);
  allowed |= bits_if(can.psb_cyc(), bit(PT_CTL_CYC_EN) |
                                        field_mask(PT_CTL_CYC_THRESH_SHIFT, PT_CTL_CYC_THRESH_WIDTH) |
                                        field_mask(PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH));
  allowed |=
      bits_if(can.mtc(), bit(PT_CTL_MTC_EN) | field_mask(PT_CTL_MTC_FREQ_SHIFT, PT_CTL_MTC_FREQ_WIDTH));
  allowed |= bits_if(can.cr3_filter(), bit(PT_CTL_CR3_FILTER));
  allowed |= bits_if(can.ebx(PT_CPUID_14_EBX_PTWRITE), bit(PT_CTL_PTW_EN) | bit(PT_CTL_FUP_ON_PTW));
  allowed |= bits_if(can.ebx(PT_CPUID_14_EBX_POWER_EVENT), bit(PT_CTL_PWR_EVT_EN));
  allowed |= bits_if(can.ebx(PT_CPUID_14_EBX_EVENT_TRACE), bit(PT_CTL_EVENT_EN));
  allowed |= bits_if(can.ebx(PT_CPUID_14_EBX_TNT_DISABLE), bit(PT_CTL_DIS_TNT));
  allowed |= bits_if(can.preservation(), bit(PT_CTL_INJECT_PSB_PMI_ON_ENABLE));
  allowed |= bits_if(can.topa(), bit(PT_CTL_TOPA));
  allowed |= bits_if(can.ecx(PT_CPUID_14_ECX_TRACE_TRANSPORT), bit(PT_CTL_FABRIC_EN));
  allowed |= field_mask(PT_CTL_ADDR0_CFG_SHIFT, can.ranges() * PT_CTL_ADDR_CFG_WIDTH);
  return allowed;
}

std::uint64_t Registers::allowed_status() const noexcept {
  std::uint64_t allowed = bit(PT_STATUS_ERROR) | bit(PT_STATUS_STOPPED);
  if (capabilities_.preservation()) allowed |= bit(PT_STATUS_PEND_PSB) | bit(PT_STATUS_PEND_TOPA_PMI);
  if (capabilities_.psb_cyc()) allowed |= kByteCount;
  return allowed;
}

bool Registers::valid_ctl(std::uint64_t value) const noexcept {
  const Capabilities& can = capabilities_;
  if ((value & ~allowed_ctl_) != 0) return false;
  // No change may begin and end with TraceEn set.
  const bool enables = (value & bit(PT_CTL_TRACE_EN)) != 0;
  if (trace_enabled() && enables) return value == ctl_;
  const bool to_single_range = (value & (bit(PT_CTL_TOPA) | bit(PT_CTL_FABRIC_EN))) == 0;
  if (enables && to_single_range && !can.single_range()) return false;
  if (enables && can.needs_branch_en && (value & bit(PT_CTL_BRANCH_EN)) == 0) return false;
  // Without its capability a field is reserved: that was looked at above.
  if (!listed(can.mtc_periods(), value, PT_CTL_MTC_FREQ_SHIFT, PT_CTL_MTC_FREQ_WIDTH)) return false;
  if (!listed(can.cyc_thresholds(), value, PT_CTL_CYC_THRESH_SHIFT, PT_CTL_CYC_THRESH_WIDTH)) return false;
  if (!listed(can.psb_periods(), value, PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH)) return false;
  const bool makes_mtc = (value & bit(PT_CTL_MTC_EN)) != 0;
  const unsigned mtc_freq = field_of(value, PT_CTL_MTC_FREQ_SHIFT, PT_CTL_MTC_FREQ_WIDTH);
  if (makes_mtc && (can.mtc_periods() >> mtc_freq & 1) == 0) return false;
  for (unsigned n = 0; n < can.ranges(); ++n) {
    const unsigned shift = PT_CTL_ADDR0_CFG_SHIFT + n * PT_CTL_ADDR_CFG_WIDTH;
    if (field_of(value, shift, PT_CTL_ADDR_CFG_WIDTH) > PT_ADDR_CFG_TRACE_STOP) return false;
  }
  return true;
}

bool Registers::canonical(std::uint64_t address) const noexcept {
  const std::uint64_t upper = address >> (capabilities_.linear_bits - 1U);
  return upper == 0 || upper == ~std::uint64_t{0} >> (capabilities_.linear_bits - 1U);
}

bool Registers::exists(std::uint32_t index) const noexcept {
  if (is_addr(index)) return (index - PT_MSR_RTIT_ADDR0_A) / 2 < capabilities_.ranges();
  if (index == PT_MSR_RTIT_CR3_MATCH) return capabilities_.cr3_filter();
  if (index == PT_MSR_RTIT_CTL || index == PT_MSR_RTIT_STATUS) return true;
  return capabilities_.memory_output();
}

bool Registers::store(std::uint32_t index, std::uint64_t value) noexcept {
  switch (index) {
    case PT_MSR_RTIT_CTL:
      if (!valid_ctl(value)) return false;
      ctl_ = value;
      return true;
    case PT_MSR_RTIT_STATUS:
      if ((value & ~(allowed_status_ | kReadOnlyStatus)) != 0) return false;
      status_ = value & allowed_status_;
      return true;
    case PT_MSR_RTIT_OUTPUT_BASE:
      if ((value & field_mask(0, PT_OUTPUT_BASE_SHIFT)) != 0) return false;
      if (value >> capabilities_.physical_bits != 0) return false;
      output.base = value;
      return true;
    case PT_MSR_RTIT_OUTPUT_MASK_PTRS:
      output.mask_ptrs = value | PT_OUTPUT_MASK_LOWEST;
      return true;
    case PT_MSR_RTIT_CR3_MATCH:
      if ((value & field_mask(0, PT_CR3_MATCH_SHIFT)) != 0) return false;
      cr3_match_ = value;
      return true;
    default:
      if (!canonical(value)) return false;
      addr_[(index - PT_MSR_RTIT_ADDR0_A) / 2][(index - PT_MSR_RTIT_ADDR0_A) % 2] = value;
      return true;
  }
}

MsrResult Registers::write(std::uint32_t index, std::uint64_t value) {
  if (!is_mine(index)) return MsrResult::NOT_MINE;
  if (!exists(index)) return MsrResult::FAULT;
  if (trace_enabled() && index != PT_MSR_RTIT_CTL) return MsrResult::FAULT;
  return store(index, value) ? MsrResult::OK : MsrResult::FAULT;
}

MsrResult Registers::read(std::uint32_t index, std::uint64_t& value) const {
  if (!is_mine(index)) return MsrResult::NOT_MINE;
  if (!exists(index)) return MsrResult::FAULT;
  switch (index) {
    case PT_MSR_RTIT_CTL:
      value = ctl_;
      break;
    case PT_MSR_RTIT_STATUS:
      value = status_;
      break;
    case PT_MSR_RTIT_OUTPUT_BASE:
      value = output.base;
      break;
    case PT_MSR_RTIT_OUTPUT_MASK_PTRS:
      value = output.mask_ptrs;
      break;
    case PT_MSR_RTIT_CR3_MATCH:
      value = cr3_match_;
      break;
    default:
      value = addr_[(index - PT_MSR_RTIT_ADDR0_A) / 2][(index - PT_MSR_RTIT_ADDR0_A) % 2];
  }
  return MsrResult::OK;
}

void Registers::reset(bool warm) {
  ctl_ &= ~bit(PT_CTL_TRACE_EN);
  if (warm && capabilities_.ebx(PT_CPUID_14_EBX_IP_FILTER)) return;
  *this = Registers(capabilities_);
}

void Registers::set_packet_byte_count(std::uint32_t count) noexcept {
  status_ = (status_ & ~kByteCount) | std::uint64_t{count} << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
}

}  // namespace ptkit::ptmodel
