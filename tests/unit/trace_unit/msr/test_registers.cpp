#include <gtest/gtest.h>

#include <set>

#include "ptkit/rtit_regs.h"
#include "trace_unit/msr/explain.h"
#include "trace_unit/msr/registers.h"

namespace ptkit::trace_unit::msr {
namespace {

TEST(RegisterNames, RoundTrip) {
  std::set<std::uint32_t> numbers;
  std::set<std::string> names;
  for (const Register& row : registers()) {
    for (std::uint32_t i = 0; i < row.count; ++i) {
      const std::uint32_t number = row.number + i * row.stride;
      // The number alone means the first of two rows.
      if (numbers.insert(number).second) {
        EXPECT_EQ(find_register(number), &row);
        EXPECT_EQ(register_name(number), register_name(row, i));
      } else {
        EXPECT_EQ(register_name(row, i), "MSR_DEBUGCTLA");
      }
      EXPECT_TRUE(names.insert(register_name(row, i)).second) << register_name(row, i);
      const auto found = register_named(register_name(row, i));
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->row, &row);
      EXPECT_EQ(found->number, number);
    }
  }
}

std::uint32_t register_number(std::string_view name) {
  return register_named(name).value_or(NamedRegister{}).number;
}

TEST(RegisterNames, AreThoseOfTheManual) {
  EXPECT_EQ(register_name(0x570), "IA32_RTIT_CTL");
  EXPECT_EQ(register_name(0x580), "IA32_RTIT_ADDR0_A");
  EXPECT_EQ(register_name(0x587), "IA32_RTIT_ADDR3_B");
  EXPECT_EQ(register_name(0x69f), "MSR_LASTBRANCH_31_FROM_IP");
  EXPECT_EQ(register_name(0x1234), "MSR 0x1234");
  EXPECT_EQ(find_register(0x588), nullptr);
  EXPECT_EQ(register_number("rtit_addr2_b"), 0x585U);
  EXPECT_EQ(register_number("ia32_debugctl"), 0x1d9U);
  EXPECT_EQ(register_number("LBR_5_INFO"), 0x1205U);
  EXPECT_EQ(register_named("RTIT_ADDR4_A").has_value(), false);
  EXPECT_EQ(register_named("").has_value(), false);
}

const FieldValue& field(const std::vector<FieldValue>& fields, std::string_view name) {
  for (const FieldValue& one : fields) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no field " << name;
  return fields.front();
}

TEST(RegisterExplain, DescribesCtl) {
  const auto fields = explain(PT_MSR_RTIT_CTL, 0x0080'0001'8304'e70dULL | 1ULL << 19 | 3ULL << 24);
  EXPECT_EQ(field(fields, "TraceEn").words, "traces");
  EXPECT_EQ(field(fields, "OS").words, "traces CPL 0");
  EXPECT_EQ(field(fields, "MTCFreq").value, 3U);
  EXPECT_EQ(field(fields, "MTCFreq").words, "with MTCEn, an MTC packet every 8 ticks of the crystal clock");
  EXPECT_EQ(field(fields, "CycThresh").words, "with CYCEn, a CYC packet at most every cycle");
  EXPECT_EQ(field(fields, "PSBFreq").words, "a PSB about every 16 KiB");
  EXPECT_EQ(field(fields, "ADDR0_CFG").words, "traces code of ADDR0_A to ADDR0_B");
  EXPECT_EQ(field(fields, "DisTNT").words, "no TNT packets");
  EXPECT_EQ(field(fields, "reserved").first, 18U);
}

TEST(RegisterExplain, DescribesOutput) {
  auto fields = explain(PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x1234'0000'ffffULL);
  EXPECT_EQ(field(fields, "MaskOrTableOffset").words,
            "one range of 64 KiB; with ToPA, entry 511 of the table (byte 0xff8)");
  EXPECT_EQ(field(fields, "OutputOffset").value, 0x1234U);
  fields = explain(PT_MSR_RTIT_OUTPUT_BASE, 0x12345680);
  EXPECT_EQ(field(fields, "BasePhysAddr").value, 0x12345680U);
}

TEST(RegisterExplain, KnowsTheBitsOfNetBurst) {
  const auto debugctla = register_named("debugctla");
  ASSERT_TRUE(debugctla.has_value());
  EXPECT_EQ(summary(*debugctla, 0x1c), "TR, BTS, BTINT");
  EXPECT_EQ(summary(*debugctla, 0x60), "BTS_OFF_OS, BTS_OFF_USR");
  EXPECT_EQ(field(explain(*debugctla, 0x1c0), "reserved").first, 7U);
  EXPECT_EQ(summary(PT_MSR_DEBUGCTL, 0x1c0), "TR, BTS, BTINT");
}

TEST(RegisterExplain, CoversAllBits) {
  for (const Register& row : registers()) {
    for (const std::uint64_t value : {0ULL, ~0ULL, 0x0123'4567'89ab'cdefULL}) {
      std::uint64_t seen = 0;
      unsigned last = 0;
      for (const FieldValue& one : explain({&row, row.number}, value)) {
        EXPECT_GE(one.first, last);
        last = one.first;
        EXPECT_FALSE(one.words.empty()) << one.name;
        const bool is_unshifted = one.width > 32 && one.name != "reserved" && one.name != "other";
        seen |= is_unshifted ? one.value : one.value << one.first;
      }
      EXPECT_EQ(seen, value) << row.name;
    }
  }
  EXPECT_TRUE(explain(0x10, 5).empty());
}

TEST(RegisterSummary, NamesNonzeroFields) {
  EXPECT_EQ(summary(PT_MSR_RTIT_CTL, 0x0c209), "TraceEn, User, MTCEn, MTCFreq 3");
  EXPECT_EQ(summary(PT_MSR_RTIT_CTL, 0), "all 0");
  EXPECT_EQ(summary(PT_MSR_DEBUGCTL, 0x2c0), "TR, BTS, BTS_OFF_OS");
}

}  // namespace
}  // namespace ptkit::trace_unit::msr
