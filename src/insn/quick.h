// Sizes and branch classes of the common instructions, from tables: several times as fast as Zydis.
#pragma once

#include "insn/insn.h"

namespace ptkit::insn {

// Decodes an instruction that is certain: valid by its encoding alone, of the common maps, whole in `code`.
// False, with `out` unchanged: decode_exactly() has to judge. True: `out` is as that gives it.
[[nodiscard]] bool decode_quick(ExecMode mode, base::Bytes code, Insn& out) noexcept;

}  // namespace ptkit::insn
