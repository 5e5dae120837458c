// Converts a Zydis instruction to ptkit's classes and kinds.
#pragma once

#include <Zydis/Zydis.h>

#include "code/insn/insn.h"

namespace ptkit::code::insn {

// Sets all members of `out` except `size`, from an instruction decoded in Zydis' minimal mode.
void classify(const ZydisDecodedInstruction& raw, ExecMode mode, Insn& out) noexcept;

// Zydis' decoder for a mode, or null for ExecMode::UNKNOWN.
[[nodiscard]] const ZydisDecoder* zydis_decoder(ExecMode mode, bool minimal) noexcept;

}  // namespace ptkit::code::insn
