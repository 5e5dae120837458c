// CPU errata by name, applied by CPU model.
#pragma once

#include "trace/bundle.h"

namespace ptkit::packet {

// PT_ERRATUM(flag, name, what the processor does, what a decoder does about it). The names are Intel's, from
// the specification updates; one erratum has a name per product, and the one in use here is the one that is
// known best.
struct Errata {
#define PT_ERRATUM(flag, name, what, remedy) bool flag = false;
#include "packet/errata.def"
#undef PT_ERRATUM

  [[nodiscard]] bool operator==(const Errata&) const noexcept = default;
};

// Whether the table has this model.
[[nodiscard]] bool errata_known(const trace::Cpu& cpu) noexcept;

// The errata of this model. A CPU that is not known, or whose model the table does not have, gets the
// superset: no workaround does anything before the stream shows a pattern that a sound processor does not
// make (errata.def tells how sure that is).
[[nodiscard]] Errata errata_for(const trace::Cpu& cpu) noexcept;

}  // namespace ptkit::packet
