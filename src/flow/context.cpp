#include "flow/context.h"

#include <algorithm>

#include "flow/segment.h"

namespace ptkit::flow {

ContextTracker::ContextTracker(const trace::Stream& stream, const image::Image& image, time::TimeTrack* track,
                               FlowSink& sink, Walker& walker)
    : stream_(stream), image_(image), track_(track), sink_(sink), walker_(walker) {
  context_.space = stream.space;
  context_.cpu = stream.cpu;
  context_.pid = stream.pid;
  context_.tid = stream.tid;
  follows_time_ = track != nullptr && changes_with_time(image.bundle(), stream);
  see();
}

void ContextTracker::start() { give(0); }

void ContextTracker::give(std::uint64_t offset) {
  context_.offset = offset;
  sink_.on_context(context_);
}

void ContextTracker::see() { walker_.set_code(image_.view(context_.space, tsc_), mode_); }

void ContextTracker::set_mode(insn::ExecMode mode) {
  if (mode == mode_) return;
  mode_ = mode;
  see();
}

void ContextTracker::set_cr3(std::uint64_t offset, std::uint64_t cr3) {
  // Where the recorder says who ran when, that is better than CR3, which kernel and user code of one process
  // may not share.
  if (!stream_.switches.empty()) return;
  const trace::SpaceId space = image_.space_of_cr3(cr3, context_.space);
  if (space == context_.space) return;
  context_.space = space;
  const auto& spaces = image_.bundle().spaces;
  const std::int64_t pid = space < spaces.size() ? spaces[space].pid : trace::kNoId;
  if (pid != context_.pid) context_.tid = trace::kNoId;
  context_.pid = pid;
  see();
  give(offset);
}

std::uint64_t ContextTracker::quiet_until(std::uint64_t offset) {
  std::uint64_t tsc = walker_.view().valid_to();
  if (next_switch_ < stream_.switches.size()) tsc = std::min(tsc, stream_.switches[next_switch_].tsc);
  if (offset < quiet_end_ && tsc == quiet_tsc_) return quiet_end_;
  quiet_tsc_ = tsc;
  quiet_end_ = track_->quiet_until(offset, tsc);
  return quiet_end_;
}

void ContextTracker::follow_time(std::uint64_t offset) {
  const time::TimeRange now = track_->at(offset, offset);
  if (!now.known) return;
  // Code that follows is no older than this.
  tsc_ = now.tsc;
  // Switches happen while packets of a user-only trace are off, so that the packets on both sides of one are
  // apart. Where nothing but TSC packets tell the time, they come right before packets go on; else the middle
  // of the interval is the best single guess.
  const std::uint64_t guess = now.source == time::TimeSource::TSC ? now.tsc : now.tsc + now.error / 2;
  bool switched = false;
  while (next_switch_ < stream_.switches.size() && stream_.switches[next_switch_].tsc <= guess) {
    const trace::Switch& to = stream_.switches[next_switch_++];
    context_.space = to.space;
    context_.pid = to.pid;
    context_.tid = to.tid;
    switched = true;
  }
  const image::CodeView& view = walker_.view();
  if (switched || tsc_ < view.valid_from() || tsc_ >= view.valid_to()) see();
  if (switched) give(offset);
}

}  // namespace ptkit::flow
