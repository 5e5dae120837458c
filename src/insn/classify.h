// From a Zydis instruction to our classes and kinds.
#pragma once

#include <Zydis/Zydis.h>

#include "insn/insn.h"

namespace ptkit::insn {

// Everything of `out` but its size, from an instruction that was decoded in Zydis' minimal mode.
void classify(const ZydisDecodedInstruction& raw, ExecMode mode, Insn& out) noexcept;

// Zydis' decoder for a mode, or null for ExecMode::UNKNOWN.
[[nodiscard]] const ZydisDecoder* zydis_decoder(ExecMode mode, bool minimal) noexcept;

}  // namespace ptkit::insn
