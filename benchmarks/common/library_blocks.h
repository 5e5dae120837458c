// libipt's block decoder over file sections, from PSB to PSB.
#pragma once

#include <memory>

#include "common/contest.h"
#include "common/library.h"

namespace ptkit::bench {

// Calls `take(decoder, block)` for each block and returns how many errors there were.
template <typename Take>
std::uint64_t decode_library_blocks(const trace::TraceBundle& bundle, const Take& take) {
  const pt_config config = library_config(bundle);
  const std::unique_ptr<pt_block_decoder, void (*)(pt_block_decoder*)> decoder(pt_blk_alloc_decoder(&config),
                                                                               pt_blk_free_decoder);
  std::uint64_t errors = 0;
  if (!sections_of(bundle).add_to(pt_blk_get_image(decoder.get()))) ++errors;
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
      take(decoder.get(), block);
    }
    if (status >= 0 || status == -pte_eos) continue;
    ++errors;
    status = pt_blk_sync_forward(decoder.get());
  }
  return errors;
}

}  // namespace ptkit::bench
