// Random register values, close to valid ones, so that valid and invalid values are common.
#pragma once

#include <random>

#include "trace_unit/msr/config.h"

namespace ptkit::trace_unit::msr::tests {

inline Capabilities random_capabilities(std::mt19937_64& random) {
  Capabilities out;
  // Most capabilities, some missing.
  const auto some = [&] { return static_cast<std::uint32_t>(random() | random()); };
  out.leaf_14_ebx &= some();
  out.leaf_14_ecx &= some() | (random() % 2 == 0 ? 1U : 4U);
  out.leaf_14_1_eax = (some() & 0xffff'0000) | static_cast<std::uint32_t>(random() % 5);
  out.leaf_14_1_ebx = some();
  out.physical_bits = static_cast<std::uint8_t>(36 + random() % 17);
  out.linear_bits = random() % 4 == 0 ? 57 : 48;
  return out;
}

inline std::uint64_t random_address(std::mt19937_64& random) {
  const std::uint64_t address = random() % 3 == 0 ? random() : random() >> 18;
  return random() % 2 == 0 ? address : ~address;
}

inline RegisterValues random_values(std::mt19937_64& random, const Capabilities& capabilities) {
  RegisterValues values;
  values.ctl = random() & random();
  if (random() % 4 != 0) {
    // Without reserved bits, mostly with supported values.
    values.ctl &= 0x0180'2222'8f78'3fffULL | (random() % 2 == 0 ? 0x3'c000ULL : 0);
    if (random() % 2 == 0) values.ctl &= ~0x0000'ffffULL << 32;
    if (random() % 2 == 0) values.ctl &= ~0x0f78'0000ULL;
  }
  if (random() % 4 == 0) values.status = random() % 3 == 0 ? random() : random() & 0x0001'ffff'0000'00f7ULL;
  values.output_base =
      (random() >> (random() % 2 == 0 ? 30 : 12)) & ~(random() % 8 == 0 ? 0x3fULL : 0xfffULL);
  if (random() % 2 == 0) {
    const std::uint64_t mask = (std::uint64_t{128} << random() % 26) - 1;
    values.output_mask_ptrs = mask;
    if (random() % 4 != 0) values.output_base &= ~mask;
    if (random() % 4 != 0) values.output_mask_ptrs |= (random() & mask) << 32;
  } else {
    values.output_mask_ptrs = random() % 4 == 0 ? random() | 0x7f : 0x7f;
  }
  values.output_base &= random() % 8 == 0 ? ~0ULL : (std::uint64_t{1} << capabilities.physical_bits) - 1;
  values.cr3_match = random() & ~(random() % 4 == 0 ? 0ULL : 0x1fULL);
  for (std::uint64_t& address : values.addr) address = random_address(random);
  return values;
}

}  // namespace ptkit::trace_unit::msr::tests
