// Operations of kernel/common that note each access as a step. For .cpp files of this folder only.
#pragma once

#include <cstdint>
#include <string>

#include "common/pt_ops.h"
#include "trace_unit/msr/program.h"

namespace ptkit::trace_unit::msr {

struct StepRecorder {
  MsrProgram steps;
  bool topa = false;      // the loaded configuration uses ToPA
  bool netburst = false;  // DEBUGCTL is MSR_DEBUGCTLA
  bool starts = false;    // Branch Trace Store starts: it must be off before

  // The recorder must outlive the operations.
  [[nodiscard]] pt_ops ops() noexcept;
};

// The local APIC's entry for the interrupt of tracing: the last write before tracing starts.
[[nodiscard]] MsrStep interrupt_entry();
// Steps at the end of an interrupt's handler: the entry, which the processor masked, and the EOI.
void add_interrupt_end(MsrProgram& steps);

[[nodiscard]] std::string region_text(const Region& region);  // "4096 bytes at 0x1000"

}  // namespace ptkit::trace_unit::msr
