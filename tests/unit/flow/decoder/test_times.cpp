// The actual time of every row is in its interval: random programs with many direct jumps and calls between
// conditional branches, traced in software. The actual time is recorded when an instruction retires, before
// the trace unit processes it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tables/columns/span_times.h"
#include "unit/support/traces/roundtrip.h"

namespace ptkit::flow::roundtrip {
namespace {

using trace_unit::generator::GeneratorConfig;
using walk::StepKind;
using walk::Walk;

constexpr std::uint32_t kNoUpperLimit = 0xffffffff;

struct Form {
  const char* name;
  GeneratorConfig config;
  std::size_t flush_every = 0;  // steps: see walk::trace_of()
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

std::vector<Form> forms() {
  GeneratorConfig cyc;
  cyc.mtc = cyc.cyc = true;
  cyc.tsc_ctc_numerator = 168;
  cyc.tsc_ctc_denominator = 2;
  GeneratorConfig events = cyc;
  events.ptw = events.fup_on_ptw = true;
  events.psb_bytes = 512;
  GeneratorConfig uncompressed = cyc;
  uncompressed.return_compression = false;
  GeneratorConfig mtc = cyc;
  mtc.cyc = false;
  GeneratorConfig tsc = mtc;
  tsc.mtc = false;
  tsc.psb_bytes = 2048;
  GeneratorConfig offset = mtc;
  offset.tsc_at_ctc_zero = 1234567;
  offset.mtc_period = 6;
  GeneratorConfig no_mtc = cyc;
  no_mtc.mtc = false;
  GeneratorConfig threshold = cyc;
  threshold.cyc_threshold = 5;
  GeneratorConfig tnt_64 = cyc;
  tnt_64.use_tnt_64 = true;
  GeneratorConfig deferred = cyc;
  deferred.deferred_tips = true;
  GeneratorConfig deferred_mtc = mtc;
  deferred_mtc.deferred_tips = true;
  GeneratorConfig deferred_64 = events;
  deferred_64.deferred_tips = deferred_64.use_tnt_64 = true;
  deferred_64.return_compression = false;
  GeneratorConfig uncompressed_64 = tnt_64;
  uncompressed_64.return_compression = false;
  return {{"cyc", cyc},
          {"events", events},
          {"uncompressed", uncompressed},
          {"tsc", tsc},
          {"mtc", mtc},
          {"mtc_offset", offset},
          {"no_mtc", no_mtc},
          {"threshold", threshold},
          {"tnt_64", tnt_64},
          {"uncompressed_64", uncompressed_64},
          {"partial", cyc, 7},
          {"partial_uncompressed", uncompressed, 5},
          {"partial_mtc", mtc, 7},
          {"deferred", deferred},
          {"deferred_mtc", deferred_mtc},
          {"deferred_64", deferred_64}};
}

// Rows with the interval of each.
class TimedRows final : public FlowSink {
 public:
  explicit TimedRows(time::TimeTrack& track) : track_(track) {}
  void on_block(const Block& block) override { blocks.push_back({block.insns.size(), ask(block.span)}); }
  void on_branch(const Branch& branch) override { branches.emplace_back(branch, ask(branch.span)); }

  std::vector<std::pair<std::size_t, time::TimeRange>> blocks;  // instructions
  std::vector<std::pair<Branch, time::TimeRange>> branches;

 private:
  time::TimeRange ask(const StreamSpan& span) { return track_.at(tables::columns::query_of(span)); }
  time::TimeTrack& track_;
};

std::uint64_t seeds() {
  constexpr std::uint64_t kUsual = 6;
  const char* const factor = std::getenv("PTKIT_LARGE_TESTS");
  return factor == nullptr ? kUsual : kUsual * std::max<std::uint64_t>(1, std::strtoul(factor, nullptr, 10));
}

bool is_branch(StepKind kind) {
  return kind != StepKind::PLAIN && kind != StepKind::PTWRITE && kind != StepKind::RESUME &&
         kind != StepKind::OVERFLOW;
}

bool is_indirect(BranchKind kind) {
  return kind == BranchKind::JUMP_INDIRECT || kind == BranchKind::CALL_INDIRECT;
}

class EveryForm : public testing::TestWithParam<std::tuple<Form, bool>> {
 protected:
  [[nodiscard]] static GeneratorConfig config() {
    GeneratorConfig config = std::get<0>(GetParam()).config;
    config.cyc_of_first_bit = std::get<1>(GetParam());
    return config;
  }
  // Rare where CYC packets give the time of TNT packets: many TNT packets that no other packet forces out
  // would look like those of the manual.
  [[nodiscard]] static std::size_t flush_every() {
    constexpr std::size_t kSeldom = 2003;
    const std::size_t steps = std::get<0>(GetParam()).flush_every;
    return steps != 0 && config().cyc && !config().cyc_of_first_bit ? kSeldom : steps;
  }

  // Times between the limits are in the interval.
  void expect_inside(const time::TimeRange& range, std::uint64_t first, std::uint64_t last) {
    ++rows_;
    const bool late = range.error != kNoUpperLimit && last > range.tsc + range.error;
    const bool back = range.tsc < newest_;
    newest_ = range.tsc;
    if (range.known && first >= range.tsc && !late && !back) return;
    if (++outside_ > 5) return;
    ADD_FAILURE() << "row " << rows_ << ": " << range.tsc << " + " << range.error << ", but it was " << first
                  << " to " << last;
  }

  void check_branches(const Walk& walk, const TimedRows& rows) {
    std::size_t next = 0;
    newest_ = 0;
    for (const walk::Step& step : walk.steps) {
      if (!is_branch(step.kind)) continue;
      ASSERT_LT(next, rows.branches.size());
      const auto& [branch, range] = rows.branches[next++];
      ASSERT_EQ(branch.from_ip, step.from) << "branch " << next;
      expect_inside(range, step.tsc, step.tsc);
      if (!range.known) continue;
      if (branch.kind == BranchKind::COND) widths_.push_back(range.error);
      if (is_indirect(branch.kind)) indirect_widths_.push_back(range.error);
    }
    ASSERT_EQ(next + 1, rows.branches.size());  // the interrupt at the end
  }

  void check_blocks(const Walk& walk, const TimedRows& rows) {
    std::size_t insns = 0;
    newest_ = 0;
    for (const auto& [count, range] : rows.blocks) {
      ASSERT_LE(insns + count, walk.tscs.size());
      expect_inside(range, walk.tscs[insns], walk.tscs[insns + count - 1]);
      insns += count;
    }
    ASSERT_EQ(insns, walk.tscs.size());
  }

  void check(std::uint64_t seed) {
    const GeneratorConfig unit = config();
    walk::WalkOptions options;
    options.seed = seed;
    options.steps = 10'000;
    options.functions = 8 + static_cast<std::uint32_t>(seed % 24);
    options.ratio_per_mille = seed % 2 == 0 ? 2 : 20;
    options.halt_per_mille = seed % 3 == 0 ? 0 : 3;
    options.program.dense = true;
    options.plain_steps = true;
    const Walk walk = walk::random_walk(options);
    const std::shared_ptr<trace::TraceBundle> bundle = bundle_of(walk, unit, flush_every());
    time::TimeTrack track(bundle->streams[0].data.bytes(), bundle->configuration.clock, packet::Errata{});
    EXPECT_FALSE(track.cyc_times_first_bits() && !unit.cyc_of_first_bit);
    if (track.cyc_times_first_bits()) ++found_;
    TimedRows rows(track);
    const code::image::Image image(bundle);
    const std::unique_ptr<RowSource> engine = own_engine(*bundle, image, rows, nullptr);
    while (engine->run()) {
    }
    check_branches(walk, rows);
    check_blocks(walk, rows);
  }

  static void record_widths(const std::string& name, std::vector<std::uint32_t>& widths) {
    ASSERT_FALSE(widths.empty());
    std::sort(widths.begin(), widths.end());
    RecordProperty(name + "_median", std::to_string(widths[widths.size() / 2]));
    RecordProperty(name + "_p99", std::to_string(widths[widths.size() * 99 / 100]));
  }

  std::uint64_t found_ = 0;  // streams with CYC packets that are known to give the time of first bits
  std::uint64_t rows_ = 0;
  std::uint64_t newest_ = 0;  // lower limit, of rows of the same table
  std::uint64_t outside_ = 0;
  std::vector<std::uint32_t> widths_;           // of conditionals
  std::vector<std::uint32_t> indirect_widths_;  // of indirect jumps and calls
};

TEST_P(EveryForm, IntervalsContainActualTimes) {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(seed);
    check(seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(outside_, 0U) << "of " << rows_;
  if (config().cyc && config().cyc_of_first_bit) {
    EXPECT_GE(found_ * 10, seeds() * 9);
  }
  RecordProperty("rows", std::to_string(rows_));
  record_widths("width", widths_);
  record_widths("width_of_indirect", indirect_widths_);
}

INSTANTIATE_TEST_SUITE_P(Times, EveryForm, testing::Combine(testing::ValuesIn(forms()), testing::Bool()),
                         [](const auto& instance) {
                           const bool first = std::get<1>(instance.param);
                           return std::string(std::get<0>(instance.param).name) +
                                  (first ? "_of_the_first_bit" : "_of_the_packet");
                         });

}  // namespace
}  // namespace ptkit::flow::roundtrip
