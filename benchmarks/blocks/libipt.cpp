// Every block: libipt's block decoder over file sections.
#include "code/insn/insn.h"
#include "common/library_blocks.h"

namespace ptkit::bench {
namespace {

code::insn::ExecMode mode_of(const pt_block& block) noexcept {
  switch (block.mode) {
    case ptem_16bit:
      return code::insn::ExecMode::BITS16;
    case ptem_32bit:
      return code::insn::ExecMode::BITS32;
    default:
      return code::insn::ExecMode::BITS64;
  }
}

// libipt's blocks continue over direct branches. Walks the code again to digest every instruction.
void expand(const Sections& sections, const pt_block& block, Digest& digest) {
  std::uint64_t ip = block.ip;
  for (std::uint16_t i = 0; i < block.ninsn; ++i) {
    digest.add(ip);
    std::uint8_t bytes[15];
    code::insn::Insn insn;
    const std::size_t count = sections.read(ip, bytes, sizeof(bytes));
    if (code::insn::decode(mode_of(block), {bytes, count}, insn) != base::Status::OK) return;
    const bool direct = insn.cls == code::insn::InsnClass::JUMP || insn.cls == code::insn::InsnClass::CALL;
    ip = direct ? code::insn::direct_target(insn, mode_of(block), ip)
                : code::insn::next_ip(insn, mode_of(block), ip);
  }
}

template <bool kDigest>
Outcome decode(const trace::TraceBundle& bundle) {
  const Sections& sections = sections_of(bundle);
  Outcome outcome;
  Digest digest;
  outcome.errors = decode_library_blocks(bundle, [&](pt_block_decoder*, const pt_block& block) {
    outcome.rows += block.ninsn;
    outcome.sum += block.ninsn;
    if constexpr (kDigest) expand(sections, block, digest);
  });
  if constexpr (kDigest) outcome.digest = digest.value();
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::decode<false>, ptkit::bench::decode<true>});
}
