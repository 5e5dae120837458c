// Prints addresses of instructions as libipt's `ptxed --no-inst` does: libipt's instruction decoder, one
// printf for each line.
#include <cinttypes>
#include <cstdio>

#include "common/library.h"
#include "formats/registry.h"

namespace ptkit::bench {
namespace {

int run(const char* path) {
  auto opened = formats::open(path, {});
  if (!opened.ok()) return 2;
  const pt_config config = library_config(opened.value());
  pt_insn_decoder* const decoder = pt_insn_alloc_decoder(&config);
  if (!sections_of(opened.value()).add_to(pt_insn_get_image(decoder))) return 2;
  int status = pt_insn_sync_forward(decoder);
  while (status != -pte_eos) {
    while (status >= 0 && (status & pts_event_pending) != 0) {
      pt_event event;
      status = pt_insn_event(decoder, &event, sizeof event);
    }
    if (status >= 0 && (status & pts_eos) != 0) break;
    if (status >= 0) {
      pt_insn insn;
      status = pt_insn_next(decoder, &insn, sizeof insn);
      if (insn.iclass != ptic_error) std::printf("%016" PRIx64 "\n", insn.ip);
    }
    if (status >= 0 || status == -pte_eos) continue;
    std::printf("[%s]\n", pt_errstr(pt_errcode(status)));
    status = pt_insn_sync_forward(decoder);
  }
  pt_insn_free_decoder(decoder);
  return 0;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) { return argc == 2 ? ptkit::bench::run(argv[1]) : 2; }
