#include "formats/switch_places.h"

#include <algorithm>
#include <string>

#include "formats/page_tables.h"
#include "formats/switch_survey.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::formats {

namespace {

using trace::SpaceId;
using trace::Switch;

constexpr std::size_t kMostChanges = 16'000'000;  // in all streams: half a gigabyte of them
constexpr std::size_t kStaysAhead = 64;
// How much too early or too late a recorder may tell of a switch: this part of a second.
constexpr std::uint64_t kDoubtsPerSecond = 50'000;
constexpr std::uint64_t kDoubtTicks = 1U << 16U;  // where the TSC's frequency is not known
constexpr std::uint64_t kLongestSwitch = 50;      // times the doubt, between the records of its threads

std::uint64_t later(std::uint64_t tsc, std::uint64_t ticks) {
  return ticks > trace::kTscMax - tsc ? trace::kTscMax : tsc + ticks;
}

// A process' page tables were in force from a place on.
struct Stay {
  SpaceId space = trace::kAnySpace;
  SpaceId before = trace::kAnySpace;  // whose they had been when it began; kAnySpace: nobody's who is known
  std::uint64_t offset = 0;
  std::uint64_t tsc = 0;  // it began in [tsc, tsc + error]
  std::uint64_t error = 0;
  std::uint64_t guess = 0;
  bool told = false;  // a switch belongs to it
};

// A time at which the page tables of a change were in force.
std::uint64_t middle_of(const std::vector<TableChange>& changes, std::size_t i) {
  return changes[i].guess + (changes[i + 1].guess - changes[i].guess) / 2;
}

std::vector<Stay> stays_of(const std::vector<TableChange>& changes, const PageTables& tables) {
  std::vector<Stay> stays;
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    const TableChange& one = changes[i];
    if (one.cr3 == 0) continue;
    const SpaceId space = tables.owner(one.cr3, middle_of(changes, i));
    // Tables of nobody (kernel threads may have some) say nothing about who comes next.
    if (space == trace::kAnySpace || (!stays.empty() && stays.back().space == space)) continue;
    stays.push_back({.space = space,
                     .before = tables.owner_before(one.cr3, one.tsc),
                     .offset = one.offset,
                     .tsc = one.tsc,
                     .error = one.error,
                     .guess = one.guess});
  }
  return stays;
}

// The first page tables that came in force when tracing was on again. If the process had them before that as
// well, they are within a stay.
struct Return {
  SpaceId space = trace::kAnySpace;
  std::uint64_t begin = 0;  // where tracing went off
  std::uint64_t offset = 0;
  std::uint64_t tsc = 0;  // it was in [tsc, tsc + error]
  std::uint64_t error = 0;
  std::uint64_t off = 0;  // when tracing went off at the earliest,
  std::uint64_t on = 0;   // and was on again at the latest
};

std::vector<Return> returns_of(const SwitchSurvey& survey, const PageTables& tables) {
  std::vector<Return> returns;
  returns.reserve(survey.again.size());
  for (const auto& [change, on] : survey.again) {
    if (change + 1 == survey.changes.size()) continue;
    const TableChange& one = survey.changes[change];
    const TableChange& before = survey.changes[change - 1];
    returns.push_back({.space = tables.owner(one.cr3, middle_of(survey.changes, change)),
                       .begin = before.offset,
                       .offset = one.offset,
                       .tsc = one.tsc,
                       .error = one.error,
                       .off = before.tsc,
                       .on = on});
  }
  return returns;
}

// Where page tables came in force of which nobody knows for certain whose they are; as far as that is needed.
std::vector<std::uint64_t> strangers_of(const SwitchSurvey& survey, const PageTables& tables) {
  std::vector<std::uint64_t> strangers;
  if (survey.again.empty()) return strangers;
  for (std::size_t i = 0; i + 1 < survey.changes.size(); ++i) {
    const TableChange& one = survey.changes[i];
    if (one.cr3 != 0 && !tables.is_certain(one.cr3, middle_of(survey.changes, i)))
      strangers.push_back(one.offset);
  }
  return strangers;
}

class Placement {
 public:
  Placement(const trace::TraceBundle& bundle, const trace::Stream& stream, const SwitchSurvey& survey,
            const PageTables& tables, std::uint64_t doubt, const SwitchPlacing& placing, std::size_t number)
      : bundle_(bundle),
        switches_(stream.switches),
        tables_(tables),
        doubt_(doubt),
        widths_(placing.widths),
        number_(number),
        records_lost_(placing.records_lost),
        stays_(stays_of(survey.changes, tables)),
        returns_(returns_of(survey, tables)),
        strangers_(strangers_of(survey, tables)),
        places_(survey.places),
        tables_tsc_(stream.switches.size(), kNotByTables) {}

  [[nodiscard]] bool of_one_process() const noexcept { return stays_.size() < 2; }

  std::vector<Switch> make() {
    match();
    keep_order();
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      if (places_[i] == kNeverPlaced) continue;
      add_untold(places_[i]);
      Switch one = switches_[i];
      one.offset = places_[i];
      add(one);
    }
    add_untold(kNeverPlaced);
    return std::move(out_);
  }

 private:
  // Switches and stays are in the same order: whoever comes with other page tables comes at the first stay of
  // his that may have begun then.
  void match() {
    std::size_t stay = 0;
    SpaceId before = trace::kAnySpace;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const SpaceId space = switches_[i].space;
      if (!tables_.has_tables(space)) continue;
      const SpaceId last = std::exchange(before, space);
      if (space == last) continue;
      while (stay < stays_.size() && is_past(stays_[stay], i)) ++stay;
      if (same_process(space, last) && runs(space, stay)) continue;
      if (const std::size_t found = find_stay(stay, i); found != stays_.size()) {
        place(i, stays_[found]);
        stays_[found].told = true;
        stay = found + 1;
      } else if (const Return* const one = find_return(stay, i); one != nullptr) {
        place(i, *one);
      }
    }
  }

  template <typename Began>
  void place(std::size_t i, const Began& one) {
    places_[i] = one.offset + 1;  // after the PIP
    tables_tsc_[i] = one.tsc;
  }
  [[nodiscard]] bool is_by_tables(std::size_t i) const { return tables_tsc_[i] != kNotByTables; }

  // When a switch happened, by its records: page tables change between the thread that goes out and the one
  // that comes in.
  [[nodiscard]] std::uint64_t earliest(std::size_t i) const {
    std::uint64_t tsc = switches_[i].tsc;
    if (i != 0 && switches_[i - 1].tid == trace::kNoId &&
        tsc - switches_[i - 1].tsc <= kLongestSwitch * doubt_)
      tsc = switches_[i - 1].tsc;
    return tsc - std::min(tsc, doubt_ + width_of(i));
  }
  [[nodiscard]] std::uint64_t latest(std::size_t i) const {
    return later(switches_[i].tsc, doubt_ + width_of(i));
  }
  [[nodiscard]] std::uint64_t width_of(std::size_t i) const {
    const auto found = widths_.find({number_, switches_[i].tsc});
    return found == widths_.end() ? 0 : found->second;
  }

  template <typename Began>
  [[nodiscard]] bool is_past(const Began& one, std::size_t i) const {
    return later(one.tsc, one.error) < earliest(i);
  }

  // exec() makes another space of a process.
  [[nodiscard]] bool same_process(SpaceId a, SpaceId b) const {
    return bundle_.spaces[a].pid == bundle_.spaces[b].pid && bundle_.spaces[a].pid != trace::kNoId;
  }

  // Whether who came last did so with the page tables of `space`.
  [[nodiscard]] bool runs(SpaceId space, std::size_t next_stay) const {
    return next_stay != 0 && stays_[next_stay - 1].told && stays_[next_stay - 1].space == space;
  }

  // exec() is told when the process has had its new page tables for long, and may have been away and come
  // back with them: then the space that comes had them before, and the next one has them soon.
  [[nodiscard]] bool fits(std::size_t stay, SpaceId space) const {
    const Stay& one = stays_[stay];
    if (one.space == space) return true;
    const bool comes_back = stay != 0 && !same_process(stays_[stay - 1].space, space);
    return comes_back && one.before == space && same_process(one.space, space);
  }

  [[nodiscard]] std::size_t find_stay(std::size_t first, std::size_t i) const {
    const std::size_t end = std::min(stays_.size(), first + kStaysAhead);
    for (std::size_t j = first; j < end && stays_[j].tsc <= latest(i); ++j) {
      if (fits(j, switches_[i].space) && !is_past(stays_[j], i)) return j;
    }
    return stays_.size();
  }

  // Another process came while tracing was off, so that nothing tells of its page tables, and went when it
  // was on again: CR3 was written then. nullptr: that was not so, or it may have been elsewhere.
  [[nodiscard]] const Return* find_return(std::size_t next_stay, std::size_t i) {
    if (records_lost_ || next_stay == 0 || stays_[next_stay - 1].space != switches_[i].space) return nullptr;
    const std::uint64_t begin = stays_[next_stay - 1].offset;
    const std::uint64_t end = next_stay < stays_.size() ? stays_[next_stay].offset : kNeverPlaced;
    const auto is_over = [&](const Return& one) { return one.offset <= begin || is_past(one, i); };
    while (next_return_ < returns_.size() && is_over(returns_[next_return_])) ++next_return_;
    const auto may_be = [&](std::size_t number) {
      return number < returns_.size() && returns_[number].offset < end && returns_[number].tsc <= latest(i);
    };
    if (!may_be(next_return_) || may_be(next_return_ + 1)) return nullptr;
    const Return& one = returns_[next_return_];
    const auto stranger = std::ranges::lower_bound(strangers_, one.begin);
    if (!went_at(one, i) || (stranger != strangers_.end() && *stranger < end)) return nullptr;
    ++next_return_;
    return &one;
  }

  // Whether the one who went had page tables of his own, and came while tracing was off.
  [[nodiscard]] bool went_at(const Return& one, std::size_t i) const {
    if (i == 0 || one.space != switches_[i].space) return false;
    const std::size_t before = i >= 2 && is_one_with_next(i - 1) ? i - 2 : i - 1;
    const Switch& other = switches_[before];
    if (same_process(other.space, one.space) || tables_.since(other.space) >= other.tsc) return false;
    const bool came_while_off = later(other.tsc, doubt_) >= one.off && other.tsc <= later(one.on, doubt_);
    return came_while_off && later(one.on, doubt_) < switches_[i].tsc;
  }

  // Who comes by time does so between those who come with page tables.
  void keep_order() {
    std::uint64_t last = kNeverPlaced;
    for (std::size_t i = switches_.size(); i-- > 0;) {
      if (is_by_tables(i)) last = places_[i];
      places_[i] = is_one_with_next(i) ? places_[i + 1] : std::min(places_[i], last);
    }
    std::uint64_t first = 0;
    for (std::uint64_t& place : places_) first = place = std::max(place, first);
  }

  // Who goes out and who comes in a little later are told one by one, and are one switch.
  [[nodiscard]] bool is_one_with_next(std::size_t i) const {
    if (switches_[i].tid != trace::kNoId || i + 1 == switches_.size()) return false;
    const std::uint64_t most = is_by_tables(i + 1) ? doubt_ : doubt_ / 4;
    const std::uint64_t next = std::min(switches_[i + 1].tsc, tables_tsc_[i + 1]);
    return next <= later(switches_[i].tsc, most);
  }

  void add(const Switch& one) {
    if (!out_.empty() && out_.back().offset == one.offset) out_.pop_back();
    out_.push_back(one);
  }

  // Page tables of somebody of whom no switch tells: the record is lost.
  void add_untold(std::uint64_t place) {
    if (!records_lost_) return;
    for (; next_stay_ < stays_.size() && stays_[next_stay_].offset < place; ++next_stay_) {
      const Stay& stay = stays_[next_stay_];
      if (stay.told || out_.empty() || is_told_near(stay)) continue;
      const SpaceId now = out_.back().space;
      if (now == stay.space || !tables_.has_tables(now)) continue;
      const std::int64_t pid = bundle_.spaces[stay.space].pid;
      const std::int64_t tid = pid == out_.back().pid ? out_.back().tid : trace::kNoId;  // exec()
      add({.tsc = stay.guess, .pid = pid, .tid = tid, .space = stay.space, .offset = stay.offset + 1});
    }
  }

  [[nodiscard]] bool is_told_near(const Stay& stay) const {
    const std::uint64_t from = stay.tsc - std::min(stay.tsc, doubt_);
    const auto near = std::ranges::lower_bound(switches_, from, {}, &Switch::tsc);
    return near != switches_.end() && near->tsc <= later(stay.tsc, stay.error + doubt_);
  }

  const trace::TraceBundle& bundle_;
  const std::vector<Switch>& switches_;
  const PageTables& tables_;
  std::uint64_t doubt_;
  const SwitchWidths& widths_;
  std::size_t number_;  // of the stream
  bool records_lost_;
  std::vector<Stay> stays_;
  std::vector<Return> returns_;
  std::vector<std::uint64_t> strangers_;
  std::size_t next_return_ = 0;
  std::vector<std::uint64_t> places_;
  static constexpr std::uint64_t kNotByTables = ~std::uint64_t{0};
  std::vector<std::uint64_t> tables_tsc_;  // by switch: of the PIP that it is placed at
  std::vector<Switch> out_;
  std::size_t next_stay_ = 0;
};

// Whether switches between processes are told by time.
bool has_uncertain_switches(const trace::Stream& stream, const std::vector<bool>& processes) {
  if (stream.kind != trace::StreamKind::PROCESSOR_TRACE || stream.switches_by_offset) return false;
  const auto is_process = [&](const Switch& one) { return processes[one.space]; };
  const auto first = std::ranges::find_if(stream.switches, is_process);
  return std::any_of(first, stream.switches.end(),
                     [&](const Switch& one) { return is_process(one) && one.space != first->space; });
}

}  // namespace

std::vector<bool> spaces_with_code(const trace::TraceBundle& bundle) {
  std::vector<bool> has_code(bundle.spaces.size(), false);
  for (const trace::CodeRegion& region : bundle.code) has_code[region.space] = true;
  has_code[trace::kAnySpace] = false;
  return has_code;
}

std::uint64_t switch_doubt(const trace::Clock& clock) {
  return clock.tsc_hz != 0 ? clock.tsc_hz / kDoubtsPerSecond : kDoubtTicks;
}

bool place_switches(trace::TraceBundle& bundle, const SwitchPlacing& placing) {
  const trace::Configuration& configuration = bundle.configuration;
  const bool has_pips = configuration.rtit_ctl_known && (configuration.rtit_ctl >> PT_CTL_OS & 1U) != 0;
  if (!has_pips || !configuration.clock.perf_time_known) return true;
  const std::uint64_t doubt = switch_doubt(configuration.clock);
  PageTables tables(placing.processes, doubt);
  std::vector<std::pair<trace::Stream*, SwitchSurvey>> surveys;
  SurveyLimits limits{.changes = kMostChanges, .go_on = placing.go_on};
  for (trace::Stream& stream : bundle.streams) {
    if (!has_uncertain_switches(stream, placing.processes)) continue;
    auto survey = survey_switches(stream, configuration, limits);
    if (!survey && !placing.go_on()) return false;
    if (!survey) {
      bundle.warnings.push_back("Stream '" + stream.name +
                                "' has too many changes of page tables (more than " +
                                std::to_string(limits.changes) + "): who ran there is told by time alone.");
      continue;
    }
    limits.changes -= survey->changes.size();
    tables.learn(survey->changes, stream.switches);
    surveys.emplace_back(&stream, std::move(*survey));
  }
  tables.settle();
  for (const auto& [stream, survey] : surveys) {
    const auto number = static_cast<std::size_t>(stream - bundle.streams.data());
    Placement placement(bundle, *stream, survey, tables, doubt, placing, number);
    if (placement.of_one_process()) continue;  // nothing to be learned
    stream->switches = placement.make();
    stream->switches_by_offset = true;
  }
  return true;
}

}  // namespace ptkit::formats
