#include "flow/parallel/segment.h"

#include <algorithm>

namespace ptkit::flow {

bool can_speculate(const trace::TraceBundle& bundle) noexcept {
  return std::none_of(bundle.code.begin(), bundle.code.end(), [](const trace::CodeRegion& region) {
    return CallStack::may_hold_placeholder(region.address, region.size);
  });
}

bool is_valid(const SegmentResult& segment, const FlowState& actual, const time::TimeTrack* track) {
  if (!segment.usable || !equivalent(segment.begin, actual, segment.deps)) return false;
  if (track == nullptr) return true;
  // A PSB+ without a TSC has no state to compare.
  return !segment.begin_times.empty() && segment.begin_times == track->state_at(actual.events.psb);
}

SegmentDecoder::SegmentDecoder(const MakeDecoder& make, const trace::Stream& stream, FlowSink& sink,
                               std::uint64_t psb, std::uint64_t next_psb, const FlowState& predicted,
                               std::unique_ptr<time::TimeTrack> track)
    : make_(make), sink_(sink), next_psb_(next_psb), track_(std::move(track)) {
  FlowState from = predicted;
  from.begin_at_psb(psb, stream);
  decoder_ = make_(discard_, track_.get(), &from, false);
  decoder_->stop_after_psb_above(psb);
}

bool SegmentDecoder::run() { return warming_up_ ? warm_up() : decode(); }

bool SegmentDecoder::warm_up() {
  // Without another PSB+ soon after `psb`, speculation gains nothing.
  if (decoder_->run()) return decoder_->position() < next_psb_;
  if (!decoder_->stopped() || decoder_->position() > next_psb_) return false;
  result_.begin = decoder_->checkpoint();
  if (track_ != nullptr) result_.begin_times = track_->state_at(result_.begin.events.psb);
  decoder_.reset();  // releases its code caches
  decoder_ = make_(sink_, track_.get(), &result_.begin, true);
  if (next_psb_ != kNoPsb) decoder_->stop_after_psb_above(next_psb_);
  warming_up_ = false;
  return true;
}

bool SegmentDecoder::decode() {
  const bool more = decoder_->run();
  result_.deps = decoder_->speculation_deps();
  if (more && !result_.deps.kept_returns) return true;
  result_.usable = !more && !result_.deps.kept_returns;
  result_.at_stream_end = !decoder_->stopped();
  if (result_.usable) result_.end = decoder_->checkpoint();
  decoder_.reset();
  return false;
}

void SegmentDecoder::stop_at_next_psb() noexcept {
  if (!warming_up_ && decoder_ != nullptr) decoder_->stop_after_psb_above(decoder_->position());
}

}  // namespace ptkit::flow
