#include "flow/events/context.h"

#include <algorithm>
#include <limits>

#include "ptkit/rtit_regs.h"
#include "trace/branch_record.h"

namespace ptkit::flow {
namespace {

constexpr std::size_t kSwitchesAhead = 64;  // switches that are searched for page tables that become active

// Half of the MTC period of 256 ticks, in TSC ticks; if the period is unknown, of the longest one.
std::uint64_t half_round(const trace::Clock& clock) {
  constexpr unsigned kMostPeriod = 15;  // IA32_RTIT_CTL.MTCFreq
  constexpr std::uint64_t kHalf = 128;  // MTC has 8 bits
  if (!clock.mtc_period_known || clock.mtc_period > kMostPeriod || clock.tsc_ctc_numerator == 0 ||
      clock.tsc_ctc_denominator == 0)
    return std::numeric_limits<std::uint64_t>::max();
  return (kHalf * clock.tsc_ctc_numerator << clock.mtc_period) / clock.tsc_ctc_denominator;
}

}  // namespace

ContextTracker::ContextTracker(const trace::Stream& stream, const code::image::Image& image,
                               time::TimeTrack* track, FlowSink& sink, Walker& walker)
    : stream_(stream), image_(image), track_(track), sink_(sink), walker_(walker) {
  state_.thread.space = stream.space;
  state_.thread.cpu = stream.cpu;
  state_.thread.pid = stream.pid;
  state_.thread.tid = stream.tid;
  const trace::Configuration& configuration = image.bundle().configuration;
  const bool kernel = (configuration.rtit_ctl >> PT_CTL_OS & 1U) != 0;
  has_pips_ = configuration.rtit_ctl_known && kernel;
  user_only_ = configuration.rtit_ctl_known && !kernel;
  const auto& spaces = image.bundle().spaces;
  page_tables_known_ =
      std::any_of(spaces.begin(), spaces.end(), [](const trace::Space& one) { return one.cr3_known; });
  stopped_ticks_ = half_round(configuration.clock);
  follows_time_ = track != nullptr && changes_with_time(image.bundle(), stream);
  find_switch_at();
  look_up_code();
}

void ContextTracker::start() { emit_row(0); }

void ContextTracker::set_state(const ContextState& state, std::uint64_t offset) {
  state_ = state;
  find_switch_at();
  look_up_code();
  state_.thread.offset = offset;
  sink_.on_continued(state_.thread);
}

void ContextTracker::emit_row(std::uint64_t offset) {
  state_.thread.offset = offset;
  sink_.on_context(state_.thread);
}

void ContextTracker::look_up_code() {
  walker_.set_code(image_.view(state_.thread.space, state_.tsc), state_.mode);
}

void ContextTracker::set_mode(code::insn::ExecMode mode) {
  if (mode == state_.mode) return;
  state_.mode = mode;
  look_up_code();
}

void ContextTracker::set_cr3(std::uint64_t offset, std::uint64_t cr3) {
  // Without recorded context switches, only CR3 gives the process. A CR3 of no known process then means an
  // unknown process, if the CR3 of some process is known; otherwise the process stays.
  if (stream_.switches.empty())
    set_space(offset, image_.space_of_cr3(cr3, page_tables_known_ ? stream_.space : state_.thread.space));
  // Switches by offset are exact. PIPs give changes of page tables without a switch.
  else if (stream_.switches_by_offset)
    set_space(offset, image_.space_of_cr3(cr3, state_.thread.space));
  else if (has_pips_)
    switch_by_cr3(offset, cr3);
  // Otherwise only the recorder's context switches, by time, are used. They are better than CR3: kernel and
  // user code of one process may have different page tables.
}

void ContextTracker::set_space(std::uint64_t offset, trace::SpaceId space) {
  if (space == state_.thread.space) return;
  state_.thread.space = space;
  const auto& spaces = image_.bundle().spaces;
  const std::int64_t pid = space < spaces.size() ? spaces[space].pid : trace::kNoId;
  const bool same_process = pid == state_.thread.pid && (pid != trace::kNoId || !stream_.switches_by_offset);
  if (!same_process) state_.thread.tid = trace::kNoId;
  state_.thread.pid = pid;
  look_up_code();
  emit_row(offset);
}

bool ContextTracker::page_tables_known(trace::SpaceId space) const {
  const auto& spaces = image_.bundle().spaces;
  return has_pips_ && space < spaces.size() && spaces[space].cr3_known;
}

// The PIP gives the exact offset of a change of page tables. The recorder's context switches give the thread:
// that of the next switch to an address space with this CR3. The recorder's times are a little early (the
// scheduler), or late (exec(): the kernel uses the new page tables before it records exec()). A switch that
// is certainly later than the PIP gives its address space only.
void ContextTracker::switch_by_cr3(std::uint64_t offset, std::uint64_t cr3) {
  const auto& spaces = image_.bundle().spaces;
  const auto has = [&](trace::SpaceId space) {
    return space < spaces.size() && code::image::has_cr3(spaces[space], cr3);
  };
  if (has(state_.thread.space)) return;
  const time::TimeRange now = track_ != nullptr ? track_->at(offset, offset) : time::TimeRange{};
  const auto& switches = stream_.switches;
  const std::size_t end = std::min(switches.size(), state_.next_switch + kSwitchesAhead);
  for (std::size_t i = state_.next_switch; i < end; ++i) {
    if (!has(switches[i].space)) continue;
    if (!now.known || switches[i].tsc > now.tsc + now.error) return set_space(offset, switches[i].space);
    take_switch(switches[i]);
    state_.next_switch = i + 1;
    look_up_code();
    return emit_row(offset);
  }
  set_space(offset, image_.space_of_cr3(cr3, state_.thread.space));
}

void ContextTracker::take_switch(const trace::Switch& to) {
  state_.thread.space = to.space;
  state_.thread.pid = to.pid;
  state_.thread.tid = to.tid;
}

void ContextTracker::find_switch_at() noexcept {
  const bool more = stream_.switches_by_offset && state_.next_switch < stream_.switches.size();
  switch_at_ = more ? stream_.switches[state_.next_switch].offset : kNever;
  // Branch records are counted.
  if (more && stream_.kind == trace::StreamKind::BRANCH_RECORDS)
    switch_at_ = trace::record_number(switch_at_);
}

void ContextTracker::switch_by_offset(std::uint64_t offset) {
  while (switch_at_ <= offset) {
    take_switch(stream_.switches[state_.next_switch++]);
    find_switch_at();
  }
  look_up_code();
  emit_row(offset);
}

std::uint64_t ContextTracker::unchanged_until(std::uint64_t offset) {
  std::uint64_t tsc = walker_.view().valid_to();
  if (!stream_.switches_by_offset && state_.next_switch < stream_.switches.size())
    tsc = std::min(tsc, stream_.switches[state_.next_switch].tsc);
  if (offset < unchanged_end_ && tsc == unchanged_tsc_) return unchanged_end_;
  unchanged_tsc_ = tsc;
  unchanged_end_ = track_->all_before_until(offset, tsc);
  return unchanged_end_;
}

void ContextTracker::follow_time(std::uint64_t offset, bool on) {
  const time::TimeRange now = track_->at(offset, offset);
  if (!now.known) return;
  // Later code is not older than this.
  state_.tsc = now.tsc;
  // Switches happen while packets of a user-only trace are disabled, so packets before and after a switch are
  // far apart. Where packets are enabled, a possible switch is still to come. Where only TSC packets give the
  // time, they come right before TIP.PGE; otherwise the middle of the interval is the best single estimate.
  // If whole MTC wraps are missing, the clocks stopped, and a TSC packet gives the time when they run again.
  const bool earliest =
      now.source == time::TimeSource::TSC || (user_only_ && on) || now.error >= stopped_ticks_;
  const std::uint64_t estimate = earliest ? now.tsc : now.tsc + now.error / 2;
  bool switched = false;
  while (!stream_.switches_by_offset && state_.next_switch < stream_.switches.size() &&
         stream_.switches[state_.next_switch].tsc <= estimate) {
    const trace::Switch& to = stream_.switches[state_.next_switch];
    // A PIP will give the offset of this switch. If the PIP was lost, the switch is applied once its time has
    // certainly passed.
    if (to.tsc > now.tsc && to.space != state_.thread.space && page_tables_known(to.space)) break;
    ++state_.next_switch;
    take_switch(to);
    switched = true;
  }
  const code::image::CodeView& view = walker_.view();
  if (switched || state_.tsc < view.valid_from() || state_.tsc >= view.valid_to()) look_up_code();
  if (switched) emit_row(offset);
}

bool changes_with_time(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept {
  if (!stream.switches.empty() && !stream.switches_by_offset) return true;
  return std::any_of(bundle.code.begin(), bundle.code.end(), [](const trace::CodeRegion& region) {
    return region.tsc_from != trace::kTscMin || region.tsc_to != trace::kTscMax;
  });
}

}  // namespace ptkit::flow
