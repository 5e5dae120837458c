// Every block with its time: libipt's block decoder over file sections.
#include "common/library_blocks.h"

namespace ptkit::bench {
namespace {

Outcome run(const trace::TraceBundle& bundle) {
  Outcome outcome;
  std::uint64_t last = 0;
  outcome.errors = decode_library_blocks(bundle, [&](pt_block_decoder* decoder, const pt_block& block) {
    std::uint64_t tsc = 0;
    std::uint32_t lost_mtc = 0;
    std::uint32_t lost_cyc = 0;
    if (pt_blk_time(decoder, &tsc, &lost_mtc, &lost_cyc) >= 0) last = tsc;
    outcome.rows += block.ninsn;
    outcome.sum += last;
  });
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::run, ptkit::bench::run});
}
