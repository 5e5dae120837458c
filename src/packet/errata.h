// CPU errata by name, applied by CPU model. An unknown CPU gets all that are harmless elsewhere (the superset).
#pragma once

#include <cstdint>

#include "trace/bundle.h"

namespace ptkit::packet {

struct Errata {
  bool bdm64 = false;   // no TIP.PGE after OVF/TSX abort...: see errata.cpp for each
  bool bdm70 = false;   // PSB+ with a FUP right before TIP.PGE
  bool skd007 = false;  // CYC counter wrong around OVF
  bool skd010 = false;  // FUP missing after OVF
  bool skd022 = false;  // TIP.PGE out of order with VM entry
  bool skl014 = false;  // TIP.PGD without IP after a branch that leaves the filter region
  bool skl168 = false;  // CYC packet too large
  bool skz84 = false;   // TMA/... bogus
  bool apl11 = false;   // BIP/.. order: see errata.cpp
  bool apl12 = false;   // TIP.PGE after OVF
};

// `cpu.known == false` gives the superset.
[[nodiscard]] Errata errata_for(const trace::Cpu& cpu) noexcept;

}  // namespace ptkit::packet
