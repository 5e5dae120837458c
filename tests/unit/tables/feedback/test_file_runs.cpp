// Runs of files: by RVA, wherever their code was loaded. What is in no file is counted apart.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tables/feedback/file_runs.h"

namespace ptkit::tables::feedback {
namespace {

constexpr std::uint64_t kProgram = 0x401000;
constexpr std::uint64_t kOther = 0x402000;  // right behind the program
constexpr std::uint64_t kJit = 0x900000;
constexpr std::uint64_t kSize = 0x1000;

void add_region(trace::TraceBundle& bundle, std::uint64_t address, std::int32_t file, trace::SpaceId space) {
  trace::CodeRegion region;
  region.address = address;
  region.bytes = trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(kSize, 0x90));  // NOP
  region.size = kSize;
  region.space = space;
  region.file = file;
  bundle.code.push_back(region);
}

// A program in two spaces at two addresses and under two paths, a library, and code of no file.
class FileRunsTest : public ::testing::Test {
 protected:
  FileRunsTest() {
    auto bundle = std::make_shared<trace::TraceBundle>();
    bundle->spaces.resize(3);
    bundle->files = {{"/bin/program", "aa", {}, {}}, {"/lib/other", "", {}, {}}, {"/tmp/copy", "aa", {}, {}}};
    add_region(*bundle, kProgram, 0, 1);
    add_region(*bundle, kOther, 1, 1);
    add_region(*bundle, kJit, -1, 1);
    add_region(*bundle, kProgram + kSize * 16, 2, 2);
    image_ = std::make_unique<code::image::Image>(bundle);
    loads_ = std::make_unique<code::symbol::LoadAddresses>(bundle);
  }
  [[nodiscard]] FileRuns empty(const columns::IpSet& ips) const { return {*image_, *loads_, ips}; }
  [[nodiscard]] feedback::Run run(std::uint64_t begin, std::uint64_t instructions,
                                  trace::SpaceId space = 1) const {
    feedback::Run found;
    found.view = found.from_view = &image_->view(space, 0);
    found.begin = begin;
    found.instructions = instructions;
    found.flags = RUN_BEGIN;
    return found;
  }
  // NOPs, and a branch that ends them; a branch of the program leads to it.
  [[nodiscard]] feedback::Run whole(std::uint64_t begin, std::uint64_t instructions, trace::SpaceId space = 1,
                                    std::uint64_t from = kProgram + 0x800) const {
    feedback::Run found = run(begin, instructions, space);
    found.end = begin + instructions - 1;
    found.from_ip = from;
    found.flags |= RUN_END | RUN_FROM;
    found.kind = flow::BranchKind::CALL;
    return found;
  }

  std::unique_ptr<code::image::Image> image_;
  std::unique_ptr<code::symbol::LoadAddresses> loads_;
  columns::IpSet all_{{}};
};

TEST_F(FileRunsTest, AddsUpProcessesAndLoadAddresses) {
  FileRuns runs = empty(all_);
  runs.add(whole(kProgram + 0x10, 4), {3, 1, 3});
  runs.add(whole(kProgram + 0x10 + kSize * 16, 4, 2, kProgram + 0x800 + kSize * 16), {2, 0, 0});
  runs.sort();
  ASSERT_EQ(runs.runs().size(), 1U);
  const auto& [key, executions] = runs.runs().entries()[0];
  EXPECT_EQ(key.file, 0);
  EXPECT_EQ(key.from_file, 0);
  EXPECT_EQ(key.begin, 0x10U);
  EXPECT_EQ(key.end, 0x13U);
  EXPECT_EQ(key.from, 0x800U);
  EXPECT_EQ(key.kind, flow::BranchKind::CALL);
  EXPECT_EQ(key.flags, RUN_FROM | RUN_BEGIN | RUN_END);
  EXPECT_EQ(executions, (Executions{5, 1, 3}));
  EXPECT_EQ(runs.totals().instructions, 20U);
  EXPECT_EQ(runs.totals().branches, 5U);
}

TEST_F(FileRunsTest, FindsTheLastInstructionOfRunsThatAreCut) {
  FileRuns runs = empty(all_);
  runs.add(run(kProgram + 0x20, 7), {2, 0, 0});
  runs.sort();
  ASSERT_EQ(runs.runs().size(), 1U);
  const FileRun& key = runs.runs().entries()[0].key;
  EXPECT_EQ(key.end, 0x26U);
  EXPECT_EQ(key.flags, RUN_BEGIN | RUN_CUT);
  EXPECT_EQ(key.from_file, -1);
  EXPECT_EQ(runs.totals().branches, 0U);
}

TEST_F(FileRunsTest, LeavesOutRunsAcrossFilesButNotTheirBranch) {
  FileRuns runs = empty(all_);
  runs.add(whole(kOther - 2, 4), {3, 0, 0});
  runs.sort();
  ASSERT_EQ(runs.runs().size(), 1U);
  const FileRun& key = runs.runs().entries()[0].key;
  EXPECT_EQ(key.instructions, 0U);
  EXPECT_EQ(key.flags, RUN_FROM | RUN_BEGIN);
  EXPECT_EQ(key.begin, 0xffeU);
  EXPECT_EQ(runs.totals().crossing_instructions, 12U);
}

TEST_F(FileRunsTest, CountsCodeOfNoFileApart) {
  FileRuns runs = empty(all_);
  runs.add(whole(kJit, 5), {2, 0, 0});                  // the program calls it
  runs.add(whole(kJit, 5, 1, kJit + 0x80), {7, 0, 0});  // it calls itself
  runs.add(run(0x10, 3), {1, 0, 0});                    // no code at all
  runs.add_unknown(11);
  runs.sort();
  ASSERT_EQ(runs.runs().size(), 1U);
  const FileRun& key = runs.runs().entries()[0].key;
  EXPECT_EQ(key.file, -1);
  EXPECT_EQ(key.begin, 0U);
  EXPECT_EQ(key.from, 0x800U);
  EXPECT_EQ(key.flags, RUN_FROM);
  EXPECT_EQ(runs.totals().outside_instructions, 48U);
  EXPECT_EQ(runs.totals().unknown_instructions, 11U);
  EXPECT_EQ(runs.totals().instructions, 59U);
  EXPECT_EQ(runs.totals().branches, 9U);
  EXPECT_EQ(runs.totals().outside_branches, 7U);
}

TEST_F(FileRunsTest, CutRunsWithoutTheirCodeAreUnknown) {
  FileRuns runs = empty(all_);
  runs.add(run(kJit - 0x10, 2), {1, 0, 0});
  feedback::Run beyond = run(kOther + kSize - 2, 9);  // the code ends before it
  runs.add(beyond, {4, 0, 0});
  runs.sort();
  EXPECT_EQ(runs.runs().size(), 0U);
  EXPECT_EQ(runs.totals().outside_instructions, 2U);
  EXPECT_EQ(runs.totals().unknown_instructions, 36U);
}

TEST_F(FileRunsTest, SelectsRunsAndBranchesByAddress) {
  const std::vector<columns::IpRange> ranges{{kProgram + 0x12, kProgram + 0x12}};
  const columns::IpSet some(ranges);
  FileRuns runs = empty(some);
  runs.add(whole(kProgram + 0x10, 4), {3, 0, 0});                      // its third instruction
  runs.add(whole(kProgram + 0x20, 4), {2, 0, 0});                      // none
  runs.add(whole(kProgram + 0x20, 4, 1, kProgram + 0x12), {5, 0, 0});  // its branch
  runs.sort();
  ASSERT_EQ(runs.runs().size(), 2U);
  EXPECT_EQ(runs.runs().entries()[0].key.flags, RUN_BEGIN | RUN_END);
  EXPECT_EQ(runs.runs().entries()[0].key.instructions, 4U);
  EXPECT_EQ(runs.runs().entries()[1].key.flags, RUN_FROM | RUN_BEGIN);
  EXPECT_EQ(runs.runs().entries()[1].executions.count, 5U);
  EXPECT_EQ(runs.totals().unselected_instructions, 28U);
  EXPECT_EQ(runs.totals().unselected_branches, 5U);
}

TEST_F(FileRunsTest, ManyRunsAreLookedUpOnTheWay) {
  FileRuns one = empty(all_);
  FileRuns some = empty(all_);
  FileRuns others = empty(all_);
  std::uint64_t instructions = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const feedback::Run next = whole(kProgram + i % 0x500, 1 + i % 0x100, 1, kProgram + i % 0x333);
    one.add(next, {1, 0, 0});
    (i % 3 == 0 ? some : others).add(next, {1, 0, 0});
    instructions += 1 + i % 0x100;
  }
  some.add_all(std::move(others));
  one.sort();
  some.sort();
  EXPECT_EQ(one.totals().instructions, instructions);
  EXPECT_EQ(some.totals().instructions, instructions);
  ASSERT_EQ(one.runs().size(), some.runs().size());
  for (std::size_t i = 0; i < one.runs().size(); ++i) {
    EXPECT_EQ(one.runs().entries()[i].key, some.runs().entries()[i].key);
    EXPECT_EQ(one.runs().entries()[i].executions, some.runs().entries()[i].executions);
  }
}

}  // namespace
}  // namespace ptkit::tables::feedback
