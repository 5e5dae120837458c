// The machine around a trace unit.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace ptkit::ptmodel {

class Platform {
 public:
  virtual ~Platform() = default;
  // Eight bytes of physical memory, little-endian: an entry of a ToPA table. `address` is a multiple of 8.
  // Where there is no memory, all ones.
  virtual std::uint64_t read_physical(std::uint64_t address) = 0;
  // Trace bytes; never across the end of a region, but across pages.
  virtual void write_physical(std::uint64_t address, base::Bytes bytes) = 0;
  // A ToPA region with INT was filled: set bit 55 of IA32_PERF_GLOBAL_STATUS and raise the local APIC's
  // performance interrupt. The unit does not wait for anything before it calls again.
  virtual void topa_pmi() = 0;
  // Output to the trace transport subsystem (FabricEn).
  virtual void write_transport(base::Bytes bytes) { static_cast<void>(bytes); }
};

}  // namespace ptkit::ptmodel
