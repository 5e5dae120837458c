#include <algorithm>
#include <limits>

#include "trace_unit/generator/generator.h"

namespace ptkit::trace_unit::generator {

bool Generator::fast_path_possible() const noexcept {
  const bool plain = config.tnt && !config.use_tnt_64 && !config.deferred_tips && !config.cyc_of_first_bit;
  return plain && enables.packet() && psb_held_ && !sequence_open_ && !mode_due() && writer.last_ip_known();
}

bool Generator::begin_fast_path(FastEncoder& fast) {
  if (!fast_path_possible()) return false;
  fast.compresses_ = config.return_compression;
  fast.tip_ret_ = config.tip_ret;
  fast.pending_ = {};
  while (!tnt_.empty()) fast.pending_.add(tnt_.take(1) != 0);
  fast.out_ = fast_bytes_.data();
  fast.begin_ = fast.out_;
  fast.full_at_ = fast.out_ + (kFastBytes - FastEncoder::kMargin);
  // Pending bits may become bytes. Near the next PSB, the slow path decides whether it is due.
  constexpr std::uint64_t kPending = FastEncoder::kGroup / TntBuffer::kShortBits + FastEncoder::kSteps;
  const std::uint64_t used = writer.bytes_written() - psb_start_ + kPending;
  const std::uint64_t left = config.psb_bytes > used ? config.psb_bytes - used : 0;
  fast.busy_at_ = std::min(fast.full_at_, fast.begin_ + std::min<std::uint64_t>(left, kFastBytes));
  fast.last_ip_ = writer.last_ip();
  fast.calls_ = &calls;
  fast.now_ = timing_.now().tsc;
  fast.mtc_tsc_ = config.mtc ? timing_.next_mtc_tsc() : std::numeric_limits<std::uint64_t>::max();
  fast.stop_ticks_ = timing_.stop_ticks();
  fast.cyc_ = config.cyc && !cyc_held_;
  fast.cyc_tsc_ = fast.now_ - timing_.cycles_untold();
  fast.cyc_threshold_ = timing_.cyc_threshold();
  return true;
}

void Generator::end_fast_path(FastEncoder& fast) {
  fast.put_whole(fast.pending_);
  writer.append(base::Bytes(fast_bytes_.data(), fast.bytes()));
  writer.set_last_ip(fast.last_ip_);
  for (unsigned i = fast.pending_.count(); i-- > 0;) tnt_.push((fast.pending_.bits >> i & 1) != 0);
  const Instant now = timing_.now();
  timing_.move_to({fast.now_, now.cycles + (fast.now_ - now.tsc)});
  timing_.set_cycles_untold(fast.now_ - fast.cyc_tsc_);
  cyc_held_ = !fast.cyc_;
  next_instruction_unknown();
}

}  // namespace ptkit::trace_unit::generator
