#include <algorithm>
#include <limits>

#include "softpt/generator.h"

namespace ptkit::softpt {

bool Generator::lane_fits() const noexcept {
  const bool plain = config.tnt && !config.use_tnt_64 && !config.deferred_tips && !config.cyc_of_first_bit;
  return plain && enables.packet() && psb_held_ && !sequence_open_ && !mode_due() && writer.last_ip_known();
}

bool Generator::lend(Lane& lane) {
  if (!lane_fits()) return false;
  lane.compresses_ = config.return_compression;
  lane.tip_ret_ = config.tip_ret;
  const unsigned count = tnt_.count();
  lane.pending_ = {tnt_.take(count), count};
  lane.out_ = lane_bytes_.data();
  lane.begin_ = lane.out_;
  lane.full_at_ = lane.out_ + (kLaneBytes - Lane::kMargin);
  // Bits that are pending may become bytes: then the unit decides whether a PSB is due.
  constexpr std::uint64_t kPending = Lane::kGroup / TntBuffer::kShortBits + Lane::kSteps;
  const std::uint64_t used = writer.bytes_written() - psb_start_ + kPending;
  const std::uint64_t left = config.psb_bytes > used ? config.psb_bytes - used : 0;
  lane.busy_at_ = std::min(lane.full_at_, lane.begin_ + std::min<std::uint64_t>(left, kLaneBytes));
  lane.last_ip_ = writer.last_ip();
  lane.calls_ = &calls;
  lane.now_ = timing_.now().tsc;
  lane.mtc_tsc_ = config.mtc ? timing_.next_mtc_tsc() : std::numeric_limits<std::uint64_t>::max();
  lane.stop_ticks_ = timing_.stop_ticks();
  lane.cyc_ = config.cyc;
  lane.cyc_told_ = lane.now_ - timing_.cycles_untold();
  lane.cyc_threshold_ = timing_.cyc_threshold();
  return true;
}

void Generator::take_back(Lane& lane) {
  lane.put_whole(lane.pending_);
  writer.append(base::Bytes(lane_bytes_.data(), lane.bytes()));
  writer.set_last_ip(lane.last_ip_);
  for (unsigned i = 0; i < lane.pending_.count; ++i) tnt_.push((lane.pending_.bits >> i & 1) != 0);
  const Instant now = timing_.now();
  timing_.move_to({lane.now_, now.cycles + (lane.now_ - now.tsc)});
  timing_.set_cycles_untold(lane.now_ - lane.cyc_told_);
  next_instruction_unknown();
}

}  // namespace ptkit::softpt
