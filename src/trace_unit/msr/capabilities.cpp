#include "trace_unit/msr/capabilities.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "trace_unit/msr/caps.h"

namespace ptkit::trace_unit::msr {

namespace {

constexpr std::uint32_t kExtended = 0x8000'0000;
constexpr std::uint32_t kWidths = 0x8000'0008;

CpuidRow find(std::span<const CpuidRow> rows, std::uint32_t leaf, std::uint32_t subleaf) noexcept {
  for (const CpuidRow& row : rows) {
    if (row.leaf == leaf && row.subleaf == subleaf) return row;
  }
  return {.leaf = leaf, .subleaf = subleaf};
}

std::uint8_t byte(std::uint32_t word, unsigned shift) {
  return static_cast<std::uint8_t>(word >> shift & 0xff);
}

// Whether the processor is a Broadwell: family 6 and one of its models.
bool is_broadwell(std::uint32_t signature) noexcept {
  const std::uint32_t family = signature >> 8 & 0xf;
  const std::uint32_t model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
  return family == 6 && (model == 0x3d || model == 0x47 || model == 0x4f || model == 0x56);
}

}  // namespace

bool has_trace_unit(std::span<const CpuidRow> rows) noexcept {
  return (find(rows, 7, 0).ebx >> PT_CPUID_7_EBX_PT & 1) != 0;
}

Capabilities capabilities(std::span<const CpuidRow> rows) noexcept {
  Capabilities out;
  const CpuidRow main = find(rows, 0x14, 0);
  const CpuidRow values = find(rows, 0x14, 1);
  const CpuidRow clock = find(rows, 0x15, 0);
  const std::uint32_t widths = find(rows, kWidths, 0).eax;
  out.leaf_14_ebx = main.ebx;
  out.leaf_14_ecx = main.ecx;
  // EAX is the number of the last sub-leaf.
  out.leaf_14_1_eax = main.eax >= 1 ? values.eax : 0;
  out.leaf_14_1_ebx = main.eax >= 1 ? values.ebx : 0;
  const std::uint8_t physical = byte(widths, 0);
  const std::uint8_t linear = byte(widths, PT_CPUID_80000008_EAX_LINEAR_SHIFT);
  out.physical_bits = physical >= 32 && physical <= 52 ? physical : 36;
  out.linear_bits = linear == 57 ? 57 : 48;
  out.needs_branch_en = is_broadwell(find(rows, 1, 0).eax);
  out.tsc_ctc_denominator = clock.eax;
  out.tsc_ctc_numerator = clock.ebx;
  out.crystal_hz = clock.ecx;
  return out;
}

std::vector<CpuidRow> read_cpuid() {
  std::vector<CpuidRow> rows;
#if defined(__x86_64__) || defined(__i386__)
  constexpr std::uint32_t kLeaves[][2] = {{1, 0}, {7, 0}, {0x14, 0}, {0x14, 1}, {0x15, 0}, {kWidths, 0}};
  for (const auto& [leaf, subleaf] : kLeaves) {
    const auto last = static_cast<std::uint32_t>(__get_cpuid_max(leaf & kExtended, nullptr));
    if (leaf > last) continue;
    CpuidRow row{.leaf = leaf, .subleaf = subleaf};
    __cpuid_count(leaf, subleaf, row.eax, row.ebx, row.ecx, row.edx);
    rows.push_back(row);
  }
#endif
  return rows;
}

unsigned Capabilities::ranges() const noexcept {
  const pt_caps caps = caps_of(*this);
  return pt_ranges(&caps);
}

}  // namespace ptkit::trace_unit::msr
