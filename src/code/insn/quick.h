// A table-driven decoder for the sizes and branch classes of common instructions. Several times as fast as
// Zydis.
#pragma once

#include "code/insn/insn.h"

namespace ptkit::code::insn {

// Decodes an instruction that is certain: complete in `code`, in a common opcode map, and valid by its
// encoding alone. Returns true with the result of decode_exactly() in `out`. Returns false and leaves `out`
// unchanged if decode_exactly() is needed.
[[nodiscard]] bool decode_quick(ExecMode mode, base::Bytes code, Insn& out) noexcept;

}  // namespace ptkit::code::insn
