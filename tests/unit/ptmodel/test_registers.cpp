// Which writes of the RTIT registers fault.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "ptmodel/registers.h"

namespace ptkit::ptmodel {
namespace {

Capabilities nothing() {
  Capabilities none;
  none.leaf_14_ebx = 0;
  none.leaf_14_ecx = 1 << PT_CPUID_14_ECX_TOPA;
  none.leaf_14_1_eax = 0;
  none.leaf_14_1_ebx = 0;
  return none;
}

MsrResult written(const Capabilities& can, std::uint32_t index, std::uint64_t value) {
  return Registers(can).write(index, value);
}

// First bit and width of a part of CTL, and the bit of CPUID 14H EBX or ECX that it needs (-1: none).
struct CtlPart {
  unsigned first;
  unsigned width;
  int ebx;
  int ecx;
};
constexpr CtlPart kParts[] = {
    {0, 1, -1, -1}, {1, 1, 1, -1},   {2, 1, -1, -1}, {3, 1, -1, -1}, {4, 1, 5, -1},   {5, 1, 4, -1},
    {6, 1, -1, 3},  {7, 1, 0, -1},   {8, 1, -1, 0},  {9, 1, 3, -1},  {10, 1, -1, -1}, {11, 1, -1, -1},
    {12, 1, 4, -1}, {13, 1, -1, -1}, {14, 4, 3, -1}, {19, 4, 1, -1}, {24, 4, 1, -1},  {31, 1, 7, -1},
    {32, 4, 2, -1}, {36, 4, 2, -1},  {40, 4, 2, -1}, {44, 4, 2, -1}, {55, 1, 8, -1},  {56, 1, 6, -1}};

const CtlPart* part_of(unsigned number) {
  for (const CtlPart& part : kParts) {
    if (number >= part.first && number < part.first + part.width) return &part;
  }
  return nullptr;
}

TEST(Registers, EveryBitOfCtlNeedsItsCapability) {
  for (unsigned number = 0; number < 64; ++number) {
    SCOPED_TRACE(number);
    const CtlPart* part = part_of(number);
    Capabilities all;
    all.leaf_14_ecx |= 1 << PT_CPUID_14_ECX_TRACE_TRANSPORT;
    // 4 and 8 are no ADDRn_CFG.
    const bool encoding = number < 32 || number > 47 || number % 4 < 2;
    const bool valid = part != nullptr && encoding;
    EXPECT_EQ(written(all, PT_MSR_RTIT_CTL, bit(number)), valid ? MsrResult::OK : MsrResult::FAULT);
    if (!valid || (part->ebx < 0 && part->ecx < 0)) continue;
    Capabilities less = all;
    if (part->ebx >= 0) less.leaf_14_ebx &= ~(1U << part->ebx);
    if (part->ecx >= 0) less.leaf_14_ecx &= ~(1U << part->ecx);
    EXPECT_EQ(written(less, PT_MSR_RTIT_CTL, bit(number)), MsrResult::FAULT);
    EXPECT_EQ(written(less, PT_MSR_RTIT_CTL, 0), MsrResult::OK);
  }
}

TEST(Registers, EncodingsThatCpuidDoesNotListFault) {
  Capabilities can;
  can.leaf_14_1_eax = 0x02490002;
  can.leaf_14_1_ebx = 0x003f3fff;
  for (std::uint64_t value = 0; value < 16; ++value) {
    SCOPED_TRACE(value);
    const auto expected = [&](std::uint32_t bitmap) {
      return (bitmap >> value & 1) != 0 ? MsrResult::OK : MsrResult::FAULT;
    };
    EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, value << 14), expected(0x249));
    EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, value << 19), expected(0x3fff));
    EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, value << 24), expected(0x3f));
    EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, value << 36), value <= 2 ? MsrResult::OK : MsrResult::FAULT);
    EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, value << 40), value == 0 ? MsrResult::OK : MsrResult::FAULT);
  }
}

TEST(Registers, EncodingZeroIsAlwaysThereSaveForMtcPackets) {
  Capabilities can;
  can.leaf_14_1_eax = 0x02480002;
  can.leaf_14_1_ebx = 0x003e3ffe;
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0), MsrResult::OK);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, bit(PT_CTL_CYC_EN) | bit(PT_CTL_TRACE_EN)), MsrResult::OK);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, bit(PT_CTL_MTC_EN)), MsrResult::FAULT);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, bit(PT_CTL_MTC_EN) | 3 << PT_CTL_MTC_FREQ_SHIFT), MsrResult::OK);
}

TEST(Registers, SingleRangeOutputHasToBeSupportedToBeEnabled) {
  Capabilities can;
  can.leaf_14_ecx = 1 << PT_CPUID_14_ECX_TOPA | 1 << PT_CPUID_14_ECX_TRACE_TRANSPORT;
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x1), MsrResult::FAULT);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x0), MsrResult::OK);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x101), MsrResult::OK);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x41), MsrResult::OK);
  can.leaf_14_ecx = 1 << PT_CPUID_14_ECX_SINGLE_RANGE;
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x1), MsrResult::OK);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x100), MsrResult::FAULT);
}

TEST(Registers, BroadwellNeedsBranchEn) {
  Capabilities can;
  can.needs_branch_en = true;
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x1), MsrResult::FAULT);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x2001), MsrResult::OK);
  EXPECT_EQ(written(can, PT_MSR_RTIT_CTL, 0x0), MsrResult::OK);
}

TEST(Registers, NothingMayChangeWhileTraceEnIsSet) {
  Registers registers{Capabilities{}};
  ASSERT_EQ(registers.write(PT_MSR_RTIT_CTL, 0x2509), MsrResult::OK);
  EXPECT_EQ(registers.write(PT_MSR_RTIT_CTL, 0x2509), MsrResult::OK);
  for (unsigned number = 1; number < 64; ++number) {
    EXPECT_EQ(registers.write(PT_MSR_RTIT_CTL, 0x2509 ^ bit(number)), MsrResult::FAULT) << number;
  }
  constexpr std::uint32_t kOthers[] = {PT_MSR_RTIT_OUTPUT_BASE, PT_MSR_RTIT_OUTPUT_MASK_PTRS,
                                       PT_MSR_RTIT_STATUS,      PT_MSR_RTIT_CR3_MATCH,
                                       PT_MSR_RTIT_ADDR0_A,     0x587};
  for (const std::uint32_t index : kOthers) {
    EXPECT_EQ(registers.write(index, 0), MsrResult::FAULT) << index;
  }
  EXPECT_EQ(registers.ctl(), 0x2509U);
  EXPECT_EQ(registers.write(PT_MSR_RTIT_CTL, 0x200c), MsrResult::OK);  // clears it, and changes others
  EXPECT_EQ(registers.ctl(), 0x200cU);
  EXPECT_EQ(registers.write(PT_MSR_RTIT_STATUS, 0), MsrResult::OK);
}

TEST(Registers, StatusKeepsWhatSoftwareMayWrite) {
  Registers registers{Capabilities{}};
  std::uint64_t value = 0;
  for (unsigned number = 0; number < 64; ++number) {
    SCOPED_TRACE(number);
    const bool read_only = number < 3;
    const bool known = (number >= 4 && number <= 7) || (number >= 32 && number <= 48);
    const MsrResult expected = read_only || known ? MsrResult::OK : MsrResult::FAULT;
    ASSERT_EQ(registers.write(PT_MSR_RTIT_STATUS, bit(number)), expected);
    ASSERT_EQ(registers.read(PT_MSR_RTIT_STATUS, value), MsrResult::OK);
    if (expected == MsrResult::OK) {
      EXPECT_EQ(value, read_only ? 0 : bit(number));
    }
  }
  for (const unsigned number : {6U, 7U, 32U, 48U}) {
    EXPECT_EQ(written(nothing(), PT_MSR_RTIT_STATUS, bit(number)), MsrResult::FAULT);
  }
  EXPECT_EQ(written(nothing(), PT_MSR_RTIT_STATUS, bit(4) | bit(5)), MsrResult::OK);
}

TEST(Registers, OutputRegisters) {
  Registers registers{Capabilities{}};
  std::uint64_t value = 1;
  ASSERT_EQ(registers.read(PT_MSR_RTIT_OUTPUT_MASK_PTRS, value), MsrResult::OK);
  EXPECT_EQ(value, 0x7fU);
  ASSERT_EQ(registers.write(PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0xffff'0000'1234'5600), MsrResult::OK);
  ASSERT_EQ(registers.read(PT_MSR_RTIT_OUTPUT_MASK_PTRS, value), MsrResult::OK);
  EXPECT_EQ(value, 0xffff'0000'1234'567f);
  Capabilities can;
  for (unsigned number = 0; number < 64; ++number) {
    const bool valid = number >= 7 && number < can.physical_bits;
    EXPECT_EQ(written(can, PT_MSR_RTIT_OUTPUT_BASE, bit(number)), valid ? MsrResult::OK : MsrResult::FAULT);
  }
  can.leaf_14_ecx = 0;
  EXPECT_EQ(written(can, PT_MSR_RTIT_OUTPUT_BASE, 0), MsrResult::FAULT);
  EXPECT_EQ(written(can, PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0), MsrResult::FAULT);
}

TEST(Registers, FiltersHaveTheirRegistersByCpuid) {
  for (unsigned number = 0; number < 64; ++number) {
    EXPECT_EQ(written({}, PT_MSR_RTIT_CR3_MATCH, bit(number)), number < 5 ? MsrResult::FAULT : MsrResult::OK);
  }
  EXPECT_EQ(written(nothing(), PT_MSR_RTIT_CR3_MATCH, 0), MsrResult::FAULT);
  for (std::uint32_t ranges = 0; ranges <= 4; ++ranges) {
    Capabilities can;
    can.leaf_14_1_eax = ranges;
    for (std::uint32_t n = 0; n < 8; ++n) {
      EXPECT_EQ(written(can, 0x580 + n, 0x1000), n / 2 < ranges ? MsrResult::OK : MsrResult::FAULT);
    }
  }
}

TEST(Registers, AddressesOfRangesAreCanonical) {
  Capabilities can;
  EXPECT_EQ(written(can, 0x580, 0x0000'7fff'ffff'ffff), MsrResult::OK);
  EXPECT_EQ(written(can, 0x580, 0x0000'8000'0000'0000), MsrResult::FAULT);
  EXPECT_EQ(written(can, 0x580, 0xffff'7fff'ffff'ffff), MsrResult::FAULT);
  EXPECT_EQ(written(can, 0x580, 0xffff'8000'0000'0000), MsrResult::OK);
  can.linear_bits = 57;
  EXPECT_EQ(written(can, 0x580, 0x0000'8000'0000'0000), MsrResult::OK);
  EXPECT_EQ(written(can, 0x580, 0x0100'0000'0000'0000), MsrResult::FAULT);
  EXPECT_EQ(written(can, 0x580, 0xff00'0000'0000'0000), MsrResult::OK);
}

TEST(Registers, OtherNumbersAreNotItsOwn) {
  for (std::uint32_t index = 0x500; index < 0x600; ++index) {
    const bool mine = index == 0x560 || index == 0x561 || (index >= 0x570 && index <= 0x572) ||
                      (index >= 0x580 && index <= 0x587);
    std::uint64_t value = 0;
    EXPECT_EQ(Registers(Capabilities{}).read(index, value), mine ? MsrResult::OK : MsrResult::NOT_MINE)
        << index;
    EXPECT_EQ(written({}, index, 0), mine ? MsrResult::OK : MsrResult::NOT_MINE) << index;
  }
}

TEST(Registers, AWarmResetKeepsThemWhereCpuidSaysSo) {
  for (const bool kept : {false, true}) {
    Capabilities can;
    if (!kept) can.leaf_14_ebx &= ~(1U << PT_CPUID_14_EBX_IP_FILTER);
    Registers registers{can};
    ASSERT_EQ(registers.write(PT_MSR_RTIT_OUTPUT_BASE, 0x1000), MsrResult::OK);
    ASSERT_EQ(registers.write(PT_MSR_RTIT_CTL, 0x2009), MsrResult::OK);
    registers.reset(true);
    EXPECT_EQ(registers.ctl(), kept ? 0x2008U : 0U);
    EXPECT_EQ(registers.output.base, kept ? 0x1000U : 0U);
    registers.reset(false);
    EXPECT_EQ(registers.ctl(), 0U);
    EXPECT_EQ(registers.output.base, 0U);
  }
}

// The manual's rules once more, part by part of the value.
bool valid_by_parts(const Capabilities& can, std::uint64_t value) {
  for (unsigned number = 0; number < 64; ++number) {
    if ((value >> number & 1) == 0) continue;
    const CtlPart* part = part_of(number);
    if (part == nullptr) return false;
    if (part->ebx >= 0 && (can.leaf_14_ebx >> part->ebx & 1) == 0) return false;
    if (part->ecx >= 0 && (can.leaf_14_ecx >> part->ecx & 1) == 0) return false;
  }
  const bool mtc_counts = (value & 0x3c200) != 0;  // MTCEn or MTCFreq
  if (mtc_counts && (can.leaf_14_1_eax >> 16 >> (value >> 14 & 15) & 1) == 0) return false;
  if ((value >> 19 & 15) != 0 && (can.leaf_14_1_ebx >> (value >> 19 & 15) & 1) == 0) return false;
  if ((value >> 24 & 15) != 0 && (can.leaf_14_1_ebx >> 16 >> (value >> 24 & 15) & 1) == 0) return false;
  for (unsigned n = 0; n < 4; ++n) {
    const std::uint64_t cfg = value >> (32 + 4 * n) & 15;
    if (cfg > 2 || (cfg != 0 && n >= (can.leaf_14_1_eax & 7))) return false;
  }
  return (value & 1) == 0 || (value & 0x140) != 0 || (can.leaf_14_ecx & 4) != 0;
}

TEST(Registers, AcceptsExactlyTheValidConfigurations) {
  std::mt19937_64 random(1);
  unsigned accepted = 0;
  for (unsigned round = 0; round < 200000; ++round) {
    Capabilities can;
    can.leaf_14_ebx = static_cast<std::uint32_t>(random() | random());
    can.leaf_14_ecx = static_cast<std::uint32_t>(random() | random());
    can.leaf_14_1_eax = static_cast<std::uint32_t>(random() | random() << 16) & ~7U;
    can.leaf_14_1_eax |= static_cast<std::uint32_t>(random() % 5);
    can.leaf_14_1_ebx = static_cast<std::uint32_t>(random());
    std::uint64_t value = 0;
    for (const CtlPart& part : kParts) {
      const bool chosen = random() % 2 == 0;
      const std::uint64_t most = part.first >= 32 && part.width == 4 ? 3 : std::uint64_t{1} << part.width;
      if (chosen) value |= random() % most << part.first;
    }
    if (random() % 8 == 0) value |= bit(random() % 64);
    const bool valid = valid_by_parts(can, value);
    accepted += valid;
    ASSERT_EQ(written(can, PT_MSR_RTIT_CTL, value), valid ? MsrResult::OK : MsrResult::FAULT)
        << std::hex << value << " " << can.leaf_14_ebx << " " << can.leaf_14_ecx;
  }
  EXPECT_GT(accepted, 1000U);
}

}  // namespace
}  // namespace ptkit::ptmodel
