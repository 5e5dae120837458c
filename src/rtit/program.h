// The exact sequence of register accesses, made by running kernel/common with operations that write down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "rtit/capabilities.h"
#include "rtit/config.h"

namespace ptkit::rtit {

enum class Access : std::uint8_t {
  READ,     // RDMSR
  WRITE,    // WRMSR
  BARRIER,  // a store fence
  MEMORY,   // eight bytes of physical memory
};

struct Step {
  Access access = Access::WRITE;
  std::uint64_t place = 0;  // number of the register, or physical address
  std::uint64_t value = 0;  // that is written
  std::string words;

  bool operator==(const Step&) const = default;
};

using MsrProgram = std::vector<Step>;

enum class Sequence : std::uint8_t { START, PAUSE, RESUME, STOP, SWITCH, INTERRUPT };

// START loads `values`, PAUSE, RESUME, STOP and INTERRUPT are of a context that was started with them, SWITCH
// goes from it to `next`. TraceEn does not matter.
[[nodiscard]] MsrProgram program(Sequence sequence, const RegisterValues& values,
                                 const RegisterValues& next = {});

// Output, and the memory that has to be written before tracing.
struct OutputPlan {
  std::uint64_t base = 0;
  std::uint64_t mask_ptrs = 0;
  MsrProgram memory;  // entries of ToPA tables
  std::uint64_t bytes = 0;
};

// Physical memory.
struct Region {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};

struct TopaOptions {
  std::uint64_t interrupt_bytes = 0;  // INT wherever so many bytes are full, at least 4 KiB; 0: nowhere
  bool ring = true;                   // otherwise STOP at the end
  std::uint8_t largest_size = 15;     // regions of up to 4 KiB << n
};

[[nodiscard]] base::Result<OutputPlan> plan_single_range(const Region& region);
// Tables of 4 KiB each, one behind the other from `table` on, as many as it takes.
[[nodiscard]] base::Result<OutputPlan> plan_topa(std::uint64_t table, std::span<const Region> regions,
                                                 const TopaOptions& options,
                                                 const Capabilities& capabilities);

// Branch Trace Store. Addresses are linear.
struct BtsOptions {
  std::uint64_t area = 0;  // the DS management area
  Region buffer;
  std::uint64_t reserve = 0;  // records behind the interrupt's threshold; 0: no interrupt, a ring
  bool os = true;
  bool user = true;
};

struct BtsPlan {
  MsrProgram memory;  // the area's fields
  MsrProgram start;   // where DEBUGCTL and DS_AREA were 0
  MsrProgram stop;
};

[[nodiscard]] base::Result<BtsPlan> plan_bts(const BtsOptions& options);

}  // namespace ptkit::rtit
