// Instruction decoding: the first byte chooses the mode.
#include <cstdlib>

#include "insn/insn.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit;
  if (size == 0) return 0;
  constexpr insn::ExecMode kModes[] = {insn::ExecMode::BITS64, insn::ExecMode::BITS32, insn::ExecMode::BITS16,
                                       insn::ExecMode::UNKNOWN};
  const insn::ExecMode mode = kModes[data[0] % 4];
  const base::Bytes code(data + 1, size - 1);
  insn::Insn decoded;
  const base::Status status = insn::decode(mode, code, decoded);
  // What the quick decoder answers is the exact answer.
  insn::Insn exact;
  if (status != insn::decode_exactly(mode, code, exact)) std::abort();
  if (decoded.size != exact.size || decoded.cls != exact.cls || decoded.kind != exact.kind ||
      decoded.rep != exact.rep || decoded.target_bits != exact.target_bits ||
      decoded.displacement != exact.displacement || decoded.absolute != exact.absolute) {
    std::abort();
  }
  const bool is_bad = insn::disassemble(mode, code, 0x1000) == "(bad)";
  if (status != base::Status::OK) return is_bad ? 0 : (std::abort(), 0);
  if (is_bad || decoded.size == 0 || decoded.size > 15 || decoded.size > code.size()) std::abort();
  // What follows an instruction does not change it.
  insn::Insn alone;
  if (insn::decode(mode, code.first(decoded.size), alone) != base::Status::OK) std::abort();
  if (alone.size != decoded.size || alone.cls != decoded.cls || alone.kind != decoded.kind) std::abort();
  (void)insn::direct_target(decoded, mode, ~std::uint64_t{0});
  return 0;
}
