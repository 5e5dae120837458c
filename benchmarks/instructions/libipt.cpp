// Every instruction: libipt's instruction decoder over file sections.
#include "common/contest.h"
#include "common/library.h"

namespace ptkit::bench {
namespace {

template <bool kDigest>
Outcome decode(const trace::TraceBundle& bundle) {
  const pt_config config = library_config(bundle);
  const std::unique_ptr<pt_insn_decoder, void (*)(pt_insn_decoder*)> decoder(pt_insn_alloc_decoder(&config),
                                                                             pt_insn_free_decoder);
  Outcome outcome;
  Digest digest;
  if (!sections_of(bundle).add_to(pt_insn_get_image(decoder.get()))) ++outcome.errors;
  int status = pt_insn_sync_forward(decoder.get());
  while (status != -pte_eos) {
    while (status >= 0 && (status & pts_event_pending) != 0) {
      pt_event event;
      status = pt_insn_event(decoder.get(), &event, sizeof(event));
    }
    if (status >= 0 && (status & pts_eos) != 0) break;
    if (status >= 0) {
      pt_insn insn;
      status = pt_insn_next(decoder.get(), &insn, sizeof(insn));
      if (status == -pte_event_ignored) {
        status = pts_event_pending;
        continue;
      }
      if (insn.iclass != ptic_error) {
        ++outcome.rows;
        outcome.sum += insn.ip;
        if constexpr (kDigest) digest.add(insn.ip);
      }
    }
    if (status >= 0 || status == -pte_eos) continue;
    ++outcome.errors;
    status = pt_insn_sync_forward(decoder.get());
  }
  if constexpr (kDigest) outcome.digest = digest.value();
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::decode<false>, ptkit::bench::decode<true>});
}
