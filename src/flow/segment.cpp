#include "flow/segment.h"

#include <algorithm>

namespace ptkit::flow {

bool changes_with_time(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept {
  if (!stream.switches.empty() && !stream.switches_by_offset) return true;
  return std::any_of(bundle.code.begin(), bundle.code.end(), [](const trace::CodeRegion& region) {
    return region.tsc_from != trace::kTscMin || region.tsc_to != trace::kTscMax;
  });
}

bool can_begin_ahead(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept {
  if (changes_with_time(bundle, stream)) return false;
  return std::none_of(bundle.code.begin(), bundle.code.end(), [](const trace::CodeRegion& region) {
    return CallStack::may_hold_guess(region.address, region.size);
  });
}

SegmentDecoder::SegmentDecoder(const MakeDecoder& make, const trace::Stream& stream, FlowSink& sink,
                               std::uint64_t psb, std::uint64_t next_psb, const Checkpoint& likely)
    : make_(make), sink_(sink), next_psb_(next_psb) {
  Checkpoint from = likely;
  from.begin_at_psb(psb, stream);
  decoder_ = make_(silent_, &from, false);
  decoder_->stop_behind_psb_after(psb);
}

bool SegmentDecoder::run() { return learning_ ? learn() : decode(); }

bool SegmentDecoder::learn() {
  // Whatever stands at `psb`: without another PSB+ soon after it there is nothing to gain.
  if (decoder_->run()) return decoder_->position() < next_psb_;
  if (!decoder_->stopped() || decoder_->position() > next_psb_) return false;
  result_.begin = decoder_->checkpoint();
  decoder_.reset();  // gives back what it knows of the code
  decoder_ = make_(sink_, &result_.begin, true);
  if (next_psb_ != kNoPsb) decoder_->stop_behind_psb_after(next_psb_);
  learning_ = false;
  return true;
}

bool SegmentDecoder::decode() {
  const bool more = decoder_->run();
  result_.relied = decoder_->reliance();
  if (more && !result_.relied.kept_returns) return true;
  result_.usable = !more && !result_.relied.kept_returns;
  result_.at_stream_end = !decoder_->stopped();
  if (result_.usable) result_.end = decoder_->checkpoint();
  decoder_.reset();
  return false;
}

void SegmentDecoder::stop_soon() noexcept {
  if (!learning_ && decoder_ != nullptr) decoder_->stop_behind_psb_after(decoder_->position());
}

}  // namespace ptkit::flow
