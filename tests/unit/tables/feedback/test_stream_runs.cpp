// Runs of streams have every instruction and every taken branch of the other tables, however they are read.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "code/insn/insn.h"
#include "tables/columns/read/stream_readers.h"
#include "tables/feedback/stream_runs.h"
#include "unit/tables/columns/recordings.h"

namespace ptkit::tables::feedback {
namespace {

using columns::Column;

using Executed = std::map<std::uint64_t, std::uint64_t>;
using Taken = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;
using Bundle = std::shared_ptr<trace::TraceBundle>;

// All code is of one file, at its own address.
Bundle with_file(Bundle bundle) {
  bundle->files.resize(1);
  bundle->files[0].path = "program";
  for (trace::CodeRegion& region : bundle->code) {
    region.file = 0;
    region.file_offset = region.address;
  }
  return bundle;
}

struct How {
  std::size_t threads = 1;
  std::size_t segment = 0;
  bool fast = true;
  std::optional<StreamRuns::Window> window{};
};

struct Found {
  std::vector<CountTable<FileRun>::Entry> runs;
  RunTotals totals;
};

class Reading {
 public:
  explicit Reading(Bundle bundle) : bundle_(std::move(bundle)), image_(bundle_), loads_(bundle_) {}

  [[nodiscard]] Found read(const How& how) const {
    flow::CodeCachePool pool(image_);
    flow::FlowOptions options;
    options.fast = how.fast;
    const auto make = [&](const trace::Stream& of, flow::FlowSink& sink, time::TimeTrack* track,
                          const flow::FlowState* from, bool ahead) {
      return from == nullptr ? std::make_unique<flow::FlowDecoder>(of, bundle_->configuration, image_,
                                                                   options, sink, track, &pool)
                             : std::make_unique<flow::FlowDecoder>(of, bundle_->configuration, image_,
                                                                   options, sink, track, &pool, *from, ahead);
    };
    std::vector<std::unique_ptr<FileRuns>> of_streams(bundle_->streams.size());
    const auto open = [&](std::size_t index) {
      columns::TableReader::Input reader;
      reader.bundle = bundle_;
      reader.streams = {static_cast<std::uint32_t>(index)};
      reader.factory = [&](std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack* track) {
        return make(bundle_->streams[stream], sink, track, nullptr, false);
      };
      reader.decoder = make;
      reader.threads = how.threads;
      reader.segment = how.segment;
      of_streams[index] = std::make_unique<FileRuns>(image_, loads_, all_);
      return std::make_unique<StreamRuns>(StreamRuns::Input{reader, image_, {}, how.window},
                                          *of_streams[index]);
    };
    FileRuns all(image_, loads_, all_);
    columns::StreamReaders<StreamRuns> readers(
        of_streams.size(), how.threads, open,
        [&](std::size_t index, StreamRuns&) { all.add_all(std::move(*of_streams[index])); });
    while (!readers.wait_for(std::chrono::seconds(1))) continue;
    EXPECT_FALSE(readers.out_of_memory());
    all.sort();
    return {all.runs().entries(), all.totals()};
  }

  // Executions of each instruction, by the runs that have it.
  [[nodiscard]] Executed executed(const Found& found) const {
    Executed sums;
    const code::image::CodeView& view = image_.view(0, 0);
    for (const auto& [run, executions] : found.runs) {
      std::uint64_t ip = run.begin;
      for (std::uint64_t left = run.instructions; left > 0; --left) {
        sums[ip] += executions.count;
        if (left == 1) {
          EXPECT_EQ(ip, run.end);
        }
        std::array<std::uint8_t, 15> bytes{};
        code::insn::Insn insn;
        const std::size_t size = view.read(ip, bytes);
        const auto status =
            code::insn::decode(code::insn::ExecMode::BITS64, base::Bytes(bytes).first(size), insn);
        EXPECT_EQ(status, base::Status::OK);
        ip += insn.size;
      }
    }
    return sums;
  }

 private:
  Bundle bundle_;
  code::image::Image image_;
  code::symbol::LoadAddresses loads_;
  columns::IpSet all_{{}};
};

// Of the table of instructions.
Executed instructions_of(const Bundle& bundle) {
  const columns::Table table =
      columns::read(bundle, columns::request_of(columns::TableId::instructions, false), {});
  Executed sums;
  EXPECT_TRUE(table.rows->set_varying(columns::kAllColumns));
  for (std::size_t row = 0; row < table.rows->rows(); ++row)
    ++sums[table.rows->cells<Column::instructions_ip>()[row]];
  return sums;
}

// Taken branches that lead to code, of the table of branches.
Taken taken_of(const Bundle& bundle) {
  const code::image::Image image(bundle);
  const columns::Table table =
      columns::read(bundle, columns::request_of(columns::TableId::branches, false), {});
  Taken sums;
  EXPECT_TRUE(table.rows->set_varying(columns::kAllColumns));
  for (std::size_t row = 0; row < table.rows->rows(); ++row) {
    const auto kind = static_cast<flow::BranchKind>(table.rows->cells<Column::branches_kind>()[row]);
    const std::uint8_t flags = table.rows->cells<Column::branches_flags>()[row];
    const bool is_instruction = kind != flow::BranchKind::ASYNC && kind != flow::BranchKind::TX_ABORT &&
                                kind != flow::BranchKind::UNKNOWN;
    const std::uint64_t to = table.rows->cells<Column::branches_to_ip>()[row];
    const bool is_taken = (flags & flow::kTakenBranch) == flow::kTakenBranch && is_instruction;
    if (is_taken && image.view(0, 0).provenance(to).file >= 0)
      ++sums[{table.rows->cells<Column::branches_from_ip>()[row], to}];
  }
  return sums;
}

Taken taken(const Found& found) {
  Taken sums;
  for (const auto& [run, executions] : found.runs) {
    if ((run.flags & (RUN_FROM | RUN_BEGIN)) == (RUN_FROM | RUN_BEGIN))
      sums[{run.from, run.begin}] += executions.count;
  }
  return sums;
}

std::uint64_t sum(const Executed& executed) {
  std::uint64_t total = 0;
  for (const auto& [ip, count] : executed) total += count;
  return total;
}

void expect_equal(const Found& a, const Found& b) {
  ASSERT_EQ(a.runs.size(), b.runs.size());
  for (std::size_t i = 0; i < a.runs.size(); ++i) {
    EXPECT_EQ(a.runs[i].key, b.runs[i].key);
    EXPECT_EQ(a.runs[i].executions, b.runs[i].executions);
  }
  EXPECT_EQ(a.totals.instructions, b.totals.instructions);
  EXPECT_EQ(a.totals.branches, b.totals.branches);
  EXPECT_EQ(a.totals.unknown_instructions, b.totals.unknown_instructions);
}

// With overflows, damage and losses.
class StreamRunsOf : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(StreamRunsOf, HaveTheInstructionsAndBranchesOfTheTables) {
  const Bundle bundle = with_file(columns::recording_with_gaps(GetParam()));
  const Reading reading(bundle);
  const Found found = reading.read({});
  const Executed expected = instructions_of(bundle);
  const Executed executed = reading.executed(found);
  EXPECT_GT(sum(executed), 10'000U);
  EXPECT_EQ(found.totals.instructions, sum(expected));
  EXPECT_EQ(sum(executed) + found.totals.unknown_instructions + found.totals.crossing_instructions,
            sum(expected));
  EXPECT_EQ(found.totals.unknown_instructions, 0U);
  EXPECT_EQ(found.totals.outside_instructions, 0U);
  EXPECT_EQ(executed, expected);
  EXPECT_EQ(taken(found), taken_of(bundle));
  EXPECT_GT(found.totals.gaps, 0U);
}

TEST_P(StreamRunsOf, DoNotDependOnThreadsAndSegments) {
  Bundle bundle = with_file(columns::recording_with_gaps(GetParam()));
  bundle->streams.push_back(bundle->streams[0]);
  bundle->streams.push_back(bundle->streams[0]);
  const Reading reading(bundle);
  const Found found = reading.read({});
  expect_equal(reading.read({.fast = false}), found);
  for (const std::size_t threads : {2U, 4U})
    for (const std::size_t segment : {0U, 600U, 5000U})
      expect_equal(reading.read({.threads = threads, .segment = segment}), found);
}

TEST_P(StreamRunsOf, WindowsAddUp) {
  const Bundle bundle = with_file(columns::recording_with_gaps(GetParam()));
  const Reading reading(bundle);
  const Found whole = reading.read({});
  const std::uint64_t middle = whole.totals.instructions / 3;
  const auto by = columns::PhasesBy::INSTRUCTIONS;
  const Found first = reading.read({.window = {{by, 0, middle}}});
  const Found second = reading.read({.window = {{by, middle, UINT64_MAX}}});
  Taken edges = taken(first);
  for (const auto& [edge, count] : taken(second)) edges[edge] += count;
  EXPECT_EQ(edges, taken(whole));
  EXPECT_EQ(first.totals.instructions + second.totals.instructions, whole.totals.instructions);
  EXPECT_NEAR(static_cast<double>(first.totals.instructions), static_cast<double>(middle), 300);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamRunsOf, ::testing::Range<std::uint64_t>(1, 7));

}  // namespace
}  // namespace ptkit::tables::feedback
