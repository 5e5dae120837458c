// Every block: libipt's block decoder over file sections.
#include "common/contest.h"
#include "common/library.h"
#include "insn/insn.h"

namespace ptkit::bench {
namespace {

insn::ExecMode mode_of(const pt_block& block) noexcept {
  switch (block.mode) {
    case ptem_16bit:
      return insn::ExecMode::BITS16;
    case ptem_32bit:
      return insn::ExecMode::BITS32;
    default:
      return insn::ExecMode::BITS64;
  }
}

// Its blocks go over direct branches: walks the code again to name every instruction.
void expand(const Sections& sections, const pt_block& block, Digest& digest) {
  std::uint64_t ip = block.ip;
  for (std::uint16_t i = 0; i < block.ninsn; ++i) {
    digest.add(ip);
    std::uint8_t bytes[15];
    insn::Insn insn;
    const std::size_t count = sections.read(ip, bytes, sizeof(bytes));
    if (insn::decode(mode_of(block), {bytes, count}, insn) != base::Status::OK) return;
    const bool direct = insn.cls == insn::InsnClass::JUMP || insn.cls == insn::InsnClass::CALL;
    ip = direct ? insn::direct_target(insn, mode_of(block), ip) : insn::next_ip(insn, mode_of(block), ip);
  }
}

template <bool kDigest>
Outcome decode(const trace::TraceBundle& bundle) {
  const Sections& sections = sections_of(bundle);
  const pt_config config = library_config(bundle);
  const std::unique_ptr<pt_block_decoder, void (*)(pt_block_decoder*)> decoder(pt_blk_alloc_decoder(&config),
                                                                               pt_blk_free_decoder);
  Outcome outcome;
  Digest digest;
  if (!sections.add_to(pt_blk_get_image(decoder.get()))) ++outcome.errors;
  int status = pt_blk_sync_forward(decoder.get());
  while (status != -pte_eos) {
    while (status >= 0 && (status & pts_event_pending) != 0) {
      pt_event event;
      status = pt_blk_event(decoder.get(), &event, sizeof(event));
    }
    if (status >= 0 && (status & pts_eos) != 0) break;
    if (status >= 0) {
      pt_block block;
      status = pt_blk_next(decoder.get(), &block, sizeof(block));
      outcome.rows += block.ninsn;
      outcome.sum += block.ninsn;
      if constexpr (kDigest) expand(sections, block, digest);
    }
    if (status >= 0 || status == -pte_eos) continue;
    ++outcome.errors;
    status = pt_blk_sync_forward(decoder.get());
  }
  if constexpr (kDigest) outcome.digest = digest.value();
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::decode<false>, ptkit::bench::decode<true>});
}
