// CPU errata by name, applied by CPU model.
#pragma once

#include "trace/bundle.h"

namespace ptkit::packet {

// PT_ERRATUM(flag, name, behaviour of the processor, workaround of the decoder). The names are Intel's, from
// the specification updates. An erratum has a name per product; the best known one is used here.
struct Errata {
#define PT_ERRATUM(flag, name, what, remedy) bool flag = false;
#include "packet/errata.def"
#undef PT_ERRATUM

  [[nodiscard]] bool operator==(const Errata&) const noexcept = default;
};

// True if the table has this model.
[[nodiscard]] bool errata_known(const trace::Cpu& cpu) noexcept;

// The errata of this model. An unknown CPU, or a model that the table does not have, gets all errata. No
// workaround has an effect unless the stream has a pattern that a processor without the erratum does not
// generate (errata.def says how certain that is).
[[nodiscard]] Errata errata_for(const trace::Cpu& cpu) noexcept;

}  // namespace ptkit::packet
