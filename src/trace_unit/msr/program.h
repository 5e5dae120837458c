// The exact sequence of register accesses: runs kernel/common with recording operations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace_unit/msr/capabilities.h"
#include "trace_unit/msr/config.h"

namespace ptkit::trace_unit::msr {

enum class Access : std::uint8_t {
  READ,     // RDMSR
  WRITE,    // WRMSR
  BARRIER,  // a store fence
  MEMORY,   // eight bytes of memory; four in a DS area of a 32-bit system
  APIC,     // a write of a register of the local APIC, by its offset
};

struct MsrStep {
  Access access = Access::WRITE;
  std::uint64_t address = 0;  // number of a register, address in memory, or offset in the local APIC
  std::uint64_t value = 0;    // written value
  std::string words;

  bool operator==(const MsrStep&) const = default;
};

using MsrProgram = std::vector<MsrStep>;

enum class Sequence : std::uint8_t { START, PAUSE, RESUME, STOP, SWITCH, INTERRUPT };

// START loads `values`. PAUSE, RESUME, STOP and INTERRUPT apply to a context that was started with `values`.
// SWITCH changes from that context to `next`. TraceEn in the values is ignored.
[[nodiscard]] MsrProgram program(Sequence sequence, const RegisterValues& values,
                                 const RegisterValues& next = {});

// The output registers, and the memory to write before tracing.
struct OutputPlan {
  std::uint64_t base = 0;
  std::uint64_t mask_ptrs = 0;
  MsrProgram memory;  // entries of ToPA tables; with INT, the local APIC's entry for the interrupt
  std::uint64_t bytes = 0;
};

// A range of physical memory.
struct Region {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};

struct TopaOptions {
  std::uint64_t interrupt_bytes = 0;  // INT after each so many bytes, at least 4 KiB; 0: no INT
  bool ring = true;                   // false: STOP at the end
  std::uint8_t largest_size = 15;     // maximum region size: 4 KiB << n
};

[[nodiscard]] base::Result<OutputPlan> plan_single_range(const Region& region);
// As many adjacent tables of 4 KiB from `table` on as needed.
[[nodiscard]] base::Result<OutputPlan> plan_topa(std::uint64_t table, std::span<const Region> regions,
                                                 const TopaOptions& options,
                                                 const Capabilities& capabilities);

// Branch Trace Store. Addresses are linear.
struct BtsOptions {
  std::uint64_t area = 0;  // DS buffer management area
  Region buffer;
  std::uint64_t reserve = 0;  // records after the interrupt threshold; 0: a ring without interrupt
  bool os = true;
  bool user = true;
  bool bits32 = false;    // the DS area and the records of a 32-bit system: words of 4 bytes
  bool netburst = false;  // bits of MSR_DEBUGCTLA
};

struct BtsPlan {
  MsrProgram memory;     // the area's fields; with `reserve`, the local APIC's entry
  MsrProgram start;      // assumes that DEBUGCTL and DS_AREA were 0
  MsrProgram interrupt;  // empty without `reserve`
  MsrProgram stop;
};

[[nodiscard]] base::Result<BtsPlan> plan_bts(const BtsOptions& options);

}  // namespace ptkit::trace_unit::msr
