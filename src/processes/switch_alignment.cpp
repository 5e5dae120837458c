#include "processes/switch_alignment.h"

#include <algorithm>
#include <string>

#include "processes/page_tables.h"
#include "processes/switch_survey.h"
#include "ptkit/rtit_regs.h"
#include "trace/warning_codes.h"

namespace ptkit::processes {

namespace {

using trace::SpaceId;
using trace::Switch;

constexpr std::size_t kMostChanges = 16'000'000;  // of all streams together: half a gigabyte of memory
constexpr std::size_t kResidenciesAhead = 64;
// A recorder may date a context switch too early or too late by 1 / kSkewsPerSecond.
constexpr std::uint64_t kSkewsPerSecond = 50'000;
constexpr std::uint64_t kSkewTicks = 1U << 16U;  // if the TSC frequency is not known
constexpr std::uint64_t kMaxSwitchSkews =
    50;  // times max_skew: between the SWITCH OUT and SWITCH IN records of one switch

std::uint64_t later(std::uint64_t tsc, std::uint64_t ticks) {
  return ticks > trace::kTscMax - tsc ? trace::kTscMax : tsc + ticks;
}

// A period in which CR3 has the page tables of one space. Kernel threads in between do not end it.
struct Residency {
  SpaceId space = trace::kAnySpace;
  SpaceId before = trace::kAnySpace;  // earlier owner of these page tables; kAnySpace: not known
  std::uint64_t begin = 0;            // it began after the packet at this offset, or at `offset`
  std::uint64_t offset = 0;           // of the PIP
  std::uint64_t tsc = 0;              // it began in [tsc, tsc + error]
  std::uint64_t error = 0;
  std::uint64_t estimate = 0;
  bool has_switch = false;  // a switch belongs to it
};

// A time in the middle of a value of CR3.
std::uint64_t middle_of(const std::vector<Cr3Change>& changes, std::size_t i) {
  return changes[i].estimate + (changes[i + 1].estimate - changes[i].estimate) / 2;
}

std::vector<Residency> residencies_of(const std::vector<Cr3Change>& changes, const PageTables& tables) {
  std::vector<Residency> residencies;
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    const Cr3Change& one = changes[i];
    if (one.cr3 == 0) continue;
    const SpaceId space = tables.owner(one.cr3, middle_of(changes, i));
    // Page tables without an owner (kernel threads may have some) do not identify the next thread.
    if (space == trace::kAnySpace || (!residencies.empty() && residencies.back().space == space)) continue;
    const Cr3Change& begin = one.in_psb && i != 0 ? changes[i - 1] : one;
    residencies.push_back({.space = space,
                           .before = tables.owner_before(one.cr3, one.tsc),
                           .begin = begin.offset,
                           .offset = one.offset,
                           .tsc = begin.tsc,
                           .error = one.tsc + one.error - begin.tsc,
                           .estimate = one.estimate});
  }
  return residencies;
}

// The first write to CR3 after tracing was off. If the process had these page tables before as well, the
// write is inside a Residency:
//
//   Residency of a  ...............................................
//   tracing         on         | off              | on
//   CR3             a            b, not reported      a (this PIP)
//                              off                on  offset, tsc
struct TraceResume {
  SpaceId space = trace::kAnySpace;
  std::uint64_t begin = 0;  // offset of the TIP.PGD
  std::uint64_t offset = 0;
  std::uint64_t tsc = 0;  // of the PIP: in [tsc, tsc + error]
  std::uint64_t error = 0;
  std::uint64_t off = 0;  // tracing went off at this TSC at the earliest
  std::uint64_t on = 0;   // tracing was on again at this TSC at the latest
};

std::vector<TraceResume> resumes_of(const SwitchSurvey& survey, const PageTables& tables) {
  std::vector<TraceResume> resumes;
  resumes.reserve(survey.resumes.size());
  for (const auto& [change, on] : survey.resumes) {
    if (change + 1 == survey.changes.size()) continue;
    const Cr3Change& one = survey.changes[change];
    const Cr3Change& before = survey.changes[change - 1];
    resumes.push_back({.space = tables.owner(one.cr3, middle_of(survey.changes, change)),
                       .begin = before.offset,
                       .offset = one.offset,
                       .tsc = one.tsc,
                       .error = one.error,
                       .off = before.tsc,
                       .on = on});
  }
  return resumes;
}

// Offsets of PIP packets with page tables without a certain owner. Empty without an UnreportedResume, as the
// offsets are not needed then.
std::vector<std::uint64_t> unknown_cr3_of(const SwitchSurvey& survey, const PageTables& tables) {
  std::vector<std::uint64_t> unknown_cr3;
  if (survey.resumes.empty()) return unknown_cr3;
  for (std::size_t i = 0; i + 1 < survey.changes.size(); ++i) {
    const Cr3Change& one = survey.changes[i];
    if (one.cr3 != 0 && !tables.is_certain(one.cr3, middle_of(survey.changes, i)))
      unknown_cr3.push_back(one.offset);
  }
  return unknown_cr3;
}

// By switch: whether its task has user code. The idle task and kernel threads have none. They have a space
// without code, or the space of another process.
std::vector<bool> have_user_code(const trace::TraceBundle& bundle, const trace::Stream& stream,
                                 const std::vector<bool>& processes) {
  std::vector<bool> have;
  for (const Switch& one : stream.switches)
    have.push_back(processes[one.space] && bundle.spaces[one.space].pid == one.pid);
  return have;
}

class SwitchAligner {
 public:
  SwitchAligner(const trace::TraceBundle& bundle, const trace::Stream& stream, const SwitchSurvey& survey,
                const PageTables& tables, std::uint64_t max_skew, const SwitchAlignment& options)
      : bundle_(bundle),
        switches_(stream.switches),
        tables_(tables),
        max_skew_(max_skew),
        skews_(options.skews),
        stream_number_(static_cast<std::size_t>(&stream - bundle.streams.data())),
        records_lost_(options.records_lost),
        residencies_(residencies_of(survey.changes, tables)),
        resumes_(resumes_of(survey, tables)),
        unknown_cr3_(unknown_cr3_of(survey, tables)),
        has_user_code_(have_user_code(bundle, stream, options.processes)),
        user_code_(survey.user_code),
        offsets_(survey.offsets),
        pip_tsc_(stream.switches.size(), kNoPip) {}

  [[nodiscard]] bool has_one_process() const noexcept { return residencies_.size() < 2; }

  std::vector<Switch> align() {
    match_switches();
    restore_order();
    move_into_kernel_code();
    if (!records_lost_) move_out_of_tasks_without_user_code();
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      if (offsets_[i] == kNotInStream) continue;
      add_lost_switches(offsets_[i]);
      Switch one = switches_[i];
      one.offset = offsets_[i];
      add(one);
    }
    add_lost_switches(kNotInStream);
    return std::move(out_);
  }

 private:
  // Switches and residencies are in the same order. A thread with other page tables is switched in at the
  // first residency of its process that may have begun at the time of the switch.
  void match_switches() {
    std::size_t residency = 0;
    SpaceId before = trace::kAnySpace;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const SpaceId space = switches_[i].space;
      if (!tables_.has_tables(space)) continue;
      const SpaceId last = std::exchange(before, space);
      if (space == last) continue;
      while (residency < residencies_.size() && starts_before(residencies_[residency], i)) ++residency;
      if (same_process(space, last) && is_running(space, residency)) continue;
      if (const std::size_t found = find_residency(residency, i); found != residencies_.size()) {
        put_into(i, residencies_[found]);
        residencies_[found].has_switch = true;
        residency = found + 1;
      } else if (const TraceResume* const one = find_resume(residency, i); one != nullptr) {
        offsets_[i] = one->offset + 1;
        pip_tsc_[i] = one->tsc;
      }
    }
  }

  // After the PIP. A PIP in PSB+ is later than the switch: the switch is by time then.
  void put_into(std::size_t i, const Residency& one) {
    offsets_[i] = std::clamp(offsets_[i], one.begin + 1, one.offset + 1);
    pip_tsc_[i] = one.tsc;
  }
  [[nodiscard]] bool has_pip(std::size_t i) const { return pip_tsc_[i] != kNoPip; }

  // The interval of a switch by its records. CR3 is written between the SWITCH OUT and SWITCH IN records.
  [[nodiscard]] std::uint64_t earliest(std::size_t i) const {
    std::uint64_t tsc = switches_[i].tsc;
    if (i != 0 && switches_[i - 1].tid == trace::kNoId &&
        tsc - switches_[i - 1].tsc <= kMaxSwitchSkews * max_skew_)
      tsc = switches_[i - 1].tsc;
    return tsc - std::min(tsc, max_skew_ + skew_of(i));
  }
  [[nodiscard]] std::uint64_t latest(std::size_t i) const {
    return later(switches_[i].tsc, max_skew_ + skew_of(i));
  }
  [[nodiscard]] std::uint64_t skew_of(std::size_t i) const {
    const auto found = skews_.find({stream_number_, switches_[i].tsc});
    return found == skews_.end() ? 0 : found->second;
  }

  template <typename Start>
  [[nodiscard]] bool starts_before(const Start& one, std::size_t i) const {
    return later(one.tsc, one.error) < earliest(i);
  }

  // exec() gives a process a new space.
  [[nodiscard]] bool same_process(SpaceId a, SpaceId b) const {
    return bundle_.spaces[a].pid == bundle_.spaces[b].pid && bundle_.spaces[a].pid != trace::kNoId;
  }

  // Whether the residency before `next_residency` has a switch and belongs to `space`.
  [[nodiscard]] bool is_running(SpaceId space, std::size_t next_residency) const {
    return next_residency != 0 && residencies_[next_residency - 1].has_switch &&
           residencies_[next_residency - 1].space == space;
  }

  // exec() is recorded long after the process got its new page tables. The process may have been switched out
  // and in with them before. Then the switch names the old space, which is the earlier owner of the page
  // tables, and the residency has the new space.
  [[nodiscard]] bool may_belong_to(std::size_t residency, SpaceId space) const {
    const Residency& one = residencies_[residency];
    if (one.space == space) return true;
    const bool returns = residency != 0 && !same_process(residencies_[residency - 1].space, space);
    return returns && one.before == space && same_process(one.space, space);
  }

  [[nodiscard]] std::size_t find_residency(std::size_t first, std::size_t i) const {
    const std::size_t end = std::min(residencies_.size(), first + kResidenciesAhead);
    for (std::size_t j = first; j < end && residencies_[j].tsc <= latest(i); ++j) {
      if (may_belong_to(j, switches_[i].space) && !starts_before(residencies_[j], i)) return j;
    }
    return residencies_.size();
  }

  // Finds the switch back from a process that was switched in while tracing was off, so that no PIP reports
  // its page tables. nullptr: there is no such switch, or more than one possible offset.
  [[nodiscard]] const TraceResume* find_resume(std::size_t next_residency, std::size_t i) {
    if (records_lost_ || next_residency == 0 || residencies_[next_residency - 1].space != switches_[i].space)
      return nullptr;
    const std::uint64_t begin = residencies_[next_residency - 1].offset;
    const std::uint64_t end =
        next_residency < residencies_.size() ? residencies_[next_residency].offset : kNotInStream;
    const auto is_past = [&](const TraceResume& one) { return one.offset <= begin || starts_before(one, i); };
    while (next_resume_ < resumes_.size() && is_past(resumes_[next_resume_])) ++next_resume_;
    const auto may_be = [&](std::size_t number) {
      return number < resumes_.size() && resumes_[number].offset < end && resumes_[number].tsc <= latest(i);
    };
    if (!may_be(next_resume_) || may_be(next_resume_ + 1)) return nullptr;
    const TraceResume& one = resumes_[next_resume_];
    const auto unknown = std::ranges::lower_bound(unknown_cr3_, one.begin);
    if (!was_switched_out_at(one, i) || (unknown != unknown_cr3_.end() && *unknown < end)) return nullptr;
    ++next_resume_;
    return &one;
  }

  // Whether the thread that is switched out has other page tables, and was switched in while tracing was off.
  [[nodiscard]] bool was_switched_out_at(const TraceResume& one, std::size_t i) const {
    if (i == 0 || one.space != switches_[i].space) return false;
    const std::size_t before = i >= 2 && is_joined_with_next(i - 1) ? i - 2 : i - 1;
    const Switch& previous = switches_[before];
    if (same_process(previous.space, one.space) || tables_.since(previous.space) >= previous.tsc)
      return false;
    const bool switched_in_while_off =
        later(previous.tsc, max_skew_) >= one.off && previous.tsc <= later(one.on, max_skew_);
    return switched_in_while_off && later(one.on, max_skew_) < switches_[i].tsc;
  }

  // Offsets by time are moved between the neighbouring offsets by PIP.
  void restore_order() {
    std::uint64_t last = kNotInStream;
    for (std::size_t i = switches_.size(); i-- > 0;) {
      if (has_pip(i)) last = offsets_[i];
      offsets_[i] = is_joined_with_next(i) ? offsets_[i + 1] : std::min(offsets_[i], last);
    }
    std::uint64_t first = 0;
    for (std::uint64_t& offset : offsets_) first = offset = std::max(offset, first);
  }

  // A switch is in kernel code. A switch by time inside user code is moved to the nearer end of that code.
  void move_into_kernel_code() {
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const auto code = std::ranges::lower_bound(user_code_, offsets_[i], {}, &UserCode::end);
      const bool is_inside = code != user_code_.end() && code->begin + 1 < offsets_[i];
      if (is_inside && !has_pip(i)) {
        const bool may_be_earlier = code->tsc >= earliest(i) && code->tsc <= switches_[i].tsc;
        const bool may_be_later = code->until <= latest(i);
        if (may_be_earlier && (!may_be_later || ticks_back(*code, i) < ticks_ahead(*code, i)))
          offsets_[i] = code->begin + 1;
        else if (may_be_later)
          offsets_[i] = code->end + 1;
      }
      first = offsets_[i] = std::max(offsets_[i], first);
    }
  }

  // By how much a switch is moved to be before, or after, user code.
  [[nodiscard]] std::uint64_t ticks_back(const UserCode& code, std::size_t i) const {
    return switches_[i].tsc - std::min(switches_[i].tsc, code.tsc);
  }
  [[nodiscard]] std::uint64_t ticks_ahead(const UserCode& code, std::size_t i) const {
    return code.until - std::min(switches_[i].tsc, code.until);
  }

  // Between a switch to the idle task or to a kernel thread and the next switch to a program there is no user
  // code. Such code is before the first of these switches, or after the second one:
  //
  //   by time   a ....... idle ............. b
  //   stream    a   user  kernel  user  kernel
  //                             ^ idle
  void move_out_of_tasks_without_user_code() {
    for (std::size_t first = 0, next = 0; first < switches_.size(); first = next + 1) {
      next = first;
      while (next < switches_.size() && !has_user_code_[next]) ++next;
      if (first != next) separate_user_code(first, next);
    }
  }

  // Switches [first, next) are to tasks without user code. User code that is far from both ends shows that a
  // task has user code: a process of another PID namespace looks like the idle task.
  void separate_user_code(std::size_t first, std::size_t next) {
    const bool has_next = next != switches_.size();
    const std::uint64_t end = has_next ? offsets_[next] : kNotInStream;
    const auto may_be_before = [&](const UserCode& code) { return first != 0 && code.tsc <= latest(first); };
    const auto may_be_after = [&](const UserCode& code) {
      return has_next && !has_pip(next) && code.until >= earliest(next);
    };
    const auto from = std::ranges::lower_bound(user_code_, offsets_[first], {}, &UserCode::end);
    const auto to =
        std::find_if(from, user_code_.end(), [&](const UserCode& code) { return code.begin + 1 >= end; });
    const auto is_near = [&](const UserCode& code) { return may_be_before(code) || may_be_after(code); };
    if (!std::all_of(from, to, is_near)) return;
    const auto is_after = [&](const UserCode& code) {
      return !may_be_before(code) ||
             (may_be_after(code) && ticks_back(code, next) < ticks_ahead(code, first));
    };
    const auto after = std::find_if(from, to, is_after);
    if (after != from) offsets_[first] = std::min(std::prev(after)->end + 1, end);
    if (after != to) offsets_[next] = after->begin + 1;
    for (std::size_t i = first + 1; i < next; ++i) {
      offsets_[i] = std::max(offsets_[i], offsets_[first]);
      if (has_next) offsets_[i] = std::min(offsets_[i], offsets_[next]);
    }
  }

  // A SWITCH OUT record and a SWITCH IN record a little later are one switch.
  [[nodiscard]] bool is_joined_with_next(std::size_t i) const {
    if (switches_[i].tid != trace::kNoId || i + 1 == switches_.size()) return false;
    const std::uint64_t most = has_pip(i + 1) ? max_skew_ : max_skew_ / 4;
    const std::uint64_t next = std::min(switches_[i + 1].tsc, pip_tsc_[i + 1]);
    return next <= later(switches_[i].tsc, most);
  }

  void add(Switch one) {
    if (!out_.empty() && out_.back().offset == one.offset) {
      if (one.departure == trace::Departure::UNKNOWN) one.departure = out_.back().departure;
      out_.pop_back();
    }
    out_.push_back(one);
  }

  // Adds a switch for each residency without a switch record: the record is lost.
  void add_lost_switches(std::uint64_t before) {
    if (!records_lost_) return;
    for (; next_residency_ < residencies_.size() && residencies_[next_residency_].offset < before;
         ++next_residency_) {
      const Residency& residency = residencies_[next_residency_];
      if (residency.has_switch || out_.empty() || has_record_near(residency)) continue;
      const SpaceId now = out_.back().space;
      if (now == residency.space || !tables_.has_tables(now)) continue;
      const std::int64_t pid = bundle_.spaces[residency.space].pid;
      const std::int64_t tid = pid == out_.back().pid ? out_.back().tid : trace::kNoId;  // exec()
      add({.tsc = residency.estimate,
           .pid = pid,
           .tid = tid,
           .space = residency.space,
           .offset = residency.offset + 1});
    }
  }

  [[nodiscard]] bool has_record_near(const Residency& residency) const {
    const std::uint64_t from = residency.tsc - std::min(residency.tsc, max_skew_);
    const auto near = std::ranges::lower_bound(switches_, from, {}, &Switch::tsc);
    return near != switches_.end() && near->tsc <= later(residency.tsc, residency.error + max_skew_);
  }

  const trace::TraceBundle& bundle_;
  const std::vector<Switch>& switches_;
  const PageTables& tables_;
  std::uint64_t max_skew_;
  const SwitchSkews& skews_;
  std::size_t stream_number_;
  bool records_lost_;
  std::vector<Residency> residencies_;
  std::vector<TraceResume> resumes_;
  std::vector<std::uint64_t> unknown_cr3_;
  std::vector<bool> has_user_code_;  // by switch
  const std::vector<UserCode>& user_code_;
  std::size_t next_resume_ = 0;
  std::vector<std::uint64_t> offsets_;
  static constexpr std::uint64_t kNoPip = ~std::uint64_t{0};
  std::vector<std::uint64_t> pip_tsc_;  // by switch: TSC of its PIP
  std::vector<Switch> out_;
  std::size_t next_residency_ = 0;
};

// Whether a stream has switches between processes, or between a process and other tasks, that are known by
// time only.
bool has_uncertain_switches(const trace::Stream& stream, const std::vector<bool>& processes) {
  if (stream.kind != trace::StreamKind::PROCESSOR_TRACE || stream.switches_by_offset) return false;
  const auto is_process = [&](const Switch& one) { return processes[one.space]; };
  const auto first = std::ranges::find_if(stream.switches, is_process);
  return std::any_of(first, stream.switches.end(), [&](const Switch& one) {
    return one.tid != trace::kNoId && (one.space != first->space || one.pid != first->pid);
  });
}

}  // namespace

std::vector<bool> spaces_with_code(const trace::TraceBundle& bundle) {
  std::vector<bool> has_code(bundle.spaces.size(), false);
  for (const trace::CodeRegion& region : bundle.code) has_code[region.space] = true;
  has_code[trace::kAnySpace] = false;
  return has_code;
}

std::uint64_t max_switch_skew(const trace::Clock& clock) {
  return clock.tsc_hz != 0 ? clock.tsc_hz / kSkewsPerSecond : kSkewTicks;
}

bool align_switches_to_pips(trace::TraceBundle& bundle, const SwitchAlignment& options) {
  const trace::Configuration& configuration = bundle.configuration;
  const bool has_pips = configuration.rtit_ctl_known && (configuration.rtit_ctl >> PT_CTL_OS & 1U) != 0;
  if (!has_pips || !configuration.clock.perf_time_known) return true;
  const std::uint64_t max_skew = max_switch_skew(configuration.clock);
  PageTables tables(options.processes, max_skew);
  std::vector<std::pair<trace::Stream*, SwitchSurvey>> surveys;
  SurveyLimits limits{.changes = kMostChanges, .go_on = options.go_on};
  for (trace::Stream& stream : bundle.streams) {
    if (!has_uncertain_switches(stream, options.processes)) continue;
    auto survey =
        survey_switches(stream, configuration, have_user_code(bundle, stream, options.processes), limits);
    if (!survey && !options.go_on()) return false;
    if (!survey) {
      bundle.warnings.push_back(
          warn(trace::WarningCode::PIP_LIMIT, limits.changes).at("Stream '" + stream.name + "'"));
      continue;
    }
    limits.changes -= survey->changes.size();
    tables.learn(survey->changes, stream.switches);
    surveys.emplace_back(&stream, std::move(*survey));
  }
  tables.resolve_owners();
  for (const auto& [stream, survey] : surveys) {
    SwitchAligner aligner(bundle, *stream, survey, tables, max_skew, options);
    // No PIP changes the process, and user code does not contradict times.
    if (aligner.has_one_process() && survey.user_code.empty()) continue;
    stream->switches = aligner.align();
    stream->switches_by_offset = true;
  }
  return true;
}

}  // namespace ptkit::processes
