// Instruction decoding: the first byte chooses the mode.
#include <cstdlib>

#include "code/insn/insn.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit;
  if (size == 0) return 0;
  constexpr code::insn::ExecMode kModes[] = {code::insn::ExecMode::BITS64, code::insn::ExecMode::BITS32,
                                             code::insn::ExecMode::BITS16, code::insn::ExecMode::UNKNOWN};
  const code::insn::ExecMode mode = kModes[data[0] % 4];
  const base::Bytes code(data + 1, size - 1);
  code::insn::Insn decoded;
  const base::Status status = code::insn::decode(mode, code, decoded);
  // What the quick decoder answers is the exact answer.
  code::insn::Insn exact;
  if (status != code::insn::decode_exactly(mode, code, exact)) std::abort();
  if (decoded.size != exact.size || decoded.cls != exact.cls || decoded.kind != exact.kind ||
      decoded.rep != exact.rep || decoded.target_bits != exact.target_bits ||
      decoded.displacement != exact.displacement || decoded.absolute != exact.absolute) {
    std::abort();
  }
  const bool is_bad = code::insn::disassemble(mode, code, 0x1000) == "(bad)";
  if (status != base::Status::OK) return is_bad ? 0 : (std::abort(), 0);
  if (is_bad || decoded.size == 0 || decoded.size > 15 || decoded.size > code.size()) std::abort();
  // What follows an instruction does not change it.
  code::insn::Insn alone;
  if (code::insn::decode(mode, code.first(decoded.size), alone) != base::Status::OK) std::abort();
  if (alone.size != decoded.size || alone.cls != decoded.cls || alone.kind != decoded.kind) std::abort();
  (void)code::insn::direct_target(decoded, mode, ~std::uint64_t{0});
  return 0;
}
