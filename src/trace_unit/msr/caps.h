// Converts capabilities and register values to the structs of kernel/common.
#pragma once

#include "common/pt_check.h"
#include "trace_unit/msr/capabilities.h"
#include "trace_unit/msr/config.h"

namespace ptkit::trace_unit::msr {

[[nodiscard]] inline pt_caps caps_of(const Capabilities& capabilities) noexcept {
  return {.leaf_14_ebx = capabilities.leaf_14_ebx,
          .leaf_14_ecx = capabilities.leaf_14_ecx,
          .leaf_14_1_eax = capabilities.leaf_14_1_eax,
          .leaf_14_1_ebx = capabilities.leaf_14_1_ebx,
          .physical_bits = capabilities.physical_bits,
          .linear_bits = capabilities.linear_bits,
          .needs_branch_en = capabilities.needs_branch_en};
}

[[nodiscard]] inline pt_state state_of(const RegisterValues& values) noexcept {
  pt_state state{};
  state.ctl = values.ctl;
  state.status = values.status;
  state.output_base = values.output_base;
  state.output_mask_ptrs = values.output_mask_ptrs;
  state.cr3_match = values.cr3_match;
  for (std::size_t i = 0; i < values.addr.size(); ++i) state.addr[i] = values.addr[i];
  return state;
}

}  // namespace ptkit::trace_unit::msr
